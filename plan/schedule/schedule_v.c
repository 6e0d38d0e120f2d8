#include "plan/schedule/schedule_v.h"

#include <limits.h>

enum { NUM_PASSES = 4, PERIOD = 6 }; // F1, F2, B2, B1; and two weight backwards

static const int PASS_CHUNK[NUM_PASSES] = {0, 1, 1, 0};

typedef struct {
    int start[NUM_PASSES];         // unit in which micro-batch 0 begins a pass
    int next[NUM_PASSES];          // micro-batches so far
    int weight_begun, weight_made; // of the list below
    WorkItem *weights;             // input backwards done, in their order, whose W is still to do
    int held;                      // chunk inputs
    WorkItem *out;
} VRank;

typedef struct {
    const ScheduleShape *shape;
    int limit;
    bool fills;
    VRank *ranks;
    int *end; // [rank][pass][micro-batch] unit in which it ends; INT_MAX before
} VRun;

// A barrier in the output layer puts its backward off by one period.
static VBlock with_barriers(const VBlock *block, int num_barriers) {
    VBlock later = *block;
    later.delay[0] += PERIOD * num_barriers;
    later.limit += 2 * num_barriers;
    return later;
}

int v_in_flight(const ScheduleShape *shape, const VBlock *block) {
    const int all = shape->vpp * shape->num_microbatches;
    const int limit = with_barriers(block, shape->vocab.barriers).limit;
    if (shape->pp == 1) return shape->vpp;
    return limit < all ? limit : all;
}

static void starts_set(const VBlock *block, int pp, int rank, int *start) {
    const int back = pp - 1 - rank, last = pp - 1;
    start[0] = rank * block->step[0];
    start[1] = last * block->step[0] + 1 + back * block->step[1];
    start[2] =
        last * (block->step[0] + block->step[1]) + 2 + block->delay[0] + rank * block->step[2];
    start[3] = last * (block->step[0] + block->step[1] + block->step[2]) + 3 + block->delay[0] +
               block->delay[1] + back * block->step[3];
}

static int *end_of(const VRun *run, int rank, int pass, int microbatch) {
    return &run->end[(rank * NUM_PASSES + pass) * run->shape->num_microbatches + microbatch];
}

// When the input of a pass is there: from the rank before it in the direction of the pass, or from
// the pass before on the rank where that turns.
static int input_end(const VRun *run, int rank, int pass, int microbatch) {
    const int last = run->shape->pp - 1;
    const bool down = pass % 2 == 0;
    if (rank == (down ? 0 : last)) return pass == 0 ? 0 : *end_of(run, rank, pass - 1, microbatch);
    return *end_of(run, down ? rank - 1 : rank + 1, pass, microbatch);
}

// The pass that comes next in the order of the building blocks; -1 after the last.
static int pass_next(const VRun *run, const VRank *r) {
    int next = -1, first = INT_MAX;
    for (int pass = 0; pass < NUM_PASSES; pass++) {
        const int start = r->start[pass] + PERIOD * r->next[pass];
        if (r->next[pass] == run->shape->num_microbatches || start >= first) continue;
        next = pass;
        first = start;
    }
    return next;
}

static WorkItem item_of(const VRun *run, int rank, int pass, int microbatch, WorkKind kind) {
    const int pp = run->shape->pp;
    return (WorkItem){.kind = (uint8_t)kind,
                      .chunk = (int16_t)(PASS_CHUNK[pass] == 0 ? rank : 2 * pp - 1 - rank),
                      .microbatch = microbatch};
}

static void pass_run(VRun *run, int rank, int pass, int unit) {
    VRank *r = &run->ranks[rank];
    const int microbatch = r->next[pass]++;
    const bool forward = pass < 2;
    *r->out++ = item_of(run, rank, pass, microbatch, forward ? WORK_FORWARD : WORK_BACKWARD_INPUT);
    *end_of(run, rank, pass, microbatch) = unit + 1;
    if (forward)
        r->held++;
    else
        r->weights[r->weight_made++] = item_of(run, rank, pass, microbatch, WORK_BACKWARD_WEIGHT);
}

// Whether the next forward of the first chunk can be run before what comes first. One place is left
// for the forward of the second chunk that gives the others back.
static bool may_run_early(const VRun *run, int rank, int unit) {
    const VRank *r = &run->ranks[rank];
    return r->next[0] < run->shape->num_microbatches && r->held + 1 < run->limit &&
           input_end(run, rank, 0, r->next[0]) <= unit;
}

// One unit of one rank. Returns the number of items run: 0 or 1.
static int rank_advance(VRun *run, int rank, int unit) {
    VRank *r = &run->ranks[rank];
    const int pass = pass_next(run, r);
    const bool ready = pass >= 0 && input_end(run, rank, pass, r->next[pass]) <= unit;
    if (ready && (pass >= 2 || r->held < run->limit)) {
        pass_run(run, rank, pass, unit);
        return 1;
    }
    if (run->fills && may_run_early(run, rank, unit)) {
        pass_run(run, rank, 0, unit);
        return 1;
    }
    if (r->weight_begun == r->weight_made) return 0;
    *r->out++ = r->weights[r->weight_begun++];
    r->held--;
    return 1;
}

void v_orders(const ScheduleShape *shape, const VBlock *block, Arena *scratch,
              const RankOrder *orders) {
    if (shape->pp == 1) {
        schedule_order_local_split(shape, orders[0].items);
        return;
    }
    const int pp = shape->pp, n = shape->num_microbatches;
    const VBlock later = with_barriers(block, shape->vocab.barriers);
    VRun run = {.shape = shape, .limit = later.limit, .fills = later.fills};
    run.ranks = ARENA_ARRAY(scratch, pp, VRank);
    run.end = ARENA_ARRAY(scratch, (size_t)pp * NUM_PASSES * (size_t)n, int);
    for (int i = 0; i < pp * NUM_PASSES * n; i++) run.end[i] = INT_MAX;
    for (int r = 0; r < pp; r++) {
        starts_set(&later, pp, r, run.ranks[r].start);
        run.ranks[r].weights = ARENA_ARRAY(scratch, 2 * (size_t)n, WorkItem);
        run.ranks[r].out = orders[r].items;
    }
    int num_left = 0;
    for (int r = 0; r < pp; r++) num_left += orders[r].num_items;
    for (int unit = 0; num_left > 0; unit++)
        for (int r = 0; r < pp; r++) num_left -= rank_advance(&run, r, unit);
}
