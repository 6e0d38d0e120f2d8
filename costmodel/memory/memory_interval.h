// costmodel/memory/memory_interval.h - how sure a memory account is, and whether a plan runs.
//
// Model:  A GPU runs out of memory where what it needs is more than there is. What is cached and
//         not in use goes back to the device before an allocation fails (pytorch/pytorch,
//         c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks), but only blocks that are free
//         as a whole: anything between none and all of it. The middle of that is needed as likely
//         as not, and the width of an even law over it is part of the spread. The log of what is
//         needed varies around the log of the account by Student's law with four degrees of freedom
//         (base/student.h). Accounts are right to a percent or two where all is as the stack's file
//         says, and wrong by ten and more where it is not. Its scale is
//           sqrt(spread^2 + slack_frac^2 / 12)
//         and, of experts whose tokens are not dropped, what uneven routing adds (below). The
//         spread is that of measured peaks around predicted ones of the same stack and kind of
//         model. Where no published step is like the plan, it is that of other software
//         (config/job/evidence.h). With z deviates a plan fits where
//           needs_bytes exp(z scale) <= available
//         which rises with every part of the account: what bounds the account from below bounds
//         this, too.
#pragma once

#include "config/job/scenario.h"
#include "costmodel/memory/memory.h"
#include "plan/plan.h"
#include "workload/pass/block.h"

// Of what is cached beyond the peak: what does not go back, in the middle.
#define CACHED_NEEDED_FRAC 0.5

// What a plan adds to a job (config/job/evidence.h), and whether published steps had it all; of one
// with layers of other strategies, of its own.
Ingredients plan_ingredients(const Plan *plan);
bool plan_is_covered(const Scenario *scenario, const Plan *plan);

// Scale of the log of what a plan needs. Does not depend on micro_batch, recomputation
// and schedule.
double memory_spread(const Scenario *scenario, const Plan *plan);

// What more the fullest rank of experts holds, as a part of the spread. It is for tokens that are
// not dropped where nothing is said of how they are routed (training.moe_routing, capacity_factor).
// Experts get tokens with a coefficient of variation of EXPERT_VARIATION, and a rank those of its
// experts. Of ep ranks the fullest is at most sqrt(2 ln ep) deviations above the mean. What layers
// keep adds up with loads that differ from layer to layer.
//   account  its activations are set
//   returns  bytes; 0 for other plans
//
// Source: extremes of normal numbers: David and Nagaraja, "Order statistics", 3rd ed., 10.5.
// EXPERT_VARIATION is assumed: no published loads of a large run could be checked. With half and
// with twice of it the figures of docs/planning.md (room to breathe) stay as they are.
#define EXPERT_VARIATION 0.3
double memory_uneven_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           int rank, const RankMemory *account);

// The probability that it runs, 0 to 1.
double memory_fit_probability(const RankMemory *account, double available_bytes);

// The 80 % interval of device_bytes; of a plan that fits with 90 % and more its upper end is at
// most available_bytes.
void memory_interval(const RankMemory *account, double available_bytes, double *low_bytes,
                     double *high_bytes);
