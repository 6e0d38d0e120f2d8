#include "sim/not_played.h"

#include "plan/layer_plans.h"
#include "sim/disturb_network.h"

bool inner_is_played(const Cluster *cluster) {
    return cluster->num_pools == 1 && !cluster->pools[0].wires;
}

static bool links_are_disturbed(const Scenario *scenario) {
    for (int i = 0; i < scenario->num_disturb; i++)
        if (disturb_is_network(scenario->disturb[i].kind)) return true;
    return false;
}

int not_played_list(const Scenario *scenario, const Plan *plan, Arena *arena,
                    const char *const **out) {
    bool sharded = false, tp = plan->etp > 1, cp = false;
    for (int s = 0; s < plan_num_shardings(plan); s++) {
        const Plan *own = plan_sharding(plan, s);
        sharded |= plan_exchanges_shards(own) && own->dp > 1;
        tp |= own->tp > 1;
        cp |= own->cp > 1;
    }
    const bool exchanges = tp || cp || plan->ep > 1 || sharded;
    const char **sentences = ARENA_ARRAY(arena, 1, const char *);
    *out = sentences;
    if (inner_is_played(&scenario->cluster) || !links_are_disturbed(scenario) || !exchanges)
        return 0;
    sentences[0] = arena_printf(
        arena,
        "on %s the exchanges%s%s%s%s inside computations: a disturbed link does not slow them",
        scenario->cluster.num_pools == 1 ? "uneven domains" : "groups of different machines",
        tp ? " of tp" : "", cp ? " of cp" : "", plan->ep > 1 ? " of ep" : "",
        sharded ? " of ZeRO" : "");
    return 1;
}
