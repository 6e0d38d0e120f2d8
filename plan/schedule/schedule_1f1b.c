// 1F1B with a flush (PipeDream-flush): each rank runs as many forwards ahead as there are ranks
// behind it, then one forward and one backward in turn. One chunk a rank.
#include "plan/schedule/schedule_rows.h"

static int warmup(const ScheduleShape *shape, int rank) {
    int ahead = shape->pp - rank - 1 + shape->vocab.barriers;
    return ahead < shape->num_microbatches ? ahead : shape->num_microbatches;
}

static void one_f_one_b_order(const ScheduleShape *shape, int rank, WorkItem *items) {
    if (shape->pp == 1) {
        schedule_order_local(shape, items);
        return;
    }
    const int num_microbatches = shape->num_microbatches, num_warmup = warmup(shape, rank);
    for (int slot = 0; slot < num_microbatches + num_warmup; slot++) {
        if (slot < num_microbatches)
            *items++ = (WorkItem){.kind = WORK_FORWARD, .chunk = (int16_t)rank, .microbatch = slot};
        if (slot >= num_warmup)
            *items++ = (WorkItem){
                .kind = WORK_BACKWARD, .chunk = (int16_t)rank, .microbatch = slot - num_warmup};
    }
}

// A pair of forward and backward after the other. A gradient takes a pair to the rank before, so
// the first pair of a period is one later on each rank.
static SteadyOrder one_f_one_b_steady(const ScheduleShape *shape, int rank) {
    const int num_pairs = shape->num_microbatches - shape->pp;
    if (shape->pp == 1)
        return (SteadyOrder){1, 2 * shape->vpp, 2 * shape->vpp, num_pairs > 1 ? num_pairs - 1 : 0};
    return (SteadyOrder){1, 2, warmup(shape, rank) + 2 * rank, num_pairs > 0 ? num_pairs : 0};
}

// One more than the warm-up: pp - rank (and what barriers add), at most all.
static int one_f_one_b_in_flight(const ScheduleShape *shape, int rank) {
    if (shape->pp == 1) return shape->vpp;
    int depth = shape->pp - rank + shape->vocab.barriers;
    return depth < shape->num_microbatches ? depth : shape->num_microbatches;
}

// (pp - 1) / m, as GPipe.
static double one_f_one_b_bubble_frac(const ScheduleShape *shape) {
    return (shape->pp - 1) / (double)shape->num_microbatches;
}

const Schedule SCHEDULE_ROW_1F1B = {
    .kind = SCHEDULE_1F1B,
    .num_chunks = 1,
    .with_more_chunks = &SCHEDULE_ROW_INTERLEAVED,
    .holds_in_groups = true,
    .runs_one_ahead = true,
    .layerwise = true,
    .torch_class = "1F1B",
    .first_holds_most = true,
    .num_items = schedule_num_items_fb,
    .order = one_f_one_b_order,
    .steady = one_f_one_b_steady,
    .in_flight = one_f_one_b_in_flight,
    .bubble_frac = one_f_one_b_bubble_frac,
    .source = "Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1 and figure 4 (top); "
              "Narayanan et al., PipeDream-2BW, 2021, arXiv:2006.09503, section 2.2",
};
