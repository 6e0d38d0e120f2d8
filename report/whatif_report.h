// report/whatif_report.h - a grid of changes as a table for people.
#pragma once

#include "config/job/scenario.h"
#include "whatif/whatif.h"

#include <stdio.h>

// The question and one line per point, in the units of the other reports.
void report_whatif(const Scenario *scenario, const WhatifResult *result, FILE *stream);
