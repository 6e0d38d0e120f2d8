// The passes of all ranks stand in one queue, in the order in which their inputs are there, and
// each rank takes them from it one by one: so their collectives meet in one order. A rank that is
// idle takes the next pass if it can run, else the next item of its base order.
#include "workload/schedule_vocab.h"

#include <assert.h>
#include <limits.h>

enum {
    LOOKUPS_AHEAD = 2, // of the forward of the first chunk that reads them
    MESSAGE_UNITS = 1, // from the end of work on one rank to what follows on another
    NOT_YET = INT_MAX,
};

typedef enum { PASS_LOOKUP, PASS_S, PASS_T, PASS_ROWS, NUM_PASSES } Pass;

typedef struct {
    Pass pass;
    int microbatch;
} QueuedPass;

typedef struct {
    int free_unit; // when it is done with what it runs
    int next_base, next_pass;
    WorkItem *out;
} VocabRank;

typedef struct {
    const ScheduleShape *shape;
    const RankOrder *base; // [pp]
    int num_chunks;
    VocabRank *ranks;
    int *end[2];                // [chunk][micro-batch] unit of the end of forward, of backward
    int *pass_end[NUM_PASSES];  // [micro-batch] latest over the ranks that ran it
    int *pass_left[NUM_PASSES]; // ranks that did not
    QueuedPass *queue;
    int num_queued, num_of[NUM_PASSES]; // in the queue so far: all, of each
    int forwards_begun;                 // of the first chunk
} VocabRun;

// --- When inputs are there

static int cell(const VocabRun *run, int chunk, int microbatch) {
    return chunk * run->shape->num_microbatches + microbatch;
}

static bool is_past(int end, int unit) {
    return end != NOT_YET && end + MESSAGE_UNITS <= unit;
}

// Whether all ranks have run a pass.
static bool is_met(const VocabRun *run, Pass pass, int microbatch, int unit) {
    return run->pass_left[pass][microbatch] == 0 && is_past(run->pass_end[pass][microbatch], unit);
}

static bool item_is_ready(const VocabRun *run, const WorkItem *item, int unit) {
    const int chunk = item->chunk, microbatch = item->microbatch;
    if (item->kind == WORK_BACKWARD_WEIGHT) return true;
    if (item->kind == WORK_FORWARD)
        return chunk == 0 ? is_met(run, PASS_LOOKUP, microbatch, unit)
                          : is_past(run->end[0][cell(run, chunk - 1, microbatch)], unit);
    if (chunk == run->num_chunks - 1)
        return is_met(run, run->shape->vocab.barriers == 1 ? PASS_S : PASS_T, microbatch, unit);
    return is_past(run->end[1][cell(run, chunk + 1, microbatch)], unit);
}

static void queue_add(VocabRun *run, Pass pass) {
    run->queue[run->num_queued++] = (QueuedPass){pass, run->num_of[pass]++};
}

// T makes the gradient that the last chunk waits for, with two barriers; else it may wait for the
// next S. The rows' gradient has all time: one micro-batch more keeps it from holding up others.
static void queue_extend(VocabRun *run, int unit) {
    const int n = run->shape->num_microbatches;
    int *num = run->num_of;
    while (num[PASS_LOOKUP] < n && num[PASS_LOOKUP] < run->forwards_begun + LOOKUPS_AHEAD)
        queue_add(run, PASS_LOOKUP);
    while (num[PASS_T] < num[PASS_S] && is_met(run, PASS_S, num[PASS_T], unit) &&
           (run->shape->vocab.barriers == 2 || num[PASS_S] == n))
        queue_add(run, PASS_T);
    while (num[PASS_S] < n &&
           is_past(run->end[0][cell(run, run->num_chunks - 1, num[PASS_S])], unit)) {
        if (run->shape->vocab.barriers == 1 && num[PASS_S] > 0) queue_add(run, PASS_T);
        queue_add(run, PASS_S);
    }
    while (num[PASS_ROWS] < n) {
        const int later = num[PASS_ROWS] + 1 < n ? num[PASS_ROWS] + 1 : n - 1;
        if (!is_past(run->end[1][cell(run, 0, later)], unit)) break;
        queue_add(run, PASS_ROWS);
    }
}

// --- One rank

// One piece of a pass. Returns its units.
static int piece_run(const VocabRun *run, VocabRank *r, int vocab_chunk, WorkKind kind,
                     int microbatch) {
    *r->out++ = (WorkItem){.kind = (uint8_t)kind,
                           .chunk = (int16_t)(run->num_chunks + vocab_chunk),
                           .microbatch = microbatch};
    return run->shape->vocab.pass_units[vocab_chunk][kind];
}

static void pass_run(VocabRun *run, VocabRank *r, const QueuedPass *queued, int unit) {
    const bool one = run->shape->vocab.barriers == 1;
    const int microbatch = queued->microbatch;
    int units = 0;
    switch (queued->pass) {
    case PASS_LOOKUP:
        units = piece_run(run, r, VOCAB_INPUT, WORK_FORWARD, microbatch);
        break;
    case PASS_S:
        units = piece_run(run, r, VOCAB_OUTPUT, WORK_FORWARD, microbatch);
        if (one) units += piece_run(run, r, VOCAB_OUTPUT, WORK_BACKWARD_INPUT, microbatch);
        break;
    case PASS_T:
        units =
            piece_run(run, r, VOCAB_OUTPUT, one ? WORK_BACKWARD_WEIGHT : WORK_BACKWARD, microbatch);
        break;
    case PASS_ROWS:
    case NUM_PASSES:
        units = piece_run(run, r, VOCAB_INPUT, WORK_BACKWARD, microbatch);
        break;
    }
    r->free_unit = unit + units;
    run->pass_left[queued->pass][microbatch]--;
    int *end = &run->pass_end[queued->pass][microbatch];
    if (r->free_unit > *end) *end = r->free_unit;
}

static void item_run(VocabRun *run, VocabRank *r, const WorkItem *item, int unit) {
    *r->out++ = *item;
    r->free_unit = unit + run->shape->vocab.chunk_units[item->kind];
    run->forwards_begun += item->kind == WORK_FORWARD && item->chunk == 0;
    if (item->kind == WORK_BACKWARD_WEIGHT) return;
    run->end[item->kind != WORK_FORWARD][cell(run, item->chunk, item->microbatch)] = r->free_unit;
}

// Returns whether the rank began something.
static bool rank_advance(VocabRun *run, int rank, int unit) {
    VocabRank *r = &run->ranks[rank];
    if (r->free_unit > unit) return false;
    if (r->next_pass < run->num_queued) {
        const QueuedPass *queued = &run->queue[r->next_pass];
        if (queued->pass != PASS_T || is_met(run, PASS_S, queued->microbatch, unit)) {
            r->next_pass++;
            pass_run(run, r, queued, unit);
            return true;
        }
    }
    if (r->next_base == run->base[rank].num_items) return false;
    const WorkItem *item = &run->base[rank].items[r->next_base];
    if (!item_is_ready(run, item, unit)) return false;
    r->next_base++;
    item_run(run, r, item, unit);
    return true;
}

// --- All ranks

static VocabRun run_start(const ScheduleShape *shape, const RankOrder *base, Arena *arena) {
    const int pp = shape->pp, n = shape->num_microbatches, num_chunks = pp * shape->vpp;
    VocabRun run = {.shape = shape, .base = base, .num_chunks = num_chunks};
    run.ranks = ARENA_ARRAY(arena, pp, VocabRank);
    run.queue = ARENA_ARRAY(arena, NUM_PASSES * n, QueuedPass);
    for (int back = 0; back < 2; back++) {
        run.end[back] = ARENA_ARRAY(arena, (size_t)num_chunks * (size_t)n, int);
        for (int i = 0; i < num_chunks * n; i++) run.end[back][i] = NOT_YET;
    }
    for (int pass = 0; pass < NUM_PASSES; pass++) {
        run.pass_end[pass] = ARENA_ARRAY(arena, n, int);
        run.pass_left[pass] = ARENA_ARRAY(arena, n, int);
        for (int m = 0; m < n; m++) run.pass_left[pass][m] = pp;
    }
    return run;
}

// Work items of the passes of a rank: S is two with one barrier.
static int num_pass_items(const ScheduleShape *shape) {
    return (NUM_PASSES + (shape->vocab.barriers == 1)) * shape->num_microbatches;
}

const RankOrder *vocab_orders(const ScheduleShape *shape, const RankOrder *base, Arena *arena) {
    const int pp = shape->pp;
    VocabRun run = run_start(shape, base, arena);
    RankOrder *orders = ARENA_ARRAY(arena, pp, RankOrder);
    int64_t num_left = 0;
    for (int r = 0; r < pp; r++) {
        orders[r].num_items = base[r].num_items + num_pass_items(shape);
        orders[r].items = run.ranks[r].out = ARENA_ARRAY(arena, orders[r].num_items, WorkItem);
        num_left += base[r].num_items + NUM_PASSES * shape->num_microbatches;
    }
    for (int unit = 0; num_left > 0; unit++) {
        queue_extend(&run, unit);
        int busy_until = 0;
        for (int r = 0; r < pp; r++) {
            num_left -= rank_advance(&run, r, unit);
            if (run.ranks[r].free_unit > busy_until) busy_until = run.ranks[r].free_unit;
        }
        // Else nothing would ever begin again.
        assert(num_left == 0 || unit <= busy_until + MESSAGE_UNITS);
    }
    return orders;
}
