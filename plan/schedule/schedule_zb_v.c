// ZB-V: no bubble at the activation memory of 1F1B. A rank's own work has no gap: before the first
// micro-batch is back, rank r runs 2 pp - 1 - r forwards of its first chunk and r of its second.
// Ranks begin and end one unit after the other, which a step that all begin together pays, and one
// with training.optimizer_post_validation does not.
#include "plan/schedule/schedule_v.h"

static VBlock block_of(int pp) {
    return (VBlock){.step = {1, 5, 1, 5}, .limit = 2 * pp, .fills = true};
}

static void zb_v_orders(const ScheduleShape *shape, Arena *scratch, const RankOrder *orders) {
    const VBlock block = block_of(shape->pp);
    v_orders(shape, &block, scratch, orders);
}

static int zb_v_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    const VBlock block = block_of(shape->pp);
    return v_in_flight(shape, &block);
}

// pp - 1 of 6 m units, where m >= pp.
static double zb_v_bubble_frac(const ScheduleShape *shape) {
    return (shape->pp - 1) / (6.0 * shape->num_microbatches);
}

const Schedule SCHEDULE_ROW_ZB_V = {
    .kind = SCHEDULE_ZB_V,
    .placement = PLACEMENT_V,
    .num_chunks = 2,
    .torch_class = "ZBVZeroBubble",
    .splits_backward = true,
    .receives_ahead = true,
    .num_items = schedule_num_items_split,
    .orders = zb_v_orders,
    .in_flight = zb_v_in_flight,
    .bubble_frac = zb_v_bubble_frac,
    .source = "Qi et al. 2023, arXiv:2401.10241, section 6 (ZB-V); as a building block Qi et al. "
              "2024, arXiv:2405.15362, table 1 (V-ZB): activations of pp micro-batches",
};
