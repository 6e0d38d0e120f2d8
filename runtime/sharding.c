#include "runtime/sharding.h"

#include "runtime/mutant.h"

static GroupKind shards_group(const FlatState *f) {
    return f->layout.experts ? GROUP_EZERO : GROUP_ZERO;
}

static bool is_sharded(const FlatState *f) {
    return f->zero_stage >= 2 && f->layout.capacity > 0;
}

// The experts of a layer, by the layer's block; NULL: none.
static FlatState *experts_of(ChunkState *chunk, int block) {
    const int layer = block - BLOCK_LAYERS;
    if (layer < 0 || layer >= chunk->list.place->num_layers) return NULL;
    const int experts = experts_block(&chunk->list, layer);
    return experts < chunk->list.num_blocks ? &chunk->blocks[experts] : NULL;
}

static void flat_open(Rank *rank, FlatState *f, bool backward) {
    Backend *b = rank->backend;
    Comm *zero = rank_comm(rank, shards_group(f));
    if (!is_sharded(f)) return;
    if (f->zero_stage >= 3 && !f->whole_weights) {
        f->whole_weights = rank_tensor(rank, f->layout.capacity);
        zero->table->all_gather(zero, f->whole_weights->data, f->weights, f->shard_count, b->act,
                                rank->stream);
        rank_padding_sent(rank, shards_group(f), f, false, b->act);
    }
    if (backward && !f->whole_gradients) {
        f->whole_gradients = rank_wide(rank, f->layout.capacity);
        b->table->zero(b, f->whole_gradients->data, f->whole_gradients->bytes, rank->stream);
    }
}

void partial_sum(Rank *rank, const FlatState *f, void *gradients) {
    Comm *tp = rank_comm(rank, GROUP_TP);
    const int64_t begin = f->layout.region_begin[REGION_WHOLE_VECTORS];
    const int64_t end = f->layout.region_begin[REGION_SPLIT_MATRICES];
    if (!tp || !rank->plan->sequence_parallel || begin >= end || mutant("sp-no-norm-sum")) return;
    tp->table->all_reduce(tp, wide_at(rank->backend, gradients, begin), end - begin,
                          rank->backend->wide, REDUCE_SUM, rank->stream);
}

static void flat_close(Rank *rank, FlatState *f, bool backward) {
    Backend *b = rank->backend;
    Comm *zero = rank_comm(rank, shards_group(f));
    if (!is_sharded(f)) return;
    rank_drop(rank, &f->whole_weights);
    if (!backward) return;
    partial_sum(rank, f, f->whole_gradients->data);
    void *shard = wide_at(b, f->whole_gradients->data, f->shard_begin);
    if (!mutant(f->layout.experts ? "experts-no-scatter" : "zero-no-scatter"))
        zero->table->reduce_scatter(zero, shard, f->whole_gradients->data, f->shard_count, b->wide,
                                    rank->stream);
    rank_padding_sent(rank, shards_group(f), f, false, b->wide);
    b->table->cast(b, f->gradients, b->wide, shard, b->wide, true, f->shard_count, rank->stream);
    rank_drop(rank, &f->whole_gradients);
}

void block_open(Rank *rank, ChunkState *chunk, int block, bool backward) {
    if (!chunk->list.by_block) return;
    FlatState *experts = experts_of(chunk, block);
    flat_open(rank, &chunk->blocks[block], backward);
    if (experts) flat_open(rank, experts, backward);
}

void block_close(Rank *rank, ChunkState *chunk, int block, bool backward) {
    if (!chunk->list.by_block) return;
    FlatState *experts = experts_of(chunk, block);
    flat_close(rank, &chunk->blocks[block], backward);
    if (experts) flat_close(rank, experts, backward);
}
