// The passes of all ranks stand in one queue, in the order in which their inputs are there, and
// each rank takes them from it one by one: so their collectives meet in one order. A rank that is
// idle takes the next pass if it can run, else the next item of its base order. Two items that run
// at the same time are one: no pass comes between them.
//
// Ranks never wait for each other in a circle: a pass asks for nothing but work of the base order
// before it and passes before it in the queue, and a rank takes it as soon as that is done.
#include "plan/schedule/schedule_vocab.h"

#include <assert.h>
#include <limits.h>

enum {
    LOOKUPS_AHEAD = 2, // of the forward of the first chunk that reads them
    MESSAGE_UNITS = 1, // from the end of work on one rank to what follows on another
    MAX_PIPELINES = 2,
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
    int num_chunks, num_pipelines;
    int num_stages; // chunks of one pipeline
    int each;       // micro-batches of one pipeline
    VocabRank *ranks;
    int *end[2];                // [chunk][micro-batch] unit of the end of forward, of backward
    int *pass_end[NUM_PASSES];  // [micro-batch] latest over the ranks that ran it
    int *pass_left[NUM_PASSES]; // ranks that did not

    // [each] micro-batches of a pipeline in the order in which the base order gets to them: lookups
    // by the forwards of the first chunk, S by those of the last, rows by the backwards of the
    // first. T is in the order of S.
    int *sequence[NUM_PASSES][MAX_PIPELINES];
    int num_of[NUM_PASSES][MAX_PIPELINES]; // in the queue so far
    int forwards_begun[MAX_PIPELINES];     // of the first chunk
    QueuedPass *queue;
    int num_queued, num_s, num_t;
    int *s_order; // [num_microbatches] as S stands in the queue
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
    const int stage = chunk % run->num_stages;
    if (item->kind == WORK_BACKWARD_WEIGHT) return true;
    if (item->kind == WORK_FORWARD)
        return stage == 0 ? is_met(run, PASS_LOOKUP, microbatch, unit)
                          : is_past(run->end[0][cell(run, chunk - 1, microbatch)], unit);
    if (stage == run->num_stages - 1)
        return is_met(run, run->shape->vocab.barriers == 1 ? PASS_S : PASS_T, microbatch, unit);
    return is_past(run->end[1][cell(run, chunk + 1, microbatch)], unit);
}

// Items that run at the same time begin together.
static bool items_are_ready(const VocabRun *run, const WorkItem *items, int num, int unit) {
    for (int i = 0; i < num; i++)
        if (!item_is_ready(run, &items[i], unit)) return false;
    return true;
}

// --- The queue

static void queue_add(VocabRun *run, Pass pass, int microbatch) {
    run->queue[run->num_queued++] = (QueuedPass){pass, microbatch};
}

// The next micro-batch of a pipeline.
static void queue_add_next(VocabRun *run, Pass pass, int pipeline) {
    queue_add(run, pass, run->sequence[pass][pipeline][run->num_of[pass][pipeline]++]);
}

static void queue_add_t(VocabRun *run) {
    queue_add(run, PASS_T, run->s_order[run->num_t++]);
}

// Whether the next pass of a pipeline may go into the queue. The rows' gradient has all time: one
// micro-batch more keeps it from holding up others.
static bool next_is_due(const VocabRun *run, Pass pass, int pipeline, int unit) {
    const int first = pipeline * run->num_stages, last = first + run->num_stages - 1;
    const int num = run->num_of[pass][pipeline], *sequence = run->sequence[pass][pipeline];
    if (num == run->each) return false;
    if (pass == PASS_LOOKUP) return num < run->forwards_begun[pipeline] + LOOKUPS_AHEAD;
    if (pass == PASS_S) return is_past(run->end[0][cell(run, last, sequence[num])], unit);
    const int later = num + 1 < run->each ? num + 1 : num;
    return is_past(run->end[1][cell(run, first, sequence[later])], unit);
}

// With one barrier T may wait for the S of the micro-batch after it in its pipeline.
static void queue_add_s(VocabRun *run, int pipeline) {
    if (run->shape->vocab.barriers == 1 && run->num_s - run->num_t >= run->num_pipelines)
        queue_add_t(run);
    queue_add_next(run, PASS_S, pipeline);
    run->s_order[run->num_s++] = run->queue[run->num_queued - 1].microbatch;
}

// Of two pipelines the passes come in turn.
static void queue_add_due(VocabRun *run, Pass pass, int unit) {
    for (bool more = true; more;) {
        more = false;
        for (int p = 0; p < run->num_pipelines; p++) {
            if (!next_is_due(run, pass, p, unit)) continue;
            if (pass == PASS_S)
                queue_add_s(run, p);
            else
                queue_add_next(run, pass, p);
            more = true;
        }
    }
}

// With two barriers T makes the gradient that the last chunk waits for.
static void queue_extend(VocabRun *run, int unit) {
    const bool all_s = run->num_s == run->shape->num_microbatches;
    queue_add_due(run, PASS_LOOKUP, unit);
    while ((all_s || run->shape->vocab.barriers == 2) && run->num_t < run->num_s &&
           is_met(run, PASS_S, run->s_order[run->num_t], unit))
        queue_add_t(run);
    queue_add_due(run, PASS_S, unit);
    queue_add_due(run, PASS_ROWS, unit);
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

// Messages are asynchronous: no group of them joins an item to the one before it.
static void items_run(VocabRun *run, VocabRank *r, const WorkItem *items, int num, int unit) {
    r->free_unit = unit;
    for (int i = 0; i < num; i++) {
        *r->out = items[i];
        if (r->out->joined == JOINED_MESSAGES) r->out->joined = JOINED_NOT;
        r->out++;
        r->free_unit += run->shape->vocab.chunk_units[items[i].kind];
    }
    for (int i = 0; i < num; i++) {
        const WorkItem *item = &items[i];
        const bool forward = item->kind == WORK_FORWARD;
        if (forward && item->chunk % run->num_stages == 0)
            run->forwards_begun[item->chunk / run->num_stages]++;
        if (item->kind != WORK_BACKWARD_WEIGHT)
            run->end[!forward][cell(run, item->chunk, item->microbatch)] = r->free_unit;
    }
}

// Returns the number of items and passes that the rank began.
static int rank_advance(VocabRun *run, int rank, int unit) {
    VocabRank *r = &run->ranks[rank];
    if (r->free_unit > unit) return 0;
    if (r->next_pass < run->num_queued) {
        const QueuedPass *queued = &run->queue[r->next_pass];
        if (queued->pass != PASS_T || is_met(run, PASS_S, queued->microbatch, unit)) {
            r->next_pass++;
            pass_run(run, r, queued, unit);
            return 1;
        }
    }
    const int num_left = run->base[rank].num_items - r->next_base;
    const WorkItem *items = &run->base[rank].items[r->next_base];
    if (num_left == 0) return 0;
    const int num = num_left > 1 && items[1].joined == JOINED_OVERLAP ? 2 : 1;
    if (!items_are_ready(run, items, num, unit)) return 0;
    r->next_base += num;
    items_run(run, r, items, num, unit);
    return num;
}

// --- All ranks

// In which order the base order gets to the micro-batches of each pipeline.
static void sequences_find(VocabRun *run, Arena *arena) {
    int num[NUM_PASSES][MAX_PIPELINES] = {0};
    for (int pass = 0; pass < NUM_PASSES; pass++)
        for (int p = 0; p < run->num_pipelines; p++)
            run->sequence[pass][p] = ARENA_ARRAY(arena, run->each, int);
    for (int r = 0; r < run->shape->pp; r++)
        for (int i = 0; i < run->base[r].num_items; i++) {
            const WorkItem *item = &run->base[r].items[i];
            const int p = item->chunk / run->num_stages, stage = item->chunk % run->num_stages;
            const bool forward = item->kind == WORK_FORWARD;
            if (item->kind == WORK_BACKWARD_WEIGHT) continue;
            if (stage == 0) {
                const Pass pass = forward ? PASS_LOOKUP : PASS_ROWS;
                run->sequence[pass][p][num[pass][p]++] = item->microbatch;
            }
            if (stage == run->num_stages - 1 && forward)
                run->sequence[PASS_S][p][num[PASS_S][p]++] = item->microbatch;
        }
}

static VocabRun run_start(const ScheduleShape *shape, const RankOrder *base, int num_pipelines,
                          Arena *arena) {
    const int pp = shape->pp, n = shape->num_microbatches, num_chunks = pp * shape->vpp;
    VocabRun run = {.shape = shape, .base = base, .num_chunks = num_chunks};
    run.num_pipelines = num_pipelines;
    run.num_stages = num_chunks / num_pipelines;
    run.each = n / num_pipelines;
    run.ranks = ARENA_ARRAY(arena, pp, VocabRank);
    run.queue = ARENA_ARRAY(arena, NUM_PASSES * n, QueuedPass);
    run.s_order = ARENA_ARRAY(arena, n, int);
    for (int back = 0; back < 2; back++) {
        run.end[back] = ARENA_ARRAY(arena, (size_t)num_chunks * (size_t)n, int);
        for (int i = 0; i < num_chunks * n; i++) run.end[back][i] = NOT_YET;
    }
    for (int pass = 0; pass < NUM_PASSES; pass++) {
        run.pass_end[pass] = ARENA_ARRAY(arena, n, int);
        run.pass_left[pass] = ARENA_ARRAY(arena, n, int);
        for (int m = 0; m < n; m++) run.pass_left[pass][m] = pp;
    }
    sequences_find(&run, arena);
    return run;
}

// Work items of the passes of a rank: S is two with one barrier.
static int num_pass_items(const ScheduleShape *shape) {
    return (NUM_PASSES + (shape->vocab.barriers == 1)) * shape->num_microbatches;
}

const RankOrder *vocab_orders(const ScheduleShape *shape, const RankOrder *base, int num_pipelines,
                              Arena *arena) {
    const int pp = shape->pp;
    VocabRun run = run_start(shape, base, num_pipelines, arena);
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
