// planner/questions/neighbour.h - the plans that differ from one in a single choice.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"

//   plan    legal; valid during the call, as is the text
//   change  "tp 4 instead of 8, dp 8 instead of 4"
typedef void (*NeighbourVisit)(void *context, const Plan *plan, const char *change);

// Visits, always in the same order, what is legal and the scenario's software can run of:
// twice one of tp, pp, cp, dp and half of another; twice or half of ep, micro_batch or vpp; every
// other recomputation, ZeRO stage and schedule; one recomputed layer of each stage less, or half of
// them; the next larger and smaller zero_group. The scenario's constraints do not matter. Where the
// number of chunks changes, the layers are split as fits the scenario's memory with the least busy
// ranks (planner/harvest/split_choice.h); by default where no split fits.
void neighbours_visit(const Scenario *scenario, const Plan *plan, NeighbourVisit visit,
                      void *context);
