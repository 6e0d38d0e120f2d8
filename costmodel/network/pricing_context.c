#include "costmodel/network/pricing_context.h"

#include "costmodel/network/collective.h"
#include "workload/pass/group.h"

static const Group *layer_groups(const Plan *plan, Arena *arena) {
    const int num_kinds = plan_num_group_kinds(plan);
    if (num_kinds == NUM_GROUPS) return NULL;
    Group *groups = ARENA_ARRAY(arena, num_kinds - NUM_GROUPS, Group);
    for (int kind = NUM_GROUPS; kind < num_kinds; kind++)
        groups[kind - NUM_GROUPS] = plan_group(plan, (GroupKind)kind);
    return groups;
}

PricingContext pricing_context(const Scenario *scenario, const Plan *plan, int pool, Arena *arena) {
    return (PricingContext){
        .machines = cluster_machines(&scenario->cluster, pool),
        .execution = &scenario->execution,
        .calibration = scenario->calibration,
        .split = plan_split(plan),
        .layer_groups = layer_groups(plan, arena),
    };
}

Group context_group(const PricingContext *context, GroupKind kind) {
    return (int)kind < NUM_GROUPS ? context->split.groups[kind]
                                  : context->layer_groups[(int)kind - NUM_GROUPS];
}

double part_factor(const Calibration *calibration, StepPart part) {
    return calibration ? calibration->factor[part] : 1;
}

StepPart group_part(const Pool *pool, Group group) {
    return group_layout(pool, group).num_domains > 1 ? PART_ACROSS : PART_INSIDE;
}
