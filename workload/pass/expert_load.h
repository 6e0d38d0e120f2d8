// workload/pass/expert_load.h - how many tokens reach the experts of a rank, and how they get
// there.
#pragma once

#include "workload/pass/builder.h"

typedef struct ExpertLoad {
    double routed;    // copies of its tokens that a rank sends to experts: as many as it receives
                      // where all are sent alike
    double imbalance; // what the busiest rank receives over that: all others wait for it
    CollectiveKind dispatch, combine; // that carry them there and back; the backward of each is the
                                      // other
    double carried_frac;              // of the copies that reach a rank, those that travel
    bool carries_all;                 // all tokens of all ranks travel, whatever is routed
    bool sorted_by_expert;   // what comes stands by the ranks that sent it, and is sorted once more
    bool host_awaits_counts; // how many come is a number that the host passes to kernels
} ExpertLoad;

// Of the pass and its techniques.
ExpertLoad expert_load(const Builder *b);

// A token travels once to each rank that has some of its experts, by kernels that write it where it
// belongs (DeepEP and its like).
void expert_load_once_per_rank(const Builder *b, ExpertLoad *load);
