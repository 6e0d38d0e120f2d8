// plan/rank_place.h - which rank plays which part of a plan.
//
// Ranks are numbered as Megatron-LM's RankGenerator does (megatron/core/parallel_state.py), tp the
// fastest, then cp. With tp-cp-ep-dp-pp all tp x cp x dp ranks of a pipeline rank follow each
// other. With tp-cp-ep-pp-dp the tp x cp ranks of one replica do: those of the next pipeline rank
// come next, and those of the next replica pp times as many on.
// So in both the ranks of a pipeline rank (a stage) are blocks of neighbours, one in each stretch
// of pp blocks. A lane is the place of a rank among those of its stage, by their numbers.
#pragma once

#include "plan/plan.h"

// Whether the ranks of a stage are in more than one block.
static inline bool plan_stages_alternate(const Plan *plan) {
    return plan->order == ORDER_PP_DP && plan->pp > 1 && plan->dp > 1;
}

// Ranks of a block.
static inline int64_t plan_block_gpus(const Plan *plan) {
    const int64_t replica = (int64_t)plan->tp * plan->cp;
    return plan_stages_alternate(plan) ? replica : replica * plan->dp;
}

typedef struct {
    int stage;
    int64_t lane;
} RankPlace;

// The number of the rank at a place, and the place of a rank, in stages of such blocks.
static inline int64_t rank_at(int64_t block_gpus, int num_stages, int stage, int64_t lane) {
    return (lane / block_gpus * num_stages + stage) * block_gpus + lane % block_gpus;
}

static inline RankPlace rank_place(int64_t block_gpus, int num_stages, int64_t rank) {
    const int64_t block = rank / block_gpus;
    return (RankPlace){(int)(block % num_stages),
                       block / num_stages * block_gpus + rank % block_gpus};
}

static inline int64_t plan_rank_at(const Plan *plan, int stage, int64_t lane) {
    return rank_at(plan_block_gpus(plan), plan->pp, stage, lane);
}

static inline RankPlace plan_rank_place(const Plan *plan, int64_t rank) {
    return rank_place(plan_block_gpus(plan), plan->pp, rank);
}
