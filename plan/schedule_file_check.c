// An order of the user's own against the plan it is for. First each line by itself: everything
// once. Then all together, by running them: a rank goes on until an input is missing.
#include "plan/plan.h"
#include "plan/schedule_file.h"

typedef struct {
    const ScheduleFile *read;
    const Plan *plan;
    Arena *arena;
    int num_microbatches;
    RankOrder *orders; // [pp] as they will be
    // [NUM_WORK_KINDS][num_chunks x num_microbatches] 1 + position in its line; 0: not there. Input
    // parts count as backwards.
    int *position[NUM_WORK_KINDS];
} Binder;

static int *position_of(const Binder *b, int kind, int chunk, int microbatch) {
    const int as = kind == WORK_BACKWARD_INPUT ? WORK_BACKWARD : kind;
    return &b->position[as][chunk * b->num_microbatches + microbatch];
}

static const char *text_of(const Binder *b, int kind, int chunk, int microbatch) {
    const WorkItem item = {
        .kind = (uint8_t)kind, .chunk = (int16_t)chunk, .microbatch = microbatch};
    return work_item_text(b->plan, &item, b->arena);
}

#define REFUSE_ITEM(b, rank, i, ...)                                                               \
    return refuse_item((b)->read, rank, i, arena_printf((b)->arena, __VA_ARGS__))

static Status refuse_item(const ScheduleFile *file, int rank, int i, const char *sentence) {
    char place[80];
    snprintf(place, sizeof place, "line %d: rank %d, item %d", file->lines[rank], rank, i + 1);
    return status_at(STATUS_INVALID, file->file, place, "%s", sentence);
}

// --- Each item

// The micro-batches of a chunk: of dual pipelines the first half, or the second.
static void microbatches_of(const Binder *b, int chunk, int *first, int *last) {
    const int each = (int)plan_chunk_microbatches(b->plan);
    *first = plan_is_dual(b->plan) && chunk >= b->plan->pp ? each : 0;
    *last = *first + each - 1;
}

static Status chunk_set(const Binder *b, int rank, int i, WorkItem *item) {
    const int vpp = b->plan->vpp;
    if (item->chunk < 0 && vpp > 1)
        REFUSE_ITEM(b, rank, i, "%c%d names no chunk; expected .0 to .%d after it, as vpp is %d",
                    "FBBW"[item->kind], item -> microbatch, vpp - 1, vpp);
    if (item->chunk >= vpp)
        REFUSE_ITEM(b, rank, i, "chunk %d; expected 0 to %d, as vpp is %d", item->chunk, vpp - 1,
                    vpp);
    item->chunk = (int16_t)plan_rank_chunk(b->plan, rank, item->chunk < 0 ? 0 : item->chunk);
    int first, last;
    microbatches_of(b, item->chunk, &first, &last);
    if (item->microbatch < first || item->microbatch > last)
        REFUSE_ITEM(b, rank, i, "micro-batch %d; the plan has %d to %d for this chunk",
                    item->microbatch, first, last);
    return status_ok();
}

// What stands before it, where an item is joined to that.
static Status joint_check(const Binder *b, int rank, int i, const WorkItem *item) {
    if (item->joined == JOINED_NOT) return status_ok();
    const WorkItem *before = i > 0 ? item - 1 : NULL;
    if (item->kind != WORK_BACKWARD || !before || before->kind != WORK_FORWARD)
        REFUSE_ITEM(b, rank, i, "%c joins a B to the F right before it",
                    item->joined == JOINED_OVERLAP ? '&' : '+');
    const bool same = before->chunk == item->chunk && before->microbatch == item->microbatch;
    if (item->joined == JOINED_OVERLAP && same)
        REFUSE_ITEM(b, rank, i, "& runs both at the same time, but this B needs that F");
    return status_ok();
}

static Status line_bind(const Binder *b, int rank) {
    const RankOrder *read = &b->read->orders[rank];
    RankOrder *order = &b->orders[rank];
    *order = (RankOrder){ARENA_ARRAY(b->arena, read->num_items, WorkItem), read->num_items};
    for (int i = 0; i < read->num_items; i++) {
        WorkItem *item = &order->items[i];
        *item = read->items[i];
        TRY(chunk_set(b, rank, i, item));
        TRY(joint_check(b, rank, i, item));
        int *position = position_of(b, item->kind, item->chunk, item->microbatch);
        if (*position)
            REFUSE_ITEM(b, rank, i, "%s stands here twice, first as item %d",
                        text_of(b, item->kind, item->chunk, item->microbatch), *position);
        *position = i + 1;
    }
    return status_ok();
}

static Status refuse_missing(const Binder *b, int rank, int kind, int chunk, int microbatch) {
    const int num_items = b->orders[rank].num_items;
    char place[80];
    snprintf(place, sizeof place, "line %d: rank %d", b->read->lines[rank], rank);
    return status_at(STATUS_INVALID, b->read->file, place,
                     "%s is missing; the line ends with item %d",
                     text_of(b, kind, chunk, microbatch), num_items);
}

// One forward and one backward of everything; a W stands for none by itself.
static Status line_complete(const Binder *b, int rank) {
    for (int k = 0; k < b->plan->vpp; k++) {
        const int chunk = plan_rank_chunk(b->plan, rank, k);
        int first, last;
        microbatches_of(b, chunk, &first, &last);
        for (int m = first; m <= last; m++)
            for (int kind = WORK_FORWARD; kind <= WORK_BACKWARD; kind++)
                if (!*position_of(b, kind, chunk, m))
                    return refuse_missing(b, rank, kind, chunk, m);
    }
    return status_ok();
}

// Where a micro-batch has a W, its B is the input part.
static void backwards_split(const Binder *b, ScheduleFile *out) {
    int num_whole = 0, num_split = 0;
    for (int rank = 0; rank < b->plan->pp; rank++)
        for (int i = 0; i < b->orders[rank].num_items; i++) {
            WorkItem *item = &b->orders[rank].items[i];
            if (item->kind != WORK_BACKWARD) continue;
            const bool split =
                *position_of(b, WORK_BACKWARD_WEIGHT, item->chunk, item->microbatch) > 0;
            if (split) item->kind = WORK_BACKWARD_INPUT;
            *(split ? &num_split : &num_whole) += 1;
        }
    out->splits_backward = num_whole == 0;
    out->mixes_backwards = num_whole > 0 && num_split > 0;
}

// --- All together

typedef struct {
    const Binder *binder;
    int *next; // [pp]
} Run;

static bool is_done(const Run *run, int kind, int chunk, int microbatch) {
    const int rank = plan_chunk_rank(run->binder->plan, chunk);
    return run->next[rank] >= *position_of(run->binder, kind, chunk, microbatch);
}

// An input of an item that is not there yet: true, and which. The first chunk of a model needs none
// for its forwards, the last one none of another chunk for its backwards.
static bool input_is_missing(const Run *run, const WorkItem *item, WorkItem *input) {
    const int num_stages = plan_num_stages(run->binder->plan), stage = item->chunk % num_stages;
    const int m = item->microbatch;
    *input = (WorkItem){.kind = WORK_FORWARD, .chunk = item->chunk, .microbatch = m};
    if (item->kind == WORK_BACKWARD_WEIGHT) {
        input->kind = WORK_BACKWARD;
    } else if (item->kind == WORK_FORWARD) {
        if (stage == 0) return false;
        input->chunk--;
    } else if (is_done(run, WORK_FORWARD, item->chunk, m)) {
        if (stage == num_stages - 1) return false;
        input->kind = WORK_BACKWARD;
        input->chunk++;
    }
    return !is_done(run, input->kind, input->chunk, m);
}

// Items that run together from `first` on, none of which may lack an input.
static int step_size(const Run *run, int rank, int first, WorkItem *missing) {
    const RankOrder *order = &run->binder->orders[rank];
    int end = first + 1;
    if (end < order->num_items && order->items[end].joined == JOINED_OVERLAP) end++;
    for (int i = first; i < end; i++)
        if (input_is_missing(run, &order->items[i], missing)) return 0;
    return end - first;
}

static Status refuse_stuck(const Run *run, int rank, const WorkItem *missing) {
    const Binder *b = run->binder;
    const int i = run->next[rank], of = plan_chunk_rank(b->plan, missing->chunk);
    const int at = *position_of(b, missing->kind, missing->chunk, missing->microbatch);
    const WorkItem *item = &b->orders[rank].items[i];
    const char *text = text_of(b, item->kind, item->chunk, item->microbatch);
    const char *input = text_of(b, missing->kind, missing->chunk, missing->microbatch);
    if (of == rank) REFUSE_ITEM(b, rank, i, "%s needs %s, which is item %d", text, input, at);
    REFUSE_ITEM(b, rank, i,
                "%s needs %s of rank %d, item %d there, which rank %d never gets to: it "
                "is stopped at its item %d",
                text, input, of, at, of, run->next[of] + 1);
}

// Of the ranks that stopped, names one that stopped itself, if there is one.
static Status run_check(const Binder *b) {
    Run run = {.binder = b, .next = ARENA_ARRAY(b->arena, b->plan->pp, int)};
    WorkItem missing;
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < b->plan->pp; rank++)
            while (run.next[rank] < b->orders[rank].num_items) {
                const int num = step_size(&run, rank, run.next[rank], &missing);
                if (num == 0) break;
                run.next[rank] += num;
                moved = true;
            }
    }
    int stuck = -1;
    for (int rank = 0; rank < b->plan->pp; rank++) {
        if (run.next[rank] == b->orders[rank].num_items) continue;
        step_size(&run, rank, run.next[rank], &missing);
        if (plan_chunk_rank(b->plan, missing.chunk) == rank)
            return refuse_stuck(&run, rank, &missing);
        if (stuck < 0) stuck = rank;
    }
    if (stuck < 0) return status_ok();
    step_size(&run, stuck, run.next[stuck], &missing);
    return refuse_stuck(&run, stuck, &missing);
}

// A line for a rank that the plan does not have.
static Status refuse_line(const ScheduleFile *read, const Plan *plan) {
    char place[32];
    snprintf(place, sizeof place, "line %d", read->lines[plan->pp]);
    return status_at(STATUS_INVALID, read->file, place,
                     "work of rank %d; expected one line for each rank, pp %d", plan->pp, plan->pp);
}

Status schedule_file_bind(const ScheduleFile *read, const Plan *plan, Arena *arena,
                          ScheduleFile *out) {
    if (read->num_ranks < plan->pp)
        return status_at(STATUS_INVALID, read->file, "",
                         "rank %d has no line of work; expected one for each rank, pp %d",
                         read->num_ranks, plan->pp);
    if (read->num_ranks > plan->pp) return refuse_line(read, plan);
    Binder b = {.read = read, .plan = plan, .arena = arena};
    b.num_microbatches = (int)plan->num_microbatches;
    b.orders = ARENA_ARRAY(arena, plan->pp, RankOrder);
    const size_t num_cells = (size_t)plan->num_chunks * (size_t)b.num_microbatches;
    for (int kind = 0; kind < NUM_WORK_KINDS; kind++)
        if (kind != WORK_BACKWARD_INPUT) b.position[kind] = ARENA_ARRAY(arena, num_cells, int);
    for (int rank = 0; rank < plan->pp; rank++) {
        TRY(line_bind(&b, rank));
        TRY(line_complete(&b, rank));
    }
    *out = *read;
    out->orders = b.orders;
    backwards_split(&b, out);
    return run_check(&b);
}

Status schedule_file_refuse_circle(const ScheduleFile *schedule, const Plan *plan, int rank,
                                   const WorkItem *item) {
    const RankOrder *order = &schedule->orders[rank];
    int i = 0;
    while (i + 1 < order->num_items &&
           (order->items[i].chunk != item->chunk ||
            order->items[i].microbatch != item->microbatch ||
            (order->items[i].kind == WORK_FORWARD) != (item->kind == WORK_FORWARD)))
        i++;
    Arena scratch = {0};
    const Status status = refuse_item(
        schedule, rank, i,
        arena_printf(&scratch,
                     "the message of %s waits in a circle: what lies between two items is "
                     "exchanged in one group; expected another order, pairs joined by +, or "
                     "messages asynchronous",
                     work_item_text(plan, item, &scratch)));
    arena_free(&scratch);
    return status;
}
