// costmodel/memory/memory_static.h - what a rank holds throughout a step, whatever runs: weights,
// gradients and optimizer of each of its layers by the layer's own shards, and buffers. For
// memory.c.
#pragma once

#include "costmodel/memory/memory.h"
#include "workload/pass/bytes.h"

// Sets all of an account that is not activations and sums. *m is zero.
void memory_static_account(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           int rank, RankMemory *m);

// The states of all ranks of a pipeline together, of a plan whose layers have one strategy.
RankMemory memory_static_states(const Scenario *scenario, const Plan *plan,
                                const Workload *workload);

// Bytes of the gradients of parameters that a plan shards: of `all` that a rank has before ZeRO,
// `shard` of them its own.
double held_gradients_bytes(const Plan *plan, const StateBytes *state, double all, double shard);

// Communicators that the rank's process has: of each kind of group of more than one rank, and of
// layers with groups of their own.
int memory_num_communicators(const Plan *plan, const Workload *workload, int rank);
