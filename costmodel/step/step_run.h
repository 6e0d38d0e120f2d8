// costmodel/step/step_run.h - the work items of a step while they run. Included by step_*.c only.
#pragma once

#include "costmodel/pass/price.h"
#include "plan/work_item.h"

#include <stdint.h>

typedef int64_t Ticks; // of a step's own length (StepRun.ticks_per_s)

static const Ticks NOT_YET = -1;

// An item of one kind on one chunk.
typedef struct {
    Ticks work;
    int64_t in, out; // where the messages of its first micro-batch are in StepRun.moved; -1: none
    Ticks in_message, out_message;
    int16_t sender, receiver; // ranks
    uint8_t direction;        // of what it sends: forward or backward
    uint8_t counter;          // of StepChunk: which items it counts among
} ItemCost;

enum { COUNT_FORWARD, COUNT_GRADIENT, COUNT_INPUT, NUM_COUNTS };

// Collectives beside the pieces of one item of a chunk.
typedef struct {
    int num_parts;
    int special;       // the item: how many of its counter are done before it; -1: there is none
    Ticks collectives; // of one piece
    Ticks begin;       // of gathers: when the first of them begins
} StepPieces;

typedef struct {
    ItemCost items[NUM_WORK_KINDS];
    StepPieces pieces[NUM_COUNTS]; // of the first forward gathers, of the last gradient reductions
    Ticks piece_work[NUM_WORK_KINDS]; // of one piece of such an item
    Ticks gather_late, reduce_late;   // collectives that nothing runs beside
    bool reduces;                     // its gradients are reduced by collectives
    int num_done[NUM_COUNTS];
} StepChunk;

typedef struct {
    const WorkItem *items; // [num_items]
    int num_items, limit;  // the run stops before item `limit`
    int at;
    Ticks compute, dp, egress[2]; // when streams are free, and the way out forward and backward
    int64_t awaited;              // place in `moved` of an asynchronous message; -1

    // Groups of messages, where they block
    Ticks pp;          // when the last group was done
    bool launched;     // the group before item `at` is open, or done and its step not yet run
    int previous, end; // it carries what items [previous, at) made and what [at, end) need
    int num_open;      // its messages that have not moved
    Ticks launch, group_end;
} StepRank;

typedef struct {
    const Plan *plan;
    double ticks_per_s;
    int num_microbatches;
    StepChunk *chunks; // [num_chunks]
    StepRank *ranks;   // [pp]
    // [num_chunks][2][num_microbatches] messages over the boundary behind a chunk, forward and
    // backward. An asynchronous one: when it arrives. One of a group: when its first end launched.
    Ticks *moved;
    int *ready; // stack of ranks that can go on
    int num_ready;
} StepRun;

static inline int64_t step_link(const StepRun *run, int boundary, int direction) {
    return (2 * (int64_t)boundary + direction) * run->num_microbatches;
}

// Runs all ranks up to their limits. Returns whether they got there.
bool step_run(StepRun *run, bool asynchronous);
