// planner/search/search_check.h - what a search refuses before it starts.
#pragma once

#include "planner/planner.h"

// Constraints that are legal for one plan, but that no search can act upon.
Status search_constraints_check(const Scenario *scenario);

// An objective that the cluster lacks a number for.
Status search_objective_check(const Scenario *scenario, PlanObjective objective);
