// planner/questions/switch_step.h - the step of one plan under changed software, for comparing
// switches.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"

// Seconds of a step; INFINITY where the plan is not legal on the scenario's stack, does not fit, or
// cannot take less than limit_s.
//   limited  as the search limits it (planner_limited)
//   plan     of this model and cluster
double switch_step_s(const Scenario *limited, const Plan *plan, double limit_s, Arena *scratch);
