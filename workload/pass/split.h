// workload/pass/split.h - how the operators of a layer are split over ranks, and which ranks talk
// to each other: what builders of operators know of a plan.
#pragma once

#include "workload/pass/group.h"

#include <stdbool.h>

typedef struct {
    int tp, cp, ep, etp;
    bool sequence_parallel;
    CpMethod cp_method;
    int vocab_parts; // ranks that share the vocabulary: tp, or all tp x pp
    // Weights over their replicas
    int zero_stage;
    bool scatters_gradients; // in every backward
    bool reshard_after_forward;
    Group groups[NUM_GROUPS]; // by the order of ranks
} Split;

Split plan_split(const Plan *plan);
int plan_vocab_parts(const Plan *plan); // Split.vocab_parts

// Ranks over which every backward scatters gradients; 1: none does.
int split_num_scattered(const Split *split);
int plan_num_scattered(const Plan *plan);
