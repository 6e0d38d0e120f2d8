// planner/lengths/lengths_problem.h - sequences of many lengths on context-parallel groups of many
// sizes.
//
// Model:  a step runs its sequences in rounds (micro-batches), one after the other. In a round the
//         places are laid out as groups side by side; a group runs one pack of sequences, split
//         over its places, and the round lasts as long as its slowest group. A pack takes
//           max(floor_s, fixed_s + the sum of its sequences' sequence_s)
//         and its tokens may not be more than the group's memory holds. Between rounds the layout
//         may change.
// Source: Wang et al., "FlexSP: Accelerating Large Language Model Training via Flexible Sequence
//         Parallelism", ASPLOS 2025, arXiv:2412.01523, section 4.1 (time linear in a pack's
//         sequences, memory in its tokens, least makespan over the groups) and 4.2 (micro-batches).
//         floor_s is ours: a pack takes at least as long as gathering weights and the host do.
// Limits: every round ends with a barrier, as ZeRO 3 has it. With ZeRO 0 to 2 groups that stay
//         together need not wait, which neither this nor the static plan is given credit for.
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

// Sequences of one length in a step.
typedef struct {
    int64_t length; // tokens
    int num_sequences;
} LengthBucket;

// Groups of one size.
typedef struct {
    int size;                 // places
    double fixed_s, floor_s;  // of a pack
    double capacity_tokens;   // of a pack
    double step_s;            // once per step: gradients, optimizer, host
    const double *sequence_s; // [num_buckets]; INFINITY where one sequence is too long for a pack
    const double *tokens;     // [num_buckets] of one sequence as it is cut over the group, padded
} LengthsSize;

typedef struct {
    int num_places;           // ranks of tp GPUs each
    const LengthsSize *sizes; // [num_sizes] ascending
    int num_sizes;
    const LengthBucket *buckets; // [num_buckets] longest first
    int num_buckets;
} LengthsProblem;

// One group's pack.
typedef struct {
    int size;          // index into sizes
    const int *counts; // [num_buckets] its sequences
    double time_s;     // 0 of one without sequences
} LengthsGroup;

typedef struct {
    const LengthsGroup *groups; // [num_groups] largest first
    int num_groups;
    double time_s;
} LengthsRound;

typedef struct {
    const LengthsRound *rounds; // [num_rounds]
    int num_rounds;             // 0: does not fit
    double step_time_s;         // INFINITY where it does not fit
} LengthsSchedule;

// Seconds of one sequence alone.
double lengths_alone_s(const LengthsSize *size, int bucket);
