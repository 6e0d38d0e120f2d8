// planner/stages/balance.h - pipeline chunks of equal work where equal numbers of layers are not.
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"
#include "planner/stages/partition.h"

// What one micro-batch costs in each layer, in the embedding and in the head. Layers of a tower
// stay with the embedding.
typedef PartitionCosts BalanceCosts;

// Prices single layers under the degrees of `plan` (micro_batch and chunks are not looked at).
BalanceCosts balance_costs(const Scenario *scenario, const Plan *plan, Arena *arena);

// The balanced chunks, in arena; NULL where they lower the busiest rank's work by less than
// BALANCE_MIN_GAIN_FRAC against `even`.
const PlanChunk *balance_chunks(const BalanceCosts *costs, int pp, int vpp, const PlanChunk *even,
                                Arena *arena, Arena *scratch);

static const double BALANCE_MIN_GAIN_FRAC = 0.01;
