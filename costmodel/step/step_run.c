// The rules are those of costmodel/step/timeline.c; an item stands for its computation and the
// messages before or after it. A rank goes on until a message is missing; the rank that sends it
// (or, of a group, launches its other end) puts it back on the stack.
#include "costmodel/step/step_run.h"

static Ticks later(Ticks a, Ticks b) {
    return a > b ? a : b;
}

// An item with collectives beside its pieces: a piece of the forward waits for its gather, the
// reduction of a piece for it.
static void pieces_run(const StepChunk *chunk, int kind, StepRank *rank) {
    const StepPieces *pieces = &chunk->pieces[chunk->items[kind].counter];
    for (int part = 0; part < pieces->num_parts; part++) {
        if (kind == WORK_FORWARD)
            rank->compute = later(rank->compute, pieces->begin + (part + 1) * pieces->collectives);
        rank->compute += chunk->piece_work[kind];
        if (kind != WORK_FORWARD) rank->dp = later(rank->dp, rank->compute) + pieces->collectives;
    }
}

static inline void item_compute(StepChunk *chunk, const ItemCost *cost, int kind, StepRank *rank) {
    if (chunk->num_done[cost->counter]++ == chunk->pieces[cost->counter].special)
        pieces_run(chunk, kind, rank);
    else
        rank->compute += cost->work;
}

// --- Asynchronous messages

static void rank_advance(StepRun *run, int r) {
    StepRank *rank = &run->ranks[r];
    for (; rank->at < rank->limit; rank->at++) {
        const WorkItem *item = &rank->items[rank->at];
        StepChunk *chunk = &run->chunks[item->chunk];
        const ItemCost *cost = &chunk->items[item->kind];
        if (cost->in >= 0) {
            const int64_t place = cost->in + item->microbatch;
            if (run->moved[place] == NOT_YET) {
                rank->awaited = place;
                return;
            }
            rank->compute = later(rank->compute, run->moved[place]);
        }
        item_compute(chunk, cost, item->kind, rank);
        if (cost->out < 0) continue;
        Ticks *egress = &rank->egress[cost->direction];
        *egress = later(*egress, rank->compute) + cost->out_message;
        const int64_t place = cost->out + item->microbatch;
        run->moved[place] = *egress;
        StepRank *receiver = &run->ranks[cost->receiver];
        if (receiver->awaited != place) continue;
        receiver->awaited = -1;
        run->ready[run->num_ready++] = cost->receiver;
    }
}

// --- Messages that block

static void message_moved(StepRank *rank, Ticks end) {
    rank->group_end = later(rank->group_end, end);
    rank->num_open--;
}

// Launches one end of a message; where the other end was launched before, it moves.
static void message_launch(StepRun *run, StepRank *rank, int64_t place, Ticks message, int peer) {
    rank->num_open++;
    if (run->moved[place] == NOT_YET) {
        run->moved[place] = rank->launch;
        return;
    }
    const Ticks end = later(rank->launch, run->moved[place]) + message;
    message_moved(rank, end);
    message_moved(&run->ranks[peer], end);
    if (run->ranks[peer].num_open == 0) run->ready[run->num_ready++] = peer;
}

// The group between two steps, each of an item and those joined to it.
static void group_launch(StepRun *run, StepRank *rank) {
    rank->end = rank->at < rank->num_items ? rank->at + 1 : rank->at;
    while (rank->end < rank->num_items && rank->items[rank->end].joined) rank->end++;
    rank->launch = rank->group_end = later(rank->pp, rank->compute);
    rank->launched = true;
    bool any = false;
    for (int i = rank->previous; i < rank->end; i++) {
        const WorkItem *item = &rank->items[i];
        const ItemCost *cost = &run->chunks[item->chunk].items[item->kind];
        if (i < rank->at && cost->out >= 0)
            message_launch(run, rank, cost->out + item->microbatch, cost->out_message,
                           cost->receiver);
        else if (i >= rank->at && cost->in >= 0)
            message_launch(run, rank, cost->in + item->microbatch, cost->in_message, cost->sender);
        else
            continue;
        any = true;
    }
    if (!any) rank->group_end = rank->pp;
}

static void step_compute(StepRun *run, StepRank *rank) {
    rank->pp = rank->group_end;
    rank->compute = rank->at < rank->end ? later(rank->compute, rank->pp) : rank->compute;
    for (int i = rank->at; i < rank->end; i++) {
        const WorkItem *item = &rank->items[i];
        StepChunk *chunk = &run->chunks[item->chunk];
        item_compute(chunk, &chunk->items[item->kind], item->kind, rank);
    }
    rank->previous = rank->at;
    rank->at = rank->end;
    rank->launched = false;
}

static void rank_advance_blocking(StepRun *run, int r) {
    StepRank *rank = &run->ranks[r];
    for (;;) {
        if (!rank->launched) {
            const bool done = rank->previous == rank->num_items;
            if (done || (rank->at >= rank->limit && rank->limit < rank->num_items)) return;
            group_launch(run, rank);
        }
        if (rank->num_open > 0) return;
        step_compute(run, rank);
    }
}

bool step_run(StepRun *run, bool asynchronous) {
    run->num_ready = 0;
    for (int r = run->plan->pp - 1; r >= 0; r--) {
        run->ranks[r].awaited = -1;
        run->ready[run->num_ready++] = r;
    }
    while (run->num_ready > 0) {
        const int r = run->ready[--run->num_ready];
        if (asynchronous)
            rank_advance(run, r);
        else
            rank_advance_blocking(run, r);
    }
    for (int r = 0; r < run->plan->pp; r++) {
        const StepRank *rank = &run->ranks[r];
        if (rank->at < rank->limit || rank->launched) return false;
        if (!asynchronous && rank->limit == rank->num_items && rank->previous < rank->num_items)
            return false;
    }
    return true;
}
