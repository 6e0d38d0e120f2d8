#include "planner/planner.h"

#include "planner/groups/group_search.h"
#include "planner/search/search.h"
#include "planner/search/search_check.h"

// Which search answers is decided here alone.
Status planner_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                      PlannerResult *out) {
    TRY(search_constraints_check(scenario));
    if (scenario->cluster.num_pools > 1) return group_search(scenario, options, arena, out);
    return search_alike(scenario, options, arena, out);
}
