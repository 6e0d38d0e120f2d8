// planner/questions/idle.h - the best plan where GPUs may be left idle.
//
// A number of GPUs that neither batch nor layers divide well (100; racks of 72) may be slower than
// fewer of them. So fewer are looked at, too: numbers below that divide well and can be used alike
// in each node (config/cluster/cluster.h, cluster_use), from the largest on; after
// IDLE_NEAR_NUMBERS of them only such as are at most half of the one before. Each is looked at
// until its own loose bounds, or a search whose limit is the best plan so far, rule it out. Where
// the best plan is near its loose bound, numbers that are too small are not looked at: those on
// which the least work of a GPU would take longer than the best, and those below a number that its
// bound rules out.
//
//   divides well   the odd part of the number divides 3 x those of global_batch, num_hidden_layers,
//                  heads and seq_len: what data, pipeline, tensor and context parallelism divide
//   divides evenly the number divides global_batch x num_hidden_layers x the tp of a whole domain:
//                  where all GPUs do, and their best plan is near its bound, only fewer that do
//                  are looked at; where all do and it is not near, and there are more than 128,
//                  none are: the search of each would take as long as that of all
// Both after division by the degrees that are stated.
//
// The answer is of one number of GPUs. No plan on another that was looked at is better than its
// best.
#pragma once

#include "planner/planner.h"

// Searches all GPUs of the scenario's cluster, then fewer. Idle GPUs are looked at where the step
// time ranks (throughput, cost), and for the other objectives where nothing is legal on all;
// never in joined groups, with a measured matrix, where all degrees are stated or idle_gpus is.
//   *used    the scenario with ranks on the GPUs of the answer
//   returns  as planner_search; its refusal is of all GPUs
Status planner_search_idle(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                           Scenario *used, PlannerResult *out);
