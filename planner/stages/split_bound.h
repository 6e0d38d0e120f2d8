// planner/stages/split_bound.h - what no split of the layers of a plan can be faster than, in a
// microsecond or two: for a search that looks at thousands of plans. Machines are all alike.
//
// Model:  the busiest rank has at least the least possible largest load. With one chunk a rank that
//         is a chain cut into stages, with several, of equal layers, a number of layers for each
//         rank; found by bisection from the mean on, of which the lower end counts. With 1F1B the
//         first micro-batch runs through all stages before the busiest begins its first backward,
//         as in planner/stages/stage_split.h; with an interleaved schedule
//         planner/stages/interleaved_bound.h.
// Source: Pinar and Aykanat 2004, as in planner/stages/partition.h (bisection with a greedy probe).
#pragma once

#include "planner/stages/group_costs.h"

// Less than any step of the plan can take, whatever its split; chunks are not looked at.
//   costs  group_costs_of the plan, on machines that are all alike
double split_bound_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs);

// Whether that is above a limit, in less time: the largest load that the limit leaves is tried.
bool split_bound_exceeds(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                         double limit_s);

// A bound from means alone, in a tenth of the time: never more than split_bound_s.
double split_quick_bound_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs);

// A bound from means that knows the model by one number; what the host does once a step is not
// in it.
//   model_s    one micro-batch there and back through all of it, on the device
//   forward    the largest part of a forward in both
//   one_ahead  group_runs_one_ahead, with one chunk a rank
double split_mean_bound_s(const Plan *plan, double model_s, double forward, bool one_ahead);
