// workload/pass/chunk.h - the chunks of a plan, made of its blocks. For workload.c.
#pragma once

#include "workload/pass/block.h"

// [plan_all_chunks(plan)] of a workload whose blocks are built.
const Chunk *chunks_build(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          Arena *arena);

// [plan_all_chunks(plan)], of which only those of one rank are built; the others are zero.
const Chunk *chunks_build_rank(const Scenario *scenario, const Plan *plan, const Workload *workload,
                               int rank, Arena *arena);

// [plan_all_chunks(plan)] with what workload_layers_floor counts of each.
//   workload  with its chunks
const Chunk *chunks_floor(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          Arena *arena);

// Workload.first_change and .num_blocks of a plan.
int chunk_first_change(const Plan *plan);
int chunk_num_blocks(const Plan *plan);

// Where the block of a layer kind with a strategy is, and where the change from one sharding's
// layout to another's.
int layer_block_index(int kind, int strategy);
int change_block_index(const Plan *plan, int from, int to);

// Rows of a vocabulary matrix on one rank. They are padded so that all have as many (Megatron-LM
// pads to a multiple of 128 x tp).
double vocab_rows(const Model *model, const Plan *plan);
