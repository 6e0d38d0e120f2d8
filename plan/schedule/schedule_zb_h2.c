// ZB-H2: as ZB-H1, but rank r runs twice as many forwards ahead as there are ranks behind it, so
// that it does not wait for the first gradient, and delays the weight part by 2 r micro-batches.
// From 2 pp - 1 micro-batches on no rank idles between its first item and its last: each rank ends
// as much after the first as it began. A rank sends forwards that the next one is not ready for:
// messages are asynchronous, whatever the stack.
//
// The paper has the next step begin right there, with optimizer steps that wait for no other rank
// and are checked afterwards (training.optimizer_post_validation). Where a step begins and ends on
// all ranks at once, the last rank's late start is left: with F = B = W no more and no less than of
// ZB-H1. What the longer warm-up then buys is slack, where messages or unequal parts need it.
#include "plan/schedule/schedule_rows.h"

static void zb_h2_order(const ScheduleShape *shape, int rank, WorkItem *items) {
    schedule_order_split(shape, rank, 2 * (shape->pp - rank - 1), 2 * rank, items);
}

// 2 pp - 1 on every rank, at most all.
static int zb_h2_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    if (shape->pp == 1) return shape->vpp;
    const int most = 2 * shape->pp - 1 + shape->vocab.barriers;
    return most < shape->num_microbatches ? most : shape->num_microbatches;
}

// (p - 1) F over m (F + B + W), before the last rank's first forward; with fewer than pp
// micro-batches as ZB-H1. The paper's (p - 1) (F + B - 2W) = 0 leaves it out.
static double zb_h2_bubble_frac(const ScheduleShape *shape) {
    return SCHEDULE_ROW_ZB_H1.bubble_frac(shape);
}

const Schedule SCHEDULE_ROW_ZB_H2 = {
    .kind = SCHEDULE_ZB_H2,
    .num_chunks = 1,
    .splits_backward = true,
    .receives_ahead = true,
    .num_items = schedule_num_items_split,
    .order = zb_h2_order,
    .in_flight = zb_h2_in_flight,
    .bubble_frac = zb_h2_bubble_frac,
    .source = "Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv:2401.10241, section 2.2, "
              "figure 3 (bottom) and table 2",
};
