// planner/search/search.h - the best plans on machines that are all alike, by the method of
// planner/planner.h.
#pragma once

#include "planner/planner.h"

// As planner_search, of a scenario without groups of machines whose constraints are checked.
Status search_alike(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    PlannerResult *out);
