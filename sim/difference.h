// sim/difference.h - why an undisturbed simulated step takes another time than its estimate.
//
// The activities are replayed with given durations, one effect at a time. First each flow is as
// long as the estimate grants it. Then those that were faster are as long as they took. Then all
// are as long as they took, which is the simulation. Each effect is charged with what it adds to
// the step, so they add up to the whole difference, and one that hides behind other work costs
// nothing.
#pragma once

#include "base/arena.h"
#include "sim/dag.h"
#include "sim/player.h"

typedef enum {
    EFFECT_MODEL,           // the activities as granted, against the estimate: 0 but for rounding
    EFFECT_SPARE_BANDWIDTH, // flows that got more of their links than granted; <= 0
    EFFECT_CONTENTION,      // flows that got less; >= 0
    NUM_EFFECTS
} Effect;

extern const char *const EFFECT_NAMES[NUM_EFFECTS];

typedef struct {
    double effect_s[NUM_EFFECTS]; // add up to the simulated step less the estimate's
} Difference;

//   step_s           what a step takes beside the Program (Prices.step_s)
//   estimate_step_s  the estimate's whole step
Difference playback_difference(const Dag *dag, const Playback *playback, double step_s,
                               double estimate_step_s);
