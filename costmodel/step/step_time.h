// costmodel/step/step_time.h - the step time of a plan and nothing else, for a search that prices
// many.
//
// Model:  the critical path of the plan's Program as costmodel/step/timeline.h runs it, found from
//         the work items of its schedule without writing the Program down.
// Times:  whole ticks, 2^-62 of more than the step can take, so that sums are exact. timeline_run
//         adds up doubles, which lose up to 2^-53 of the step with each of the instructions that
//         follow one another: the two agree to about 1e-12.
// Repeats: the order of the schedule may repeat itself (SteadyOrder). What is still to come depends
//         on when each rank and its links are free, and on what is under way between them. Where
//         all that is the same one period later but for one and the same span, so is all that
//         follows, period for period. So a step of many micro-batches takes as long as one of few
//         and so many spans. That is exact, not an extrapolation. The times of a period are a
//         max-plus linear function of those of the one before, which commutes with adding a span to
//         them (Baccelli et al., Synchronization and Linearity, 1992, section 3.2).
#pragma once

#include "base/arena.h"
#include "costmodel/pass/price.h"

// Seconds; NAN of a plan that it does not know, which estimate_plan has to price: with an order of
// its own file, dual pipelines, a spread vocabulary, or ranks that do not begin a step together.
//   prices  of chunks_price
double plan_step_time_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                        const Prices *prices, Arena *scratch);

// The step time; INFINITY of a step that is found to be longer than limit_s before its end.
double plan_step_time_below_s(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              const Prices *prices, double limit_s, Arena *scratch);
