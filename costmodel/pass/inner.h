// costmodel/pass/inner.h - what collectives inside the layers add to the price of a pass over a
// chunk. It says how long each kind takes, what of that the pass waits for, and how much longer it
// could take before the pass waits for more.
//
// Model:  a kind that takes f times as long lets a pass of P seconds take
//           P + (f - 1) exposed_s + max(0, f (time_s - exposed_s) - window_s),
//         with window_s the time of the pass that it can run beside: exact at f = 1 and for large
//         f, where what hides it (the layers' attention, products, another micro-batch) is used up.
//         Between the two the truth bends earlier, as its layers differ.
// Found:  exposed_s along what the compute stream waited for, from operator to operator;
//         window_s from the price with these collectives so much longer that nothing hides them.
// Limits: overlap takes as much from compute as in the price, however long it lasts.
#pragma once

#include "base/arena.h"
#include "costmodel/pass/price.h"

#include <stdbool.h>

// What runs one after the other; queues run beside one another. The last two run beside the whole
// pass, the others beside its computation.
typedef enum {
    INNER_TP, // streams
    INNER_CP,
    INNER_EP,
    INNER_HIDDEN, // exchanges behind another micro-batch's compute
    INNER_SHARDS, // of ZeRO 2 and 3
    NUM_INNER_QUEUES
} InnerQueue;

// All collectives of a group and pattern in one pass.
typedef struct {
    GroupKind group;
    InnerQueue queue;
    bool all_to_all; // else along a ring
    double time_s;
    double latency_s, wire_s, inside_s; // as WireTime in costmodel/network/exchange.h
    double exposed_s;                   // 0 to time_s
} InnerCollective;

typedef struct {
    InnerCollective *list; // [num]
    int num, capacity;
    double window_s[NUM_INNER_QUEUES]; // >= the queue's time_s less exposed_s
    double edge_s; // of one block: shards' first gather and last scatter; of a chunk 0
} InnerPass;

typedef struct {
    const InnerPass *forward, *backward, *backward_input, *backward_weight; // [num_chunks]
} InnerPasses;

// Those of groups that cross scale-up domains; `inside` asks for all others as well.
InnerPasses inner_passes(const Scenario *scenario, const Plan *plan, const Workload *workload,
                         bool inside, Arena *arena);

// The pass that an instruction is; NULL of one that is none, or has no such collectives. Of a
// computation in pieces each piece is an equal share.
const InnerPass *instruction_inner(const InnerPasses *passes, const Instruction *instruction);
