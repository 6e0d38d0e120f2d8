#include "runtime/sharding.h"

#include "runtime/mutant.h"

static bool is_sharded(const ChunkState *chunk, int block) {
    return chunk->zero_stage >= 2 && chunk->blocks[block].layout.capacity > 0;
}

void block_open(Rank *rank, ChunkState *chunk, int block, bool backward) {
    Backend *b = rank->backend;
    Comm *zero = rank_comm(rank, GROUP_ZERO);
    if (!is_sharded(chunk, block)) return;
    FlatState *f = &chunk->blocks[block];
    if (chunk->zero_stage >= 3 && !f->whole_weights) {
        f->whole_weights = rank_tensor(rank, f->layout.capacity);
        zero->table->all_gather(zero, f->whole_weights->data, f->weights, f->shard_count, b->act,
                                rank->stream);
    }
    if (backward && !f->whole_gradients) {
        f->whole_gradients = rank_wide(rank, f->layout.capacity);
        b->table->zero(b, f->whole_gradients->data, f->whole_gradients->bytes, rank->stream);
    }
}

void block_close(Rank *rank, ChunkState *chunk, int block, bool backward) {
    Backend *b = rank->backend;
    Comm *zero = rank_comm(rank, GROUP_ZERO);
    if (!is_sharded(chunk, block)) return;
    FlatState *f = &chunk->blocks[block];
    rank_drop(rank, &f->whole_weights);
    if (!backward) return;
    void *shard = wide_at(b, f->whole_gradients->data, f->shard_begin);
    if (!mutant("zero-no-scatter"))
        zero->table->reduce_scatter(zero, shard, f->whole_gradients->data, f->shard_count, b->wide,
                                    rank->stream);
    b->table->cast(b, f->gradients, b->wide, shard, b->wide, true, f->shard_count, rank->stream);
    rank_drop(rank, &f->whole_gradients);
}
