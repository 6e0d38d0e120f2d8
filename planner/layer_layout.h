// planner/layer_layout.h - how strategies lay the activations between layers out, and what changing
// from one to another takes.
//
// Model:  all strategies of a stage share its ranks and the sequences of a micro-batch. With tp x
// cp
//         ranks a replica, lcm(tp x cp of both) neighbouring ranks hold the same sequences under
//         either, so the change stays among them: with sequence parallelism (and at tp 1) each rank
//         holds its own part, and an all-to-all moves it; without, tp ranks hold the same, and what
//         a rank lacks is gathered. The backward changes the gradients back.
// Limits: an all-to-all is priced for all that a rank holds, also for what stays where it is.
#pragma once

#include "config/scenario.h"
#include "plan/plan.h"

#include <stdbool.h>

// Whether two strategies lay activations out alike.
bool layouts_are_alike(const Plan *a, const Plan *b);

// Seconds per micro-batch of the change from one strategy's layout to the other's and of its
// gradient back; 0 where they are alike.
//   boundary_bytes  activations that one rank holds between layers, under each
double layout_change_s(const Scenario *scenario, const Plan *from, double from_boundary_bytes,
                       const Plan *to, double to_boundary_bytes);
