// workload/schedule.h - pipeline orders: what each rank computes in which order.
#pragma once

#include "base/arena.h"
#include "config/parallel.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { WORK_FORWARD, WORK_BACKWARD, WORK_BACKWARD_INPUT, WORK_BACKWARD_WEIGHT } WorkKind;

typedef struct {
    uint8_t kind;       // WorkKind
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

    // Number of work items of each rank.
    int (*num_items)(const ScheduleShape *shape);
    // The order of one rank: fills items[num_items].
    void (*order)(const ScheduleShape *shape, int rank, WorkItem *items);
    // Most chunk inputs held at once by a rank (one unit: one chunk and micro-batch).
    int (*in_flight)(const ScheduleShape *shape, int rank);
    // Idle time of a rank over its busy time, equal chunks, backward = 2 forward, no messages.
    double (*bubble_frac)(const ScheduleShape *shape);
    const char *source; // of the order and the closed forms
} Schedule;

// The row of a kind; NULL where it is legal but not supported yet.
const Schedule *schedule_find(ScheduleKind kind);
