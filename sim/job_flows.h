// sim/job_flows.h - which flows the replicas of a job ever have, and which of them wait for each
// other: what tells replicas apart that run the same Program (sim/likeness.h).
#pragma once

#include "sim/lanes.h"
#include "sim/lower.h"

typedef struct {
    int num_ways; // a way: what the replicas of one stage send to one kind of receiver
    int num_replicas;
    // The links of a flow: links[first_link[f]] up to first_link[f + 1], f = way x num_replicas +
    // replica.
    const int32_t *first_link; // [num_ways x num_replicas + 1]
    const int32_t *links;
    const int *const *group_firsts; // [num_groups][num_replicas] the first replica of each one's
    int num_groups;                 // group, of groups that begin or end something together
} JobFlows;

// Of a job in which nothing is disturbed, with collectives as flows.
//   num_folded  tensor-parallel ranks of a replica
JobFlows job_flows(const LowerInput *input, const Network *network, int num_folded, Arena *arena);
