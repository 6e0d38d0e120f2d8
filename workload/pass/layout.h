// workload/pass/layout.h - how strategies lay the activations between layers out
// (plan/layer_plans.h), and what changing from one layout to another takes.
//
// Model:  all strategies of a stage share its ranks and the sequences of a micro-batch. With
//         tp x cp ranks a replica, lcm(tp x cp of both) neighbouring ranks hold the same sequences
//         under either, so the change stays among them. With sequence parallelism (and at tp 1)
//         each rank holds its own part, and an all-to-all moves it. Without it tp ranks hold the
//         same, and what a rank lacks is gathered, or what it has too much is left out. The
//         backward changes the gradients back.
// Limits: an all-to-all is priced for all that a rank holds, also for what stays where it is; a
//         gather brings all that the ranks hold, also what the next layer does not need there. With
//         an encoder or a tower every change is priced for the larger activations, its or the
//         text's.
#pragma once

#include "workload/pass/block.h"

// Activations between layers that one rank holds per micro-batch, of a plan throughout.
double layout_boundary_bytes(const Scenario *scenario, const Plan *plan);

// The change as one operator, with its backward. Both layouts are held while it runs.
//   kind     of groups of plans_layout_span(from, to) neighbours
//   returns  a block without parameters
Block layout_change_block(const Scenario *scenario, const Plan *from, const Plan *to,
                          GroupKind kind, Arena *arena);
