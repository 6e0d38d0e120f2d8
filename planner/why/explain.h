// planner/why/explain.h - why one plan is behind another, and whether the estimate can tell.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "planner/planner.h"

// "4.1 % slower: +310 ms exposed tensor-parallel communication, -80 ms pipeline bubble".
const char *explain_loss(PlanObjective objective, const PlannedEntry *best,
                         const PlannedEntry *other, Arena *arena);

// "1.3 % slower at the upper end of its interval: the step -0.2 %, the interval +1.5 %", for plans
// that are ranked by it.
const char *explain_robust(const PlannedEntry *best, const PlannedEntry *other, Arena *arena);

// What a result ranks an entry by, and in what one is worse than another by that.
double explain_value(const PlannerResult *result, const PlannedEntry *entry);
const char *explain_worse(const PlannerResult *result, const PlannedEntry *better,
                          const PlannedEntry *worse, Arena *arena);

// Standard uncertainty, in seconds, of the difference between the step times of two plans.
//
// Model:  both estimates come from the same profile, so what the plans have in common is wrong by
//         the same factor and cancels. What remains: each term of the breakdown is wrong by its
//         own factor, so only its difference counts; and plans with other shapes (tp, cp, ep, etp,
//         micro_batch, sequence_parallel, cp_method, recompute) run other kernels, each with the
//         residual error of its fit (config/machine/gpu.h), averaged over the kernels of a layer.
//         And no two runs of one plan take the same time.
//           u^2 = (EXPLAIN_JITTER_FRAC step)^2 + sum over terms (r d_term)^2
//                 + [other shapes] e^2 (compute_a^2 + compute_b^2)
//         with r the relative half-width of the estimates' 80 % interval and e the 80 % half-width
//         of a kernel's residual over the square root of EXPLAIN_NUM_KERNELS.
// Limits: judgement, not measured: no published run varies a plan often enough to fit it.
double explain_difference_uncertainty_s(const Scenario *scenario, const PlannedEntry *a,
                                        const PlannedEntry *b);

// Whether the difference of the two is smaller than its uncertainty or than EXPLAIN_FLOOR_FRAC of
// the best step. For OBJECTIVE_MEMORY: whether the closed form's bytes are equal (they are exact).
bool explain_within_noise(const Scenario *scenario, PlanObjective objective,
                          const PlannedEntry *best, const PlannedEntry *other);

// Products and attention of a layer, forward and backward, that share its time about equally.
enum { EXPLAIN_NUM_KERNELS = 8 };

// Spread of the mean step time between runs of the same job.
static const double EXPLAIN_JITTER_FRAC = 0.005;

// Smaller differences are within the noise however alike two plans are: one and the same
// plan is 4 to 10 % faster or slower from one release of its software to the next.
static const double EXPLAIN_FLOOR_FRAC = 0.01;
