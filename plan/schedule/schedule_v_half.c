// V-half: half the activation memory of 1F1B at half its bubble.
#include "plan/schedule/schedule_v.h"

// The delays keep the passes of a rank on units of their own.
static VBlock block_of(int pp) {
    const bool even = pp % 2 == 0;
    return (VBlock){.step = {1, 2, 1, 2}, .delay = {even ? 3 : 0, 1}, .limit = 2 * ((pp + 2) / 2)};
}

static void v_half_orders(const ScheduleShape *shape, Arena *scratch, const RankOrder *orders) {
    const VBlock block = block_of(shape->pp);
    v_orders(shape, &block, scratch, orders);
}

static int v_half_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    const VBlock block = block_of(shape->pp);
    return v_in_flight(shape, &block);
}

// 3 (pp - 1) of 6 m units, one less where pp is odd; where m >= pp.
static double v_half_bubble_frac(const ScheduleShape *shape) {
    if (shape->pp == 1) return 0;
    return (3 * (shape->pp - 1) - shape->pp % 2) / (6.0 * shape->num_microbatches);
}

const Schedule SCHEDULE_ROW_V_HALF = {
    .kind = SCHEDULE_V_HALF,
    .placement = PLACEMENT_V,
    .num_chunks = 2,
    .splits_backward = true,
    .receives_ahead = true,
    .num_items = schedule_num_items_split,
    .orders = v_half_orders,
    .in_flight = v_half_in_flight,
    .bubble_frac = v_half_bubble_frac,
    .source = "Qi et al. 2024, arXiv:2405.15362, table 1 (V-Half): activations of (pp + 2) / 2 "
              "micro-batches, bubble about pp / 2 m",
};
