// workload/schedule.h - pipeline orders: what each rank computes in which order.
#pragma once

#include "base/arena.h"
#include "config/parallel.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { WORK_FORWARD, WORK_BACKWARD, WORK_BACKWARD_INPUT, WORK_BACKWARD_WEIGHT } WorkKind;

typedef struct {
    uint8_t kind;       // WorkKind
    uint8_t joined;     // 1: runs right after the item before it; where messages block, those of
                        // both are exchanged in one group around the pair
    int16_t chunk;      // in pipeline order, 0 .. pp x vpp - 1
    int32_t microbatch; // 0 .. num_microbatches - 1
} WorkItem;

// What a schedule needs to know.
typedef struct {
    int pp, vpp;
    int num_microbatches;
} ScheduleShape;

typedef struct Schedule {
    const char *name; // of the contract
    ScheduleKind kind;
    bool splits_backward; // work is F, B (input), W instead of F, B
    bool receives_ahead; // more than the next item's inputs arrive before it: where messages block,
                         // ranks would wait for each other in a circle

    // Number of work items of each rank.
    int (*num_items)(const ScheduleShape *shape);
    // The order of one rank: fills items[num_items]. NULL where only the whole is known.
    void (*order)(const ScheduleShape *shape, int rank, WorkItem *items);
    // The orders of all ranks: fills items[rank x num_items]; NULL where `order` says all.
    void (*orders)(const ScheduleShape *shape, Arena *scratch, WorkItem *items);
    // Most chunk inputs held at once by a rank (one unit: one chunk and micro-batch), from its
    // forward to its backward; where that is split, to its weight part, which gives back the last
    // of them (how much is left for it: Chunk.deferred_bytes). Of the V schedules the most of any
    // rank, where there are more micro-batches than ranks; else a bound.
    int (*in_flight)(const ScheduleShape *shape, int rank);
    // Idle time of a rank over its busy time in a step that begins and ends on all ranks at once;
    // equal chunks, no messages, and backward = 2 forward: F = B = W where it is split. Exact where
    // pp divides num_microbatches and where that is below pp, else an upper bound.
    double (*bubble_frac)(const ScheduleShape *shape);
    const char *source; // of the order and the closed forms
} Schedule;

// The row of a kind; NULL where it is legal but not supported yet.
const Schedule *schedule_find(ScheduleKind kind);

// The orders of all ranks, one after the other: [pp x num_items].
WorkItem *schedule_orders(const Schedule *schedule, const ScheduleShape *shape, Arena *arena);
