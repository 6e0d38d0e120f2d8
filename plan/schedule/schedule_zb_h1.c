// ZB-H1: 1F1B with the backward in two parts. The input part (B) takes the place of the backward;
// the weight part (W) of rank r follows r micro-batches later, so that every rank holds as many
// inputs as the first one of 1F1B, and the drain of the pipeline is filled with W.
#include "plan/schedule/schedule_rows.h"

static void zb_h1_order(const ScheduleShape *shape, int rank, WorkItem *items) {
    schedule_order_split(shape, rank, shape->pp - rank - 1, rank, items);
}

// pp on every rank, at most all.
static int zb_h1_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    if (shape->pp == 1) return shape->vpp;
    const int most = shape->pp + shape->vocab.barriers;
    return most < shape->num_microbatches ? most : shape->num_microbatches;
}

// (p - 1) (F + B - W) over m (F + B + W). With fewer than pp micro-batches a rank has no forward
// left to run while the first gradients are on their way: as much again for each that is missing.
static double zb_h1_bubble_frac(const ScheduleShape *shape) {
    if (shape->pp == 1) return 0;
    const int missing = shape->pp - shape->num_microbatches;
    return (shape->pp - 1 + (missing > 0 ? missing : 0)) / (3.0 * shape->num_microbatches);
}

const Schedule SCHEDULE_ROW_ZB_H1 = {
    .kind = SCHEDULE_ZB_H1,
    .num_chunks = 1,
    .megatron_deepspeed_flag = "--enable-zbh1-pipeline",
    .splits_backward = true,
    .receives_ahead = true,
    .num_items = schedule_num_items_split,
    .order = zb_h1_order,
    .in_flight = zb_h1_in_flight,
    .bubble_frac = zb_h1_bubble_frac,
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv:2401.10241, section 2.1, "
              "figure 3 (top) and table 2",
};
