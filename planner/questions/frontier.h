// planner/questions/frontier.h - every trade between time, memory and energy that is worth making.
//
// Method: as planner/planner.h, but a configuration is passed over only where a plan that was
//         priced is at least as good as its bounds on every axis: memory is known exactly before
//         the price, step time and energy have lower bounds. The splits are walked in the order of
//         their loose bounds. From each the fastest, the smallest and the least hungry are priced,
//         then what is left in the order of the bounds of its step time. What was not priced is
//         covered by an entry, so the frontier is complete.
// Source: Kung, Luccio and Preparata, "On finding the maxima of a set of vectors", J. ACM 22(4),
//         1975 (maxima of vectors); Ehrgott, "Multicriteria Optimization", 2nd ed., chapter 2.
#pragma once

#include "planner/planner.h"

// Lists all plans that no other beats or equals on every axis, fastest first; of plans that are
// equal on all axes one. The fastest is planner_search's best. Options top, objective, distinct and
// worst_value do not matter; with robust, time is the upper end of the interval.
//   out->num_axes            2 or 3
//   out->stats.gap_frac      where stopped_early: each plan left out improves on some entry by no
//                            more than this on every axis; 1 where not all were looked at
//   returns                  as planner_search; where nothing fits, its answer
Status planner_frontier(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                        PlannerResult *out);
