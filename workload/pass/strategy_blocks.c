#include "workload/pass/strategy_blocks.h"

#include "plan/layer_plans.h"
#include "workload/pass/chunk.h"

#include <string.h>

static const Op *ops_bind(const Plan *plan, int sharding, const Op *ops, int num_ops,
                          Arena *arena) {
    Op *bound = arena_copy(arena, ops, (size_t)num_ops * sizeof *ops);
    for (int i = 0; i < num_ops; i++)
        if (bound[i].kind == OP_COLLECTIVE)
            bound[i].collective.group =
                sharding_group_kind(plan, sharding, bound[i].collective.group);
    return bound;
}

void block_bind(const Plan *plan, int sharding, Arena *arena, Block *block) {
    block->forward = ops_bind(plan, sharding, block->forward, block->num_forward, arena);
    block->backward = ops_bind(plan, sharding, block->backward, block->num_backward, arena);
    block->sharding = sharding;
}

void change_blocks_build(const Scenario *scenario, const Plan *plan, Arena *arena, Block *blocks) {
    const int num_shardings = plan_num_shardings(plan);
    for (int from = 0; from < num_shardings; from++)
        for (int to = 0; to < num_shardings; to++) {
            if (plan_layout(plan, from) == plan_layout(plan, to)) continue;
            Block *block = &blocks[change_block_index(plan, from, to)];
            if (block->num_forward > 0) continue;
            const Plan *one = plan_sharding(plan, from), *other = plan_sharding(plan, to);
            const GroupKind kind = layout_group_kind(plan, plans_layout_span(one, other));
            *block = layout_change_block(scenario, one, other, kind, arena);
        }
}
