// runtime/rank.h - what the parts of one process's step share: the device, its groups, its share of
// the model, and memory with holders.
#pragma once

#include "runtime/chunk_state.h"
#include "runtime/expert_load.h"
#include "runtime/rank_shape.h"
#include "runtime/tensor.h"
#include "runtime/world.h"

// Rows of tokens on their way to experts, in all passes so far (runtime/routes.h).
typedef struct {
    double sent, arrived; // over ep
    double gathered;      // over etp, of its whole group
} RowsMoved;

typedef struct Rank {
    const Scenario *scenario;
    const Plan *plan;
    Backend *backend;
    BackendStream *stream; // all work of the step, in the order of the program
    const World *world;
    TensorPool pool;
    RankShape shape;
    double beside_bytes[NUM_GROUPS][NUM_COMM_KINDS]; // sent beside what the Program says
                                                     // (runtime/traffic.h)
    RowsMoved rows_moved;
    ExpertLoad expert_load;  // counts where the router chooses between ranks
    const int32_t *balanced; // host [tokens_sp][experts_per_token]: the experts of each
                             // token, as many of each; NULL: the router chooses
    double loss_scale;       // 1 / tokens of the global batch

    // On the device
    int32_t *positions;             // [tokens] of each token of a micro-batch in its sequence
    int32_t *from_ranks, *to_ranks; // [cp tokens] rows of all cp ranks' tokens: by sequence, and
                                    // back (runtime/context_heads.c); NULL without cp
    int32_t *tokens, *targets;      // [num_microbatches][tokens]
    void *loss;                     // wide [1]: sum over this rank's tokens

    ChunkState *chunks; // [num_chunks] of this rank, in pipeline order
    int num_chunks;
    ChunkState *table; // the chunk of this rank that has the word table; NULL: none
} Rank;

static inline Tensor *rank_tensor(Rank *rank, int64_t count) {
    return tensor_new(&rank->pool, count, rank->backend->act);
}

static inline Tensor *rank_wide(Rank *rank, int64_t count) {
    return tensor_new(&rank->pool, count, rank->backend->wide);
}

static inline void rank_drop(Rank *rank, Tensor **tensor) {
    tensor_drop(&rank->pool, tensor);
}

// The group's Comm; NULL where this rank is alone in it.
static inline Comm *rank_comm(const Rank *rank, GroupKind group) {
    return rank->world->comms[group];
}

// What a call over a flat buffer, or over the shard of one, sends of padding, which the Program
// does not know.
static inline void rank_padding_sent(Rank *rank, GroupKind group, CommKind kind, const FlatState *f,
                                     bool shard_only, Dtype dtype) {
    const double padding = (double)(f->layout.capacity - f->layout.count);
    const double part = shard_only ? (double)f->shard_count / (double)f->layout.capacity : 1;
    rank->beside_bytes[group][kind] += padding * part * (double)dtype_bytes(dtype);
}

static inline bool rank_is_tp_first(const Rank *rank) {
    return rank->world->index[GROUP_TP] == 0;
}

enum { RANK_REDUCE_MOST = 64 };

// Sums or largest of at most RANK_REDUCE_MOST numbers of the host, over all processes; waits for
// them. In the format of wide numbers.
Status rank_reduce(const Rank *rank, double *values, int num, ReduceOp op);
