#include "runtime/chunk_run.h"

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
    }
    if (!stash || !stash->layers || !stash->queue.items) {
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
    free(*stash);
    *stash = NULL;
}

// What a layer keeps. recompute_layers counts those of the whole rank.
static Keep layer_keep(const Rank *rank, int chunk, int layer) {
    const Plan *plan = rank->plan;
    int before = layer, recompute = (int)plan->recompute;
    for (int k = 0; k < chunk; k++) before += rank->chunks[k].list.place->num_layers;
    if (plan->layer_recompute)
        recompute = plan->layer_recompute[rank->chunks[chunk].list.place->first_layer + layer];
    else if (plan->recompute_layers >= 0 && before >= plan->recompute_layers)
        recompute = RECOMPUTE_NONE;
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

// The head reads the word table too where that is its matrix.
static void head_open(Rank *rank, ChunkState *state, bool backward) {
    block_open(rank, state, BLOCK_LAYERS + state->list.place->num_layers, backward);
    if (!state->list.head) block_open(rank, rank->table, BLOCK_ENDS_FIRST, backward);
}

// Behind a backward the gradient of that stays: the embedding's is still to be added.
static void head_close(Rank *rank, ChunkState *state, bool backward) {
    block_close(rank, state, BLOCK_LAYERS + state->list.place->num_layers, backward);
    if (!state->list.head && !backward) block_close(rank, rank->table, BLOCK_ENDS_FIRST, false);
}

static Tensor *first_input(Rank *rank, ChunkState *state, const MicroBatch *batch) {
    block_open(rank, state, BLOCK_ENDS_FIRST, false);
    Tensor *output = embedding_forward(rank, state, batch);
    block_close(rank, state, BLOCK_ENDS_FIRST, false);
    return output;
}

Status chunk_forward(Rank *rank, int chunk, int microbatch, Tensor *input, ChunkStash **stash,
                     Tensor **output) {
    ChunkState *state = &rank->chunks[chunk];
    const PlanChunk *place = state->list.place;
    const MicroBatch batch = rank_microbatch(rank, microbatch);
    TRY(stash_make(rank, state, stash));
    Residual stream = {.sum = place->embedding ? first_input(rank, state, &batch) : input};
    for (int i = 0; i < place->num_layers; i++) {
        (*stash)->layers[i].keep = layer_keep(rank, chunk, i);
        block_open(rank, state, BLOCK_LAYERS + i, false);
        layer_forward(rank, state, i, &stream, &(*stash)->layers[i]);
        block_close(rank, state, BLOCK_LAYERS + i, false);
    }
    *output = NULL;
    if (place->loss) {
        head_open(rank, state, false);
        head_forward(rank, state, &batch, &stream, &(*stash)->head);
        head_close(rank, state, false);
        rank_drop(rank, &stream.sum);
    } else {
        *output = residual_close(rank, &stream);
    }
    return status_ok();
}

Tensor *chunk_backward(Rank *rank, int chunk, int microbatch, ChunkStash *stash, Tensor *gradient,
                       bool split) {
    ChunkState *state = &rank->chunks[chunk];
    const PlanChunk *place = state->list.place;
    const MicroBatch batch = rank_microbatch(rank, microbatch);
    stash->queue.delayed = split;
    if (place->loss) {
        head_open(rank, state, true);
        gradient = head_backward(rank, state, &stash->head, &stash->queue);
        head_close(rank, state, true);
    }
    for (int i = place->num_layers - 1; i >= 0; i--) {
        block_open(rank, state, BLOCK_LAYERS + i, true);
        layer_backward(rank, state, i, &stash->layers[i], &gradient, &stash->queue);
        block_close(rank, state, BLOCK_LAYERS + i, true);
    }
    if (place->embedding) {
        block_open(rank, state, BLOCK_ENDS_FIRST, true);
        embedding_backward(rank, state, &batch, &gradient);
        block_close(rank, state, BLOCK_ENDS_FIRST, true);
    }
    return gradient;
}

void chunk_weights(Rank *rank, ChunkStash *stash) {
    weight_queue_run(rank, &stash->queue);
}
