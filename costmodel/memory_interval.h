// costmodel/memory_interval.h - how sure a memory account is, and whether a plan runs.
//
// Model:  A GPU runs out of memory where what it needs is more than there is. What is cached and
//         not in use goes back to the device before an allocation fails (pytorch/pytorch,
//         c10/cuda/CUDACachingAllocator.cpp, release_cached_blocks), but only blocks that are free
//         as a whole: anything between none and all of it. The middle of that is needed as likely
//         as not, and the width of an even law over it is part of the spread.
//         The log of what is needed is normal around the log of the account, with the variance
//           spread^2 + slack_frac^2 / 12
//         where the spread is that of measured peaks around predicted ones of the same stack and
//         kind of model (config/evidence.h). With z standard deviations a plan fits where
//           needs_bytes exp(z sqrt(variance)) <= available
//         which rises with every part of the account: what bounds the account from below bounds
//         this, too.
#pragma once

#include "config/scenario.h"
#include "costmodel/memory.h"
#include "plan/plan.h"

// Of what is cached beyond the peak: what does not go back, in the middle.
#define CACHED_NEEDED_FRAC 0.5

// Standard deviation of the log of what a plan needs. Does not depend on micro_batch, recomputation
// and schedule.
double memory_spread(const Scenario *scenario, const Plan *plan);

// The probability that it runs, 0 to 1.
double memory_fit_probability(const RankMemory *account, double available_bytes);

// The 80 % interval of device_bytes; of a plan that fits with 90 % and more its upper end is at
// most available_bytes.
void memory_interval(const RankMemory *account, double available_bytes, double *low_bytes,
                     double *high_bytes);
