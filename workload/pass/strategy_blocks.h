// workload/pass/strategy_blocks.h - blocks of layers that have a sharding of their own: what makes
// them blocks of a plan whose other layers have another. For workload.c.
#pragma once

#include "workload/pass/layout.h"

// Makes a block that was built of a sharding's plan one of this plan: its collectives run in the
// sharding's groups.
void block_bind(const Plan *plan, int sharding, Arena *arena, Block *block);

// The changes of layout from each sharding to each, at their places.
void change_blocks_build(const Scenario *scenario, const Plan *plan, Arena *arena, Block *blocks);
