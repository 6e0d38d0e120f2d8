// workload/step/program_sync.h - which gradients are reduced and which weights are gathered among
// the data-parallel ranks at the end of a step, chunk by chunk; and which gradients tp ranks add
// up. Included by program*.c and costmodel/step/step_time.c only.
//
// Source: ZeRO stages: Rajbhandari et al. 2020, arXiv:1910.02054, section 5; sharing shards among
// fewer ranks than there are replicas: Zhao et al., PyTorch FSDP, 2023, arXiv:2304.11277, section
// 3.2.2. With ZeRO 3 the gathers and scatters are in the operator templates
// (workload/pass/block.h); here is only what it does among replicas of a shard. Sums over tp:
// NVIDIA/Megatron-LM, core/distributed/finalize_model_grads.py,
// _allreduce_non_tensor_model_parallel_grads. This is done once a step, of all chunks of a rank in
// one piece, behind the reduction over dp and before tied embeddings. It is of whole gradients,
// though with ZeRO 1 a rank owns but a shard of them by then. From ZeRO 2 on of shards; or every
// backward of a block does it before it scatters them (Stack.sums_in_backward,
// workload/pass/builder_finish.c).
#pragma once

#include "workload/step/program.h"

// Of one piece: shard and replica, dense and expert; for each sharding of layers that has groups or
// a ZeRO stage of its own.
enum { SYNC_MAX_COLLECTIVES = 4 };

// What happens to the gradients (or weights) of one chunk: num_parts equal pieces, each with its
// collectives in this order.
typedef struct {
    int num_parts;       // 1 .. 32
    int num_collectives; // of each piece; with 0 there is 1 piece
    int *collectives;    // [num_collectives] indices into Program.collectives
} ChunkSync;

typedef struct {
    const ChunkSync *reduce; // [num_chunks] gradients, after the last backward
    const ChunkSync *gather; // [num_chunks] weights, before the next forward
    const ChunkSync *sums;   // [pp] gradients over tp, of each pipeline rank, in 1 piece
    const ProgramCollective *collectives;
    int num_collectives;
} SyncPlan;

SyncPlan sync_plan(const Scenario *scenario, const Plan *plan, const Workload *workload,
                   Arena *arena);

// Gradients of the word embedding as one rank holds them; 0 unless they are tied and first and
// last stage differ, each with a table of its own.
double sync_embedding_bytes(const Scenario *scenario, const Plan *plan);

// Gradients of each chunk as one rank holds them after they were reduced among the data-parallel
// ranks, to be added to those of the chunk's copy: [num_chunks]; NULL where there are no copies.
const double *sync_copies_bytes(const Scenario *scenario, const Plan *plan,
                                const Workload *workload, Arena *arena);
