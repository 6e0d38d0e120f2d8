// Breadth-first: chunks in a loop over the ranks, as interleaved; a rank runs all micro-batches
// through its first chunk, then all through its next; backwards the same with the chunks reversed.
// With one chunk a rank this is the order of GPipe. Each chunk's gradients are whole, and its
// weights needed, in one piece of the step, which is what it is for: with ZeRO both can move once a
// step beside the others' computation.
//
// Backwards run in the order of their forwards, as GPipe's here; PyTorch's ScheduleLoopedBFS
// reverses it, which takes as long. A chunk's inputs come while the rank is still busy with
// another: whoever sends them cannot wait until they are read, so messages are asynchronous.
//
// Limit: ZeRO 2 and 3 are priced with a gather and a scatter for every micro-batch, not once for
// all micro-batches of a chunk.
#include "plan/schedule/schedule_rows.h"

static void breadth_first_order(const ScheduleShape *shape, int rank, WorkItem *items) {
    if (shape->pp == 1) {
        schedule_order_local(shape, items);
        return;
    }
    for (int k = 0; k < 2 * shape->vpp; k++) {
        const bool forward = k < shape->vpp;
        const int chunk = (forward ? k : 2 * shape->vpp - 1 - k) * shape->pp + rank;
        for (int m = 0; m < shape->num_microbatches; m++)
            *items++ = (WorkItem){.kind = forward ? WORK_FORWARD : WORK_BACKWARD,
                                  .chunk = (int16_t)chunk,
                                  .microbatch = m};
    }
}

static int breadth_first_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    return shape->vpp * (shape->pp == 1 ? 1 : shape->num_microbatches);
}

// (p - 1) / (v m). With fewer than pp micro-batches a rank has done all in one chunk before the
// first comes round to its next: p - m forwards and backwards more at each of v - 1 such turns.
static double breadth_first_bubble_frac(const ScheduleShape *shape) {
    if (shape->pp == 1) return 0;
    const int missing = shape->pp - shape->num_microbatches;
    const double turns = missing > 0 ? (shape->vpp - 1.0) * missing : 0;
    return (shape->pp - 1 + turns) / ((double)shape->vpp * shape->num_microbatches);
}

const Schedule SCHEDULE_ROW_BREADTH_FIRST = {
    .kind = SCHEDULE_BREADTH_FIRST,
    .torch_class = "LoopedBFS",
    .torch_class_one_chunk = "GPipe",
    .receives_ahead = true,
    .first_holds_most = true,
    .num_items = schedule_num_items_fb,
    .order = breadth_first_order,
    .in_flight = breadth_first_in_flight,
    .bubble_frac = breadth_first_bubble_frac,
    .source = "Lamy-Poirier, Breadth-First Pipeline Parallelism, 2022, arXiv:2211.05953, section 4",
};
