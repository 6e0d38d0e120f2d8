// DualPipe: two pipelines of the whole model run against each other over the same ranks. Rank r
// holds stage r of one and stage pp - 1 - r of the other, twice the parameters; half of the
// micro-batches enter at rank 0, half at the last rank. So a rank always has a forward and a
// backward of different micro-batches at hand, and runs them together (F&B): the messages of one
// hide behind the computation of the other. Backwards are split only where that fills the bubble.
//
// The order is described phase by phase in the authors' program; a rank of the second half does as
// its mirror in the first, with the directions exchanged. "Near" is the direction whose first rank
// is nearer: it comes first everywhere.
//
// Messages are asynchronous, as the paper says ("both all-to-all and PP communication can be fully
// hidden"). What F&B hides inside its layers is the training's `ep_overlap`: here it takes as long
// as F and B.
#include "workload/schedule_rows.h"

#include <assert.h>

enum { NEAR, FAR, NUM_DIRECTIONS };

typedef struct {
    const ScheduleShape *shape;
    int chunk[NUM_DIRECTIONS];            // of the rank
    int first_microbatch[NUM_DIRECTIONS]; // of the direction
    int num_forwards[NUM_DIRECTIONS], num_backwards[NUM_DIRECTIONS];
    WorkItem *begin, *out;
    WorkItem *weight; // the first input part whose weight part is still to come
} DualRank;

static void add(DualRank *rank, WorkKind kind, int direction, int count, Joined joined) {
    *rank->out++ = (WorkItem){.kind = (uint8_t)kind,
                              .joined = (uint8_t)joined,
                              .chunk = (int16_t)rank->chunk[direction],
                              .microbatch = rank->first_microbatch[direction] + count};
}

static void add_forward(DualRank *rank, int direction) {
    add(rank, WORK_FORWARD, direction, rank->num_forwards[direction]++, JOINED_NOT);
}

static void add_backward(DualRank *rank, int direction, WorkKind kind) {
    add(rank, kind, direction, rank->num_backwards[direction]++, JOINED_NOT);
}

// A forward of one direction beside a backward of the other.
static void add_pair(DualRank *rank, int forward) {
    add_forward(rank, forward);
    add_backward(rank, !forward, WORK_BACKWARD);
    rank->out[-1].joined = JOINED_OVERLAP;
}

// The weight part that has waited longest.
static void add_weight(DualRank *rank) {
    while (rank->weight->kind != WORK_BACKWARD_INPUT) rank->weight++;
    *rank->out = *rank->weight++;
    rank->out++->kind = WORK_BACKWARD_WEIGHT;
}

static DualRank rank_start(const ScheduleShape *shape, int rank, WorkItem *items) {
    const bool second_half = rank >= shape->pp / 2;
    DualRank r = {.shape = shape, .begin = items, .out = items, .weight = items};
    for (int d = 0; d < NUM_DIRECTIONS; d++) {
        const bool copy = second_half != (d == FAR);
        r.chunk[d] = copy ? 2 * shape->pp - 1 - rank : rank;
        r.first_microbatch[d] = copy ? shape->num_microbatches / 2 : 0;
    }
    return r;
}

// Forwards until the first backward can run: those of the far direction come `depth` ranks later.
static void fill(DualRank *rank, int depth, int behind) {
    for (int i = 0; i < 2 * behind; i++) add_forward(rank, NEAR);
    for (int i = 0; i <= depth; i++) {
        add_forward(rank, NEAR);
        add_forward(rank, FAR);
    }
    for (int i = 0; i < behind; i++) {
        add_backward(rank, FAR, WORK_BACKWARD_INPUT);
        add_weight(rank);
        add_forward(rank, FAR);
    }
}

// All other forwards, each beside a backward. The middle ranks' first two are not overlapped: the
// next rank is already waiting for the forward.
static void run(DualRank *rank, int depth, int behind) {
    const int num = rank->shape->num_microbatches / 2 - rank->shape->pp + depth + 1;
    for (int i = 0; i < num; i++) {
        add_pair(rank, NEAR);
        if (i == 0 && behind == 0) rank->out[-1].joined = JOINED_NOT;
        add_pair(rank, FAR);
    }
    for (int i = 0; i < behind; i++) {
        add_backward(rank, FAR, WORK_BACKWARD);
        add_pair(rank, FAR);
    }
}

// Backwards alone; of the first 2 (depth + 1) the later half is split, then all are.
static void drain(DualRank *rank, int depth, int behind) {
    for (int i = 0; i < 2 * (depth + 1); i++)
        add_backward(rank, i % 2 ? NEAR : FAR, i <= depth ? WORK_BACKWARD : WORK_BACKWARD_INPUT);
    for (int i = 0; i < behind; i++) {
        add_weight(rank);
        add_backward(rank, NEAR, WORK_BACKWARD_INPUT);
    }
    for (int i = 0; i <= depth; i++) add_weight(rank);
}

// Ranks between this one and the nearer end.
static int depth_of(const ScheduleShape *shape, int rank) {
    return rank < shape->pp / 2 ? rank : shape->pp - 1 - rank;
}

static void dualpipe_order(const ScheduleShape *shape, int rank, WorkItem *items) {
    if (shape->pp == 1) {
        schedule_order_local(shape, items);
        return;
    }
    const int depth = depth_of(shape, rank), behind = shape->pp / 2 - 1 - depth;
    DualRank r = rank_start(shape, rank, items);
    fill(&r, depth, behind);
    run(&r, depth, behind);
    drain(&r, depth, behind);
}

// A forward and a backward of each micro-batch, half of them in each chunk; pp - 1 - depth of the
// backwards are in two parts.
static int dualpipe_num_items(const ScheduleShape *shape, int rank) {
    if (shape->pp == 1) return schedule_num_items_fb(shape, rank);
    return 2 * shape->num_microbatches + shape->pp - 1 - depth_of(shape, rank);
}

static int dualpipe_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    return shape->pp == 1 ? shape->vpp : shape->pp + 1;
}

// (pp / 2 - 1) (F&B + B - 3 W), where B is the whole backward and F&B = F + B: of 3 m.
static double dualpipe_bubble_frac(const ScheduleShape *shape) {
    return shape->pp == 1 ? 0 : (shape->pp - 2) / (3.0 * shape->num_microbatches);
}

const Schedule SCHEDULE_ROW_DUALPIPE = {
    .name = "dualpipe",
    .kind = SCHEDULE_DUALPIPE,
    .mixes_backwards = true,
    .receives_ahead = true,
    .num_items = dualpipe_num_items,
    .order = dualpipe_order,
    .in_flight = dualpipe_in_flight,
    .bubble_frac = dualpipe_bubble_frac,
    .source = "DeepSeek-V3 technical report, 2024, arXiv:2412.19437, section 3.2.1, figure 5 and "
              "table 2: bubble (PP/2 - 1)(F&B + B - 3W), parameters 2x, activations PP + 1; order: "
              "deepseek-ai/DualPipe, dualpipe/dualpipe.py, step",
};
