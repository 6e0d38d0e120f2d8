// planner/lengths/lengths_shapes.h - what of a plan stays the same while its groups change size,
// and what packs of sequences then cost on groups of each size.
//
// Prices: b sequences of a length on a group of d places cost what the cost model says of one
//         micro-batch of b sequences with cp d (forward and backward, pp 1). floor_s is the price
//         of one shortest sequence alone; sequence_s that of b of a length, where b is enough for
//         twice the floor, less fixed_s; fixed_s what is left over of the shortest where 2 b are
//         run.
//         Attention grows with the square of a sequence's length, not of a pack's: packs are
//         attended to sequence by sequence (variable-length kernels).
// Memory: the most tokens of one pack whose closed form fits, with whatever ZeRO shards over all
//         places. Lengths are padded to what a group cuts: 2 d tokens where each place has an early
//         and a late part, d with ulysses.
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"
#include "planner/lengths/lengths_problem.h"

// One choice of tp, recomputation, context-parallel method and ZeRO stage.
typedef struct {
    const Plan *plans; // [num_plans] one for each size of a group: their cp, ascending
    int num_plans;
} LengthsShape;

// The job that the space of plans is built for: pp 1, one micro-batch, no expert parallelism, and
// all sequences as long as the longest.
Scenario lengths_job(const Scenario *scenario, const LengthBucket *longest);

// All shapes that the job's constraints and software leave open.
LengthsShape *lengths_shapes(const Scenario *job, Arena *arena, int *num_shapes);

// The problem of one shape. Sizes on which not even the shortest sequence fits are left out.
//   plans    [num_sizes] of the problem; the caller's array of shape->num_plans
//   returns  num_sizes 0 where nothing fits
LengthsProblem lengths_price(const Scenario *job, const LengthsShape *shape,
                             const LengthBucket *buckets, int num_buckets, Arena *arena,
                             const Plan **plans);
