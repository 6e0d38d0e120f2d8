// sim/lower_inner.h - collectives inside the layers as flows: those of tensor, context and expert
// parallelism, and the shards of ZeRO 2 and 3.
//
// A pass over a chunk moves what its layers move in one piece (costmodel/pass/inner.h):
//   - beside its computation, from its begin on, what the price hides; what outlasts what it hides
//     behind holds up the pass;
//   - after its computation, one kind after the other, what the price says it waits for.
// Each is a flow per simulated GPU and kind, of the size that takes the price's time at the share
// of the network that the estimate grants. All that meet inside a computation (sim/meeting.h) begin
// and end it together.
//   ring        to the place of the GPU in the next domain of its group, as collectives of the
//               Program flow
//   all-to-all  to its place in the domain so many further on that, of all flows, as many leave
//               their leaf switch as do when each GPU sends to all domains alike (then NICs, leaves
//               and spine carry what they carry there); between sites to every other domain.
// Played are groups that cross scale-up domains, on the links between these. What moves inside them
// stays in the computation's timer, but where a GPU that takes part has a disturbed port.
// Source: that an all-to-all keeps to its rail: NCCL 2.12, PXN; DeepEP
// (costmodel/network/exchange.h). Limits: layers are not told apart, so flows of a pass are
// bunched, not spread over it.
#pragma once

#include "costmodel/pass/inner.h"
#include "sim/lower.h"

// What the passes of a plan move; outlives the lowering.
struct Inner {
    InnerPasses across;       // of groups that cross domains
    InnerPasses all;          // of all groups, where a port is disturbed
    const bool *is_disturbed; // [num_gpus] whose port is; NULL: none
};

Inner inner_prepare(const Scenario *scenario, const Plan *plan, const Workload *workload,
                    Arena *arena);

// The seconds of a computation that are a timer of its own: all but what it waits for in flows, and
// but the host's lead over the device.
//   lane  the first of those that meet inside it
double computation_timer_s(const LowerInput *input, const Lowered *lowered, int rank, int lane,
                           const Instruction *instruction);

// The activity that this is, of a computation that begins and ends with these.
int computation_timer(int begin, int end);
