#include "sim/not_played.h"

#include "sim/disturb_network.h"

bool inner_is_played(const Cluster *cluster) {
    return !cluster->wires && !cluster->groups;
}

static bool links_are_disturbed(const Scenario *scenario) {
    for (int i = 0; i < scenario->num_disturb; i++)
        if (disturb_is_network(scenario->disturb[i].kind)) return true;
    return false;
}

int not_played_list(const Scenario *scenario, const Plan *plan, Arena *arena,
                    const char *const **out) {
    const bool sharded = plan->zero_stage >= 2 && plan->dp > 1;
    const bool exchanges = plan->tp * plan->cp * plan->ep * plan->etp > 1 || sharded;
    const char **sentences = ARENA_ARRAY(arena, 1, const char *);
    *out = sentences;
    if (inner_is_played(&scenario->cluster) || !links_are_disturbed(scenario) || !exchanges)
        return 0;
    sentences[0] = arena_printf(
        arena,
        "on %s the exchanges%s%s%s%s inside computations: a disturbed link does not slow them",
        scenario->cluster.wires ? "uneven domains" : "groups of different machines",
        plan->tp * plan->etp > 1 ? " of tp" : "", plan->cp > 1 ? " of cp" : "",
        plan->ep > 1 ? " of ep" : "", sharded ? " of ZeRO" : "");
    return 1;
}
