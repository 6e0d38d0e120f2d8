#include "runtime/sharding.h"

#include "runtime/mutant.h"
#include "workload/pass/block.h"

static GroupKind shards_group(const FlatState *f) {
    return f->layout.experts ? GROUP_EZERO : GROUP_ZERO;
}

static bool is_sharded(const FlatState *f) {
    return f->zero_stage >= 2 && f->layout.capacity > 0;
}

// --- The buffers of a block

static bool is_head(const BlockPass *pass) {
    return pass->block == block_behind_layers(&pass->chunk->list, BLOCK_FINAL_NORM);
}

// What comes and goes with a block; NULL: nothing.
static FlatState *companion(const Rank *rank, const BlockPass *pass) {
    ChunkState *chunk = pass->chunk;
    const ChunkParameters *list = &chunk->list;
    if (pass->block == BLOCK_POSITIONS)
        return &chunk->blocks[block_behind_layers(list, BLOCK_TABLE)];
    if (is_head(pass) && list->head)
        return &chunk->blocks[block_behind_layers(list, BLOCK_HEAD_MATRIX)];
    if (is_head(pass))
        return &rank->table->blocks[block_behind_layers(&rank->table->list, BLOCK_TABLE)];
    const int experts = experts_block(list, pass->block - BLOCK_LAYERS);
    return experts < list->num_blocks ? &chunk->blocks[experts] : NULL;
}

static bool needs_weights(const BlockPass *pass) {
    return pass->work != WORK_BACKWARD_WEIGHT;
}

static bool makes_gradients(const BlockPass *pass) {
    if (pass->work == WORK_BACKWARD_INPUT) return pass->block == BLOCK_POSITIONS;
    return pass->work != WORK_FORWARD;
}

// --- Vectors between the parts of a split backward

static int64_t vectors_begin(const FlatState *f) {
    return f->layout.region_begin[REGION_WHOLE_VECTORS];
}

static int64_t vectors_count(const FlatState *f) {
    return f->layout.region_begin[REGION_WHOLE_VECTORS + 1] - vectors_begin(f);
}

static void vectors_open(Rank *rank, FlatState *f) {
    Backend *b = rank->backend;
    f->vector_gradients = rank_wide(rank, vectors_count(f));
    b->table->zero(b, f->vector_gradients->data, f->vector_gradients->bytes, rank->stream);
}

static void vectors_add(Rank *rank, FlatState *f, Tensor **vectors) {
    Backend *b = rank->backend;
    void *whole = wide_at(b, f->whole_gradients->data, vectors_begin(f));
    if (!mutant("split-drops-norm"))
        b->table->cast(b, whole, b->wide, (*vectors)->data, b->wide, true, vectors_count(f),
                       rank->stream);
    rank_drop(rank, vectors);
}

// --- One buffer

static void weights_open(Rank *rank, FlatState *f) {
    Comm *zero = rank_comm(rank, shards_group(f));
    if (f->zero_stage < 3 || f->whole_weights) return;
    f->whole_weights = rank_tensor(rank, f->layout.capacity);
    zero->table->all_gather(zero, f->whole_weights->data, f->weights, f->shard_count,
                            rank->backend->act, rank->stream);
    rank_padding_sent(rank, shards_group(f), COMM_ALL_GATHER, f, false, rank->backend->act);
}

static void gradients_open(Rank *rank, FlatState *f) {
    Backend *b = rank->backend;
    if (f->whole_gradients) return;
    f->whole_gradients = rank_wide(rank, f->layout.capacity);
    b->table->zero(b, f->whole_gradients->data, f->whole_gradients->bytes, rank->stream);
}

void partial_sum(Rank *rank, const FlatState *f, void *gradients) {
    Comm *tp = rank_comm(rank, GROUP_TP);
    const int64_t begin = f->layout.region_begin[REGION_WHOLE_VECTORS];
    const int64_t end = f->layout.region_begin[REGION_SPLIT_MATRICES];
    if (!tp || !rank->plan->sequence_parallel || begin >= end || mutant("sp-no-norm-sum")) return;
    tp->table->all_reduce(tp, wide_at(rank->backend, gradients, begin), end - begin,
                          rank->backend->wide, REDUCE_SUM, rank->stream);
}

static void gradients_close(Rank *rank, FlatState *f) {
    Backend *b = rank->backend;
    Comm *zero = rank_comm(rank, shards_group(f));
    partial_sum(rank, f, f->whole_gradients->data);
    void *shard = wide_at(b, f->whole_gradients->data, f->shard_begin);
    if (!mutant(f->layout.experts ? "experts-no-scatter" : "zero-no-scatter"))
        zero->table->reduce_scatter(zero, shard, f->whole_gradients->data, f->shard_count, b->wide,
                                    rank->stream);
    rank_padding_sent(rank, shards_group(f), COMM_REDUCE_SCATTER, f, false, b->wide);
    b->table->cast(b, f->gradients, b->wide, shard, b->wide,
                   !mutant("shard-accumulation-overwrites"), f->shard_count, rank->stream);
    rank_drop(rank, &f->whole_gradients);
}

static void flat_open(Rank *rank, const BlockPass *pass, FlatState *f) {
    if (needs_weights(pass)) weights_open(rank, f);
    if (makes_gradients(pass)) gradients_open(rank, f);
}

static void flat_close(Rank *rank, const BlockPass *pass, FlatState *f) {
    rank_drop(rank, &f->whole_weights);
    if (makes_gradients(pass)) gradients_close(rank, f);
}

// --- A block

// Of a tied matrix the embedding's gradient may still be to come.
static bool stays(const Rank *rank, const BlockPass *pass) {
    return is_head(pass) && !pass->chunk->list.head && pass->work == WORK_BACKWARD &&
           workload_table_stays(rank->plan);
}

void block_open(Rank *rank, const BlockPass *pass) {
    if (!pass->chunk->list.by_block) return;
    FlatState *own = &pass->chunk->blocks[pass->block], *other = companion(rank, pass);
    if (is_sharded(own)) flat_open(rank, pass, own);
    if (other && is_sharded(other)) flat_open(rank, pass, other);
    if (!is_sharded(own) || vectors_count(own) == 0) return;
    if (pass->work == WORK_BACKWARD_INPUT && !makes_gradients(pass)) vectors_open(rank, own);
    if (pass->work == WORK_BACKWARD_WEIGHT) vectors_add(rank, own, pass->vectors);
}

void block_close(Rank *rank, const BlockPass *pass) {
    if (!pass->chunk->list.by_block) return;
    FlatState *own = &pass->chunk->blocks[pass->block], *other = companion(rank, pass);
    if (is_sharded(own)) flat_close(rank, pass, own);
    if (other && is_sharded(other) && !stays(rank, pass)) flat_close(rank, pass, other);
    if (own->vector_gradients) *pass->vectors = own->vector_gradients;
    own->vector_gradients = NULL;
}
