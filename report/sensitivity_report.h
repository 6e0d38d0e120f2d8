// report/sensitivity_report.h - what limits a job, as a ranked list drawn as a tornado.
#pragma once

#include "config/job/scenario.h"
#include "whatif/sensitivity.h"

#include <stdio.h>

void report_sensitivity(const Scenario *scenario, const Sensitivity *sensitivity, FILE *stream);
