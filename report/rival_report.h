// report/rival_report.h - why the plan that the user named loses, as text.
#pragma once

#include "planner/questions/rival.h"

#include <stdio.h>

// The named plan beside the best of result, term by term; or why there is none.
//   text  how it was named
void report_rival(const Rival *rival, const char *text, const PlannerResult *result, FILE *stream);
