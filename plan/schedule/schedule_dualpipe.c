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
// Where the vocabulary is spread over the ranks, each barrier puts all backwards of a rank one
// forward later: F&B is then a forward beside the backward that came before, with one barrier of
// the same direction. Both directions share the rank's rows of the vocabulary, of which there is no
// copy, and their passes come in turn.
//
// Messages are asynchronous, as the paper says ("both all-to-all and PP communication can be fully
// hidden"). What F&B hides inside its layers is the training's `ep_overlap`: here it takes as long
// as F and B.
#include "plan/schedule/schedule_rows.h"

#include <assert.h>

enum { NEAR, FAR, NUM_DIRECTIONS };

enum { MAX_DELAYED = 8 };

// A backward, or a part of one, that comes behind so many forwards of the rank.
typedef struct {
    WorkItem item;
    int num_forwards;
} Delayed;

typedef struct {
    const ScheduleShape *shape;
    int chunk[NUM_DIRECTIONS];            // of the rank
    int first_microbatch[NUM_DIRECTIONS]; // of the direction
    int num_forwards[NUM_DIRECTIONS], num_backwards[NUM_DIRECTIONS];
    WorkItem *out;
    WorkItem *weight; // the first input part whose weight part is still to come
    Delayed delayed[MAX_DELAYED];
    int num_delayed;
} DualRank;

static int all_forwards(const DualRank *rank) {
    return rank->num_forwards[NEAR] + rank->num_forwards[FAR];
}

// Writes a part of a backward: as weight part that of the input part that has waited longest.
static void backward_write(DualRank *rank, const WorkItem *item) {
    *rank->out = *item;
    if (item->kind == WORK_BACKWARD_WEIGHT) {
        while (rank->weight->kind != WORK_BACKWARD_INPUT) rank->weight++;
        *rank->out = *rank->weight++;
        rank->out->kind = WORK_BACKWARD_WEIGHT;
    }
    // Beside a forward only where that is right before it.
    if (item->joined && rank->out[-1].kind != WORK_FORWARD) rank->out->joined = JOINED_NOT;
    rank->out++;
}

// Writes the backwards whose forwards are there, or can no longer come.
static void delayed_write(DualRank *rank) {
    const bool last = all_forwards(rank) == rank->shape->num_microbatches;
    int num = 0;
    while (num < rank->num_delayed &&
           (last || rank->delayed[num].num_forwards <= all_forwards(rank)))
        backward_write(rank, &rank->delayed[num++].item);
    rank->num_delayed -= num;
    for (int i = 0; i < rank->num_delayed; i++) rank->delayed[i] = rank->delayed[i + num];
}

static void add_forward(DualRank *rank, int direction) {
    *rank->out++ =
        (WorkItem){.kind = WORK_FORWARD,
                   .chunk = (int16_t)rank->chunk[direction],
                   .microbatch = rank->first_microbatch[direction] + rank->num_forwards[direction]};
    rank->num_forwards[direction]++;
    delayed_write(rank);
}

static void add_delayed(DualRank *rank, WorkItem item) {
    assert(rank->num_delayed < MAX_DELAYED);
    rank->delayed[rank->num_delayed++] =
        (Delayed){item, all_forwards(rank) + rank->shape->vocab.barriers};
    delayed_write(rank);
}

static void add_backward_joined(DualRank *rank, int direction, WorkKind kind, Joined joined) {
    add_delayed(rank, (WorkItem){.kind = (uint8_t)kind,
                                 .joined = (uint8_t)joined,
                                 .chunk = (int16_t)rank->chunk[direction],
                                 .microbatch = rank->first_microbatch[direction] +
                                               rank->num_backwards[direction]++});
}

static void add_backward(DualRank *rank, int direction, WorkKind kind) {
    add_backward_joined(rank, direction, kind, JOINED_NOT);
}

// A forward of one direction beside a backward of the other.
static void add_pair(DualRank *rank, int forward, Joined joined) {
    add_forward(rank, forward);
    add_backward_joined(rank, !forward, WORK_BACKWARD, joined);
}

// The weight part that has waited longest.
static void add_weight(DualRank *rank) {
    add_delayed(rank, (WorkItem){.kind = WORK_BACKWARD_WEIGHT});
}

static DualRank rank_start(const ScheduleShape *shape, int rank, WorkItem *items) {
    const bool second_half = rank >= shape->pp / 2;
    DualRank r = {.shape = shape, .out = items, .weight = items};
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
        add_pair(rank, NEAR, i == 0 && behind == 0 ? JOINED_NOT : JOINED_OVERLAP);
        add_pair(rank, FAR, JOINED_OVERLAP);
    }
    for (int i = 0; i < behind; i++) {
        add_backward(rank, FAR, WORK_BACKWARD);
        add_pair(rank, FAR, JOINED_OVERLAP);
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

// PP + 1, and one more for each barrier, as in 1F1B (Yeung et al. 2024, arXiv:2411.05288, section
// 6).
static int dualpipe_in_flight(const ScheduleShape *shape, int rank) {
    (void)rank;
    const int most = shape->pp + 1 + shape->vocab.barriers;
    if (shape->pp == 1) return shape->vpp;
    return most < shape->num_microbatches ? most : shape->num_microbatches;
}

// What barriers add where passes take no time, of F = B = W = 1. The first backward of an outer
// rank follows its first far forward; with one barrier it follows the second, which comes 2 later,
// as inner ranks run near and far ones in turn. With two it follows the third, which comes 4 later;
// that a step then takes 5 more (2 with pp 4) is what running the orders says, not a derivation.
static int barriers_bubble(const ScheduleShape *shape) {
    if (shape->pp == 2 || shape->vocab.barriers == 0) return 0;
    return shape->vocab.barriers == 1 || shape->pp == 4 ? 2 : 5;
}

// (pp / 2 - 1) (F&B + B - 3 W), where B is the whole backward and F&B = F + B: of 3 m.
static double dualpipe_bubble_frac(const ScheduleShape *shape) {
    if (shape->pp == 1) return 0;
    return (shape->pp - 2 + barriers_bubble(shape)) / (3.0 * shape->num_microbatches);
}

const Schedule SCHEDULE_ROW_DUALPIPE = {
    .kind = SCHEDULE_DUALPIPE,
    .placement = PLACEMENT_DUAL,
    .num_chunks = 2,
    .least_microbatches = 2,
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
