// costmodel/memory/held_messages.h - what a rank holds on its way between two chunks, item by item.
//
// The input of a chunk is its own while it runs: the first operator keeps it, or the backward
// starts with it, and a result is its last operator's until then (workload/pass/block.h). In
// between it is counted here:
//   - A message that comes from another rank is held from the step before on, which receives it
//     (workload/step/program.c). It is held from the start of that step where messages run beside
//     the compute, else from its end. It has room before what that step sends has left, in one
//     group of messages.
//   - A message that goes to another rank is held until the rank sends again, where messages run
//     beside the compute. Not before then is it asked whether it has left
//     (runtime/engine_messages.c; a pair of items that run together sends once). Else it is held
//     until its step ends.
//   - one that is handed to another chunk of the rank until that runs.
// Limit: that what was sent earlier has left by then is taken for granted. Where the receiver is
// late (zb-v, zb-h2, or a stage that is slower than the one before), more are held.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"
#include "plan/work_item.h"
#include "workload/pass/block.h"

// How the input of an item comes, and how its result goes.
typedef enum { WAY_NONE, WAY_LOCAL, WAY_MESSAGE } MessageWay;

typedef struct {
    MessageWay in, out;
} ItemWays;

typedef struct {
    const ItemWays (*ways)[NUM_WORK_KINDS]; // [num_chunks]; of the rank's alone
    bool beside;                            // messages run beside the compute
    double each_bytes;
    int num_held;       // arriving or arrived, handed on, to be sent or sent
    int num_sent;       // of them, last
    bool sent_just_now; // nothing was computed since then
} HeldMessages;

// Writes *start, what is on its way at the start of a step, and returns it; NULL where passes over
// a spread vocabulary move more than it can say (costmodel/memory/memory_static.c).
HeldMessages *held_messages(const Scenario *scenario, const Plan *plan, const Workload *workload,
                            int rank, Arena *arena, HeldMessages *start);

// What an item does in turn: its input is received, is taken over when it begins, and what it made
// is sent. Nothing where it comes from this rank or goes there, or is not at all.
void message_receive(HeldMessages *messages, int chunk, WorkKind kind);
void message_take(HeldMessages *messages, int chunk, WorkKind kind);
void message_make(HeldMessages *messages, int chunk, WorkKind kind);
void message_send(HeldMessages *messages, int chunk, WorkKind kind);

static inline double held_messages_bytes(const HeldMessages *messages) {
    return messages->num_held * messages->each_bytes;
}
