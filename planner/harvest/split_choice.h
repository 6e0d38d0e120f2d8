// planner/harvest/split_choice.h - the split of a plan's layers that no search chose: of a
// neighbour with another number of chunks.
#pragma once

#include "plan/rule_check.h"
#include "planner/stages/group_costs.h"

// Gives a plan the split of which the busiest rank has least to do, of those that fit. Its own
// stays where none fits and where its software cannot run that one. It stays, too, where there is
// no choice of splits: pp 1, stated stages, groups of different machines, dual pipelines, an
// embedding over all stages, several chunks a rank of layers that differ.
//   pricing  of a scenario whose limit of memory is that of the question
//   rules    of that scenario
//   plan     complete and legal
//   arena    of the new chunks
void split_choose(GroupPricing *pricing, const RulesInForce *rules, Plan *plan, Arena *arena);
