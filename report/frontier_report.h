// report/frontier_report.h - a frontier of plans as a table.
#pragma once

#include "config/job/scenario.h"
#include "planner/planner.h"

#include <stdio.h>

// Each plan of the frontier, fastest first, and what was searched; where nothing fits, the closest
// miss.
void report_frontier(const Scenario *scenario, const PlannerResult *result, FILE *stream);
