// V-min: a third of the activation memory of 1F1B, the least of the V shape, at two thirds of its
// bubble.
#include "plan/schedule/schedule_v.h"

// The delay keeps the passes of a rank on units of their own.
static VBlock block_of(int pp) {
    return (VBlock){
        .step = {1, 1, 1, 1}, .delay = {pp % 3 == 0 ? 2 : 0, 0}, .limit = 2 * ((pp + 4) / 3)};
}

static void v_min_orders(const ScheduleShape *shape, Arena *scratch, const RankOrder *orders) {
    const VBlock block = block_of(shape->pp);
    v_orders(shape, &block, scratch, orders);
}

static int v_min_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    const VBlock block = block_of(shape->pp);
    return v_in_flight(shape, &block);
}

// 4 pp - 5 of 6 m units, two more where 3 divides pp; where m > 1.
static double v_min_bubble_frac(const ScheduleShape *shape) {
    if (shape->pp == 1) return 0;
    return (4 * shape->pp - 5 + (shape->pp % 3 == 0 ? 2 : 0)) / (6.0 * shape->num_microbatches);
}

const Schedule SCHEDULE_ROW_V_MIN = {
    .kind = SCHEDULE_V_MIN,
    .placement = PLACEMENT_V,
    .num_chunks = 2,
    .splits_backward = true,
    .receives_ahead = true,
    .num_items = schedule_num_items_split,
    .orders = v_min_orders,
    .in_flight = v_min_in_flight,
    .bubble_frac = v_min_bubble_frac,
    .source = "Qi et al. 2024, arXiv:2405.15362, table 1 (V-Min): activations of (pp + 4) / 3 "
              "micro-batches, bubble about 2 pp / 3 m",
};
