#include "runtime/chunk_run.h"

#include "plan/layer_plans.h"
#include "runtime/sharding.h"

#include <stdlib.h>

static Status stash_make(Rank *rank, const ChunkState *chunk, ChunkStash **out) {
    enum { PRODUCTS_PER_LAYER = 7 }; // router, experts' two, shared experts' two
    const int num_layers = chunk->list.place->num_layers;
    ChunkStash *stash = calloc(1, sizeof *stash);
    *out = stash;
    if (stash) {
        stash->num_layers = num_layers;
        stash->layers = calloc((size_t)num_layers + 1, sizeof *stash->layers);
        stash->queue.capacity = PRODUCTS_PER_LAYER * num_layers + 1;
        stash->queue.items = calloc((size_t)stash->queue.capacity, sizeof(WeightWork));
        stash->vectors = calloc((size_t)num_layers + 2, sizeof *stash->vectors);
    }
    if (!stash || !stash->layers || !stash->queue.items || !stash->vectors) {
        chunk_stash_free(rank, out);
        return status_error(STATUS_MACHINE, "no memory for what a micro-batch keeps");
    }
    return status_ok();
}

void chunk_stash_free(Rank *rank, ChunkStash **stash) {
    if (!*stash) return;
    for (int i = 0; i < (*stash)->num_layers; i++)
        routes_free(rank, &(*stash)->layers[i].experts.routes);
    free((*stash)->layers);
    free((*stash)->queue.items);
    free((*stash)->vectors);
    free(*stash);
    *stash = NULL;
}

// What a layer keeps.
static Keep layer_keep(const Rank *rank, int chunk, int layer) {
    const int strategy = plan_layer_strategy(rank->plan, rank->chunks[chunk].list.chunk, layer);
    const Recompute recompute = plan_strategy(rank->plan, strategy).recompute;
    if (recompute == RECOMPUTE_NONE) return KEEP_ALL;
    return recompute == RECOMPUTE_FULL ? KEEP_INPUT : KEEP_ATTENTION_OUTPUT;
}

// The stream as one sum, of which the caller becomes the holder.
static Tensor *residual_close(Rank *rank, Residual *stream) {
    if (!stream->branch) return stream->sum;
    rank->backend->table->add(rank->backend, stream->branch->data, stream->branch->data,
                              stream->sum->data, rank->shape.tokens_sp * rank->shape.hidden,
                              rank->stream);
    rank_drop(rank, &stream->sum);
    return stream->branch;
}

// --- The blocks: BLOCK_POSITIONS for the embedding, those of the layers, behind them the head's

static int head_block(const ChunkState *state) {
    return block_behind_layers(&state->list, BLOCK_FINAL_NORM);
}

static BlockPass pass_of(ChunkState *state, ChunkStash *stash, int block, WorkKind work) {
    return (BlockPass){
        .chunk = state, .block = block, .work = work, .vectors = &stash->vectors[block]};
}

static Tensor *first_input(Rank *rank, ChunkState *state, const MicroBatch *batch,
                           ChunkStash *stash) {
    const BlockPass pass = pass_of(state, stash, BLOCK_POSITIONS, WORK_FORWARD);
    block_open(rank, &pass);
    Tensor *output = embedding_forward(rank, state, batch);
    block_close(rank, &pass);
    return output;
}

static void loss_forward(Rank *rank, ChunkState *state, const MicroBatch *batch, Residual *stream,
                         ChunkStash *stash) {
    const BlockPass pass = pass_of(state, stash, head_block(state), WORK_FORWARD);
    block_open(rank, &pass);
    head_forward(rank, state, batch, stream, &stash->head);
    block_close(rank, &pass);
    rank_drop(rank, &stream->sum);
}

Status chunk_forward(Rank *rank, int chunk, int microbatch, Tensor *input, ChunkStash **stash,
                     Tensor **output) {
    ChunkState *state = &rank->chunks[chunk];
    const PlanChunk *place = state->list.place;
    const MicroBatch batch = rank_microbatch(rank, microbatch);
    TRY(stash_make(rank, state, stash));
    Residual stream = {.sum = place->embedding ? first_input(rank, state, &batch, *stash) : input};
    for (int i = 0; i < place->num_layers; i++) {
        const BlockPass pass = pass_of(state, *stash, BLOCK_LAYERS + i, WORK_FORWARD);
        (*stash)->layers[i].keep = layer_keep(rank, chunk, i);
        block_open(rank, &pass);
        layer_forward(rank, state, i, &stream, &(*stash)->layers[i]);
        block_close(rank, &pass);
    }
    *output = NULL;
    if (place->loss)
        loss_forward(rank, state, &batch, &stream, *stash);
    else
        *output = residual_close(rank, &stream);
    return status_ok();
}

// --- Backward

static Tensor *loss_backward(Rank *rank, ChunkState *state, ChunkStash *stash, WorkKind work) {
    const BlockPass pass = pass_of(state, stash, head_block(state), work);
    stash->queue.block = pass.block;
    block_open(rank, &pass);
    Tensor *gradient = head_backward(rank, state, &stash->head, &stash->queue);
    block_close(rank, &pass);
    return gradient;
}

Tensor *chunk_backward(Rank *rank, int chunk, int microbatch, ChunkStash *stash, Tensor *gradient,
                       bool split) {
    ChunkState *state = &rank->chunks[chunk];
    const PlanChunk *place = state->list.place;
    const MicroBatch batch = rank_microbatch(rank, microbatch);
    const WorkKind work = split ? WORK_BACKWARD_INPUT : WORK_BACKWARD;
    stash->queue.delayed = split;
    if (place->loss) gradient = loss_backward(rank, state, stash, work);
    for (int i = place->num_layers - 1; i >= 0; i--) {
        const BlockPass pass = pass_of(state, stash, BLOCK_LAYERS + i, work);
        stash->queue.block = pass.block;
        block_open(rank, &pass);
        layer_backward(rank, state, i, &stash->layers[i], &gradient, &stash->queue);
        block_close(rank, &pass);
    }
    if (place->embedding) {
        const BlockPass pass = pass_of(state, stash, BLOCK_POSITIONS, work);
        block_open(rank, &pass);
        embedding_backward(rank, state, &batch, &gradient);
        block_close(rank, &pass);
    }
    return gradient;
}

void chunk_weights(Rank *rank, int chunk, ChunkStash *stash) {
    ChunkState *state = &rank->chunks[chunk];
    const PlanChunk *place = state->list.place;
    for (int block = head_block(state); block >= BLOCK_LAYERS; block--) {
        const BlockPass pass = pass_of(state, stash, block, WORK_BACKWARD_WEIGHT);
        if (block == head_block(state) && !place->loss) continue;
        block_open(rank, &pass);
        weight_queue_run(rank, &stash->queue, block);
        block_close(rank, &pass);
    }
}
