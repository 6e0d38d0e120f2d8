// planner/stages/pieces.h - blocks of plans, built and priced once for those that come one after
// the other.
//
// A search visits plans that differ in chunks, schedule and ZeRO stage next to each other; their
// blocks are the same (plans_share_blocks) and take most of the time that a plan's chunk prices do.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "costmodel/pass/price.h"
#include "plan/plan.h"

// Blocks of one plan, shared by those like it.
typedef struct {
    Plan plan; // the first of them; its chunks are not looked at
    Workload workload;
    BlockPrices *prices; // NULL: nothing is here yet
    Arena arena;
} BlockPieces;

// ZeRO levels 0 or 1, and each above; chunks in a line, both ends on one rank, dual; recomputation
// of all and of some layers.
enum { PIECES_KINDS = 4 * 3 * NUM_RECOMPUTES * 2 };

// Of one thread; zero-initialise but for the scenario.
typedef struct {
    const Scenario *scenario;
    BlockPieces kinds[PIECES_KINDS]; // the last of each kind
} Pieces;

void pieces_free(Pieces *pieces);

// A plan's workload and the prices of its chunks, as workload_build and chunks_price make them.
//   arena  of their own parts; the blocks stay until one with others of its kind is asked for
Workload pieces_workload(Pieces *pieces, const Plan *plan, Arena *arena);
// The prices of a plan's blocks; they stay as long.
BlockPrices *pieces_block_prices(Pieces *pieces, const Plan *plan);
Prices pieces_prices(Pieces *pieces, const Plan *plan, const Workload *workload, Arena *arena);
