#include "sim/fold.h"

#include "sim/disturb_network.h"
#include "sim/network.h"

const char *const FOLD_NAMES[NUM_FOLD_MODES + 1] = {"auto", "none", "tp", NULL};

// Why the tensor-parallel ranks cannot be folded; NULL where they can.
static const char *folding_obstacle(const Cluster *cluster, const Plan *plan,
                                    const Program *program, Arena *arena) {
    if (plan->tp == 1) return "there is one tensor-parallel rank";
    for (int i = 0; i < program->num_collectives; i++) {
        GroupKind kind = program->collectives[i].group;
        Group group = plan_group(plan, kind);
        if (group.size == 1 || group.stride % plan->tp == 0) continue;
        return arena_printf(arena, "the %s groups of %s run across tensor-parallel ranks",
                            GROUP_NAMES[kind], program->collectives[i].name);
    }
    const char *why = network_folds(cluster, plan->tp);
    return why ? arena_printf(arena, "a tensor-parallel group cannot be folded: %s", why) : NULL;
}

// A link that is not as the others; slow GPUs and jitter are no obstacle.
static const char *disturb_obstacle(const Scenario *scenario, Arena *arena) {
    for (int i = 0; i < scenario->num_disturb; i++) {
        DisturbKind kind = scenario->disturb[i].kind;
        if (!disturb_is_network(kind)) continue;
        return arena_printf(arena,
                            "disturb[%d].%s makes the network of the tensor-parallel ranks uneven",
                            i, DISTURB_NAMES[kind]);
    }
    return NULL;
}

Status folding_choose(FoldMode mode, const Scenario *scenario, const Plan *plan,
                      const Program *program, Arena *arena, Folding *out) {
    *out = (Folding){.num_folded = 1, .name = "none", .reason = "asked for"};
    if (mode == FOLD_NONE) return status_ok();
    const char *obstacle = disturb_obstacle(scenario, arena);
    if (!obstacle) obstacle = folding_obstacle(&scenario->cluster, plan, program, arena);
    if (obstacle && mode == FOLD_TP) {
        return status_error(STATUS_INVALID, "--fold tp is not possible: %s", obstacle);
    }
    if (obstacle) {
        out->reason = obstacle;
        return status_ok();
    }
    const char *slowest = scenario->num_disturb > 0
                              ? ", its computations as long as those of the slowest of them"
                              : "";
    *out = (Folding){
        .num_folded = plan->tp,
        .name = "tp",
        .reason = arena_printf(arena,
                               "the %d tensor-parallel ranks of a stage do the same and share the "
                               "network evenly: one of them is simulated%s",
                               plan->tp, slowest),
    };
    return status_ok();
}
