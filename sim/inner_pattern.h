// sim/inner_pattern.h - to which members of its group a GPU sends what collectives inside the
// layers move (sim/lower_inner.h).
#pragma once

#include "costmodel/pass/inner.h"
#include "sim/lower.h"

typedef struct {
    Group group;
    bool across;               // domains; else it goes round inside them
    int first_step, last_step; // with a flow each: so many domains on
    int ranks_per_domain;
    double slowdown; // by links between sites
} InnerPattern;

InnerPattern inner_pattern(const LowerInput *input, const Network *network,
                           const InnerCollective *inner, bool across, Arena *arena);

// The rank that a flow goes to.
int inner_target(const InnerPattern *pattern, int rank, int step);

// Patterns are told apart by this number, below 4 plan_num_group_kinds.
int inner_pattern_key(const InnerCollective *inner, bool across);
