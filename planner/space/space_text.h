// planner/space/space_text.h - what an answer of `plan` searched, and what it did not, in words.
#pragma once

#include "config/job/scenario.h"
#include "planner/planner.h"

// One sentence: which splits of the layers were searched, and what no plan of the space has.
//   scenario  that was searched
//   result    of planner_search, planner_search_idle or planner_frontier
const char *space_text(const Scenario *scenario, const PlannerResult *result, Arena *arena);

// The sentence of a search for a strategy of each layer (planner/layerwise/layer_search.h).
const char *space_text_of_layers(void);
