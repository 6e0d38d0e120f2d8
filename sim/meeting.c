#include "sim/meeting.h"

#include "plan/layer_plans.h"
#include "workload/pass/group.h"

static int first_of(const int *firsts, int replica) {
    while (firsts[replica] != replica) replica = firsts[replica];
    return replica;
}

// Joins every replica with the one before it in its group.
static void group_join(Group group, int multiplicity, int period, int *firsts) {
    if (group.size == 1) return;
    for (int replica = 0; replica < multiplicity; replica++) {
        if (replica / group.stride % group.size == 0) continue;
        int a = first_of(firsts, replica % period);
        int b = first_of(firsts, (replica - group.stride) % period);
        firsts[a > b ? a : b] = a > b ? b : a;
    }
}

const int *meeting_firsts(const Plan *plan, int multiplicity, int period, Arena *arena) {
    int *firsts = ARENA_ARRAY(arena, period, int);
    for (int replica = 0; replica < period; replica++) firsts[replica] = replica;
    static const GroupKind kinds[] = {GROUP_TP,  GROUP_CP,   GROUP_EP,
                                      GROUP_ETP, GROUP_ZERO, GROUP_EZERO};
    for (int s = 0; s < plan_num_shardings(plan); s++) {
        const Plan *own = plan_sharding(plan, s);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            bool shards = kinds[i] == GROUP_ZERO || kinds[i] == GROUP_EZERO;
            if (shards && own->zero_stage < 3) continue;
            group_join(plan_lane_group(own, kinds[i]), multiplicity, period, firsts);
        }
    }
    const int *spans, num_spans = plan_layout_spans(plan, &spans);
    for (int i = 0; i < num_spans; i++)
        group_join((Group){spans[i], 1}, multiplicity, period, firsts);
    for (int replica = 0; replica < period; replica++) firsts[replica] = first_of(firsts, replica);
    return firsts;
}
