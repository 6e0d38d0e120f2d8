// sim/outcome.h - what a Playback says about the Program that was lowered.
#pragma once

#include "base/arena.h"
#include "sim/lower.h"
#include "sim/player.h"

enum { MAX_BUSY_LINKS = 16 };

typedef struct {
    const char *name;
    double utilization_frac; // bytes carried over what it could carry in the step
} BusyLink;

typedef struct {
    double step_time_s;
    // Time that flows took beyond what the estimate grants them, over the sum of the latter; and
    // the time they saved.
    double flow_lost_frac, flow_gained_frac;
    bool contended;                 // some flow took 1 % longer than granted
    BusyLink links[MAX_BUSY_LINKS]; // busiest first
    int num_links;
    int last_lane; // the lane that ends last, the first of those
} Outcome;

// When the last activity has ended, and what a step takes beside the Program (step_s).
double playback_step_s(const Dag *dag, const Playback *playback, double step_s);

// step_s: what a step takes beside the Program (Prices.step_s).
Outcome playback_outcome(const Lowered *lowered, const Program *program, const Playback *playback,
                         double step_s, Arena *arena);
