// report/sizing_report.h - how many GPUs are needed, as text.
#pragma once

#include "planner/questions/sizing.h"

#include <stdio.h>

// The number, what was ruled out below it, and what a run costs. Where none is fast enough, what
// was tried.
//   scenario    on that number
//   result      its plans
//   run_tokens  of the whole run; 0: not asked for
void report_sizing(const Scenario *scenario, const Sizing *sizing, const PlannerResult *result,
                   double run_tokens, FILE *stream);
