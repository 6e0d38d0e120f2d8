#include "planner/stages/pieces.h"

static int kind_of(const Plan *plan) {
    const int zero = plan->zero_stage < 2 ? 0 : plan_zero_level(plan) - 1;
    const int recompute = 2 * (int)plan->recompute + (plan->recompute_layers >= 0);
    const int placement = plan_is_dual(plan) ? 2 : plan_joins_ends(plan);
    return zero + 4 * (placement + 3 * recompute);
}

static BlockPieces *pieces_find(Pieces *pieces, const Plan *plan) {
    BlockPieces *found = &pieces->kinds[kind_of(plan)];
    if (found->prices && plans_share_blocks(&found->plan, plan)) return found;
    arena_reset(&found->arena);
    found->plan = *plan;
    found->workload = workload_build(pieces->scenario, plan, &found->arena);
    found->prices = block_prices_new(&pieces->scenario->cluster, &found->arena);
    return found;
}

Workload pieces_workload(Pieces *pieces, const Plan *plan, Arena *arena) {
    const BlockPieces *blocks = pieces_find(pieces, plan);
    return workload_build_like(pieces->scenario, plan, &blocks->workload, arena);
}

BlockPrices *pieces_block_prices(Pieces *pieces, const Plan *plan) {
    return pieces_find(pieces, plan)->prices;
}

Prices pieces_prices(Pieces *pieces, const Plan *plan, const Workload *workload, Arena *arena) {
    return chunks_price_shared(pieces->scenario, plan, workload, pieces_find(pieces, plan)->prices,
                               arena);
}

void pieces_free(Pieces *pieces) {
    for (int i = 0; i < PIECES_KINDS; i++) {
        arena_free(&pieces->kinds[i].arena);
        pieces->kinds[i].prices = NULL;
    }
}
