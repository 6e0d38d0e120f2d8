// plan/schedule/schedule_v.h - schedules of the V shape: a rank holds chunk r on the way down and
// chunk 2 pp - 1 - r on the way back up; backwards are split. Included by schedule_v*.c and
// schedule_zb_v.c only.
//
// Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", arXiv:2405.15362, section 3: one
// micro-batch is a building block, of which one begins every 6 units (F = B = W = 1, two chunks).
// It is given by the units from one rank to the next in each of its four passes; their sums are
// what activations live for, and so what is held.
//
// Here the block gives the order of forwards and input backwards. Weight backwards fill what would
// be idle, and make room where a forward would hold more than the limit. Both are as the paper's
// runs are (section 4, and its program). Only with F = B = W is that filling what happens; the
// order stays the same for other times, as a static schedule's does.
#pragma once

#include "plan/schedule/schedule_rows.h"

typedef struct {
    int step[4];  // units from rank to rank: chunk 1 forward, 2 forward, 2 backward, 1 backward
    int delay[2]; // units that the backward of chunk 2, and of 1, begins later than it could
    int limit;    // chunk inputs that a rank may hold
    bool fills;   // forwards of the first chunk run early rather than nothing
} VBlock;

// All ranks, schedule_num_items_split each. At pp 1 there is nothing to fill: W follows B.
void v_orders(const ScheduleShape *shape, const VBlock *block, Arena *scratch,
              const RankOrder *orders);

// At most min(limit, all).
int v_in_flight(const ScheduleShape *shape, const VBlock *block);
