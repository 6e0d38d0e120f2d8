// GPipe: all forwards, then all backwards. One chunk a rank.
#include "plan/schedule/schedule_rows.h"

// Backwards run in the order of their forwards, as PyTorch's ScheduleGPipe does. Reverse order
// would take as long, but its first gradient would be that of the micro-batch that comes last.
static void gpipe_order(const ScheduleShape *shape, int rank, WorkItem *items) {
    if (shape->pp == 1) {
        schedule_order_local(shape, items);
        return;
    }
    const int num_microbatches = shape->num_microbatches;
    for (int m = 0; m < num_microbatches; m++) {
        items[m] = (WorkItem){.kind = WORK_FORWARD, .chunk = (int16_t)rank, .microbatch = m};
        items[num_microbatches + m] =
            (WorkItem){.kind = WORK_BACKWARD, .chunk = (int16_t)rank, .microbatch = m};
    }
}

static int gpipe_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    return shape->pp == 1 ? shape->vpp : shape->num_microbatches;
}

// (pp - 1) / m: a rank idles for pp - 1 forwards and pp - 1 backwards while it works on m of each.
static double gpipe_bubble_frac(const ScheduleShape *shape) {
    return (shape->pp - 1) / (double)shape->num_microbatches;
}

const Schedule SCHEDULE_ROW_GPIPE = {
    .kind = SCHEDULE_GPIPE,
    .num_chunks = 1,
    .holds_in_groups = true,
    .layerwise = true,
    .torch_class = "GPipe",
    .first_holds_most = true,
    .num_items = schedule_num_items_fb,
    .order = gpipe_order,
    .in_flight = gpipe_in_flight,
    .bubble_frac = gpipe_bubble_frac,
    .source = "Huang et al., GPipe, 2019, arXiv:1811.06965, section 2.3; bubble as in Narayanan et "
              "al. 2021, arXiv:2104.04473, section 2.2.1",
};
