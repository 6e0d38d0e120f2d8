// report/compare_report.h - two plans or scenarios side by side, for people.
#pragma once

#include "whatif/compare.h"

#include <stdio.h>

void report_comparison(const Comparison *comparison, FILE *stream);
