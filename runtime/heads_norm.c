#include "runtime/heads_norm.h"

// The heads of queries, or those of keys: one behind the other in a token's values.
typedef struct {
    int64_t first, heads; // first value of a token
    const Parameter *weight;
    Tensor **kept, **statistics;
} Part;

enum { NUM_KINDS = 2 };

static void parts_of(const Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                     Part parts[NUM_KINDS]) {
    const RankShape *s = &rank->shape;
    const LayerParameters *p = &chunk->list.layers[index];
    for (int i = 0; i < NUM_KINDS; i++)
        parts[i] = (Part){.first = i == 0 ? 0 : s->attended,
                          .heads = i == 0 ? s->heads : s->kv_heads,
                          .weight = p->heads_norm[i],
                          .kept = &stash->heads[i],
                          .statistics = &stash->heads_statistics[i]};
}

// Between the values of these heads among all of a token, and an array of their own.
static void heads_copy(Rank *rank, const Part *part, Tensor *qkv, Tensor *own, bool out) {
    const RankShape *s = &rank->shape;
    Backend *b = rank->backend;
    const int64_t size = (int64_t)dtype_bytes(b->act), bytes = part->heads * s->head_dim * size;
    void *among = act_at(b, qkv->data, part->first);
    b->table->copy_rows(b, out ? own->data : among, out ? bytes : s->qkv * size,
                        out ? among : own->data, out ? s->qkv * size : bytes, s->tokens, bytes,
                        rank->stream);
}

void heads_norm(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash) {
    const RankShape *s = &rank->shape;
    Part parts[NUM_KINDS];
    if (!model_mixer(&rank->scenario->model)->qk_norm) return;
    parts_of(rank, chunk, index, stash, parts);
    for (int i = 0; i < NUM_KINDS; i++) {
        const int64_t rows = s->tokens * parts[i].heads;
        Tensor *x = rank_tensor(rank, rows * s->head_dim);
        Tensor *y = rank_tensor(rank, rows * s->head_dim);
        Tensor *statistics = rank_wide(rank, rows);
        heads_copy(rank, &parts[i], stash->qkv, x, true);
        rank->backend->table->norm_forward(
            rank->backend,
            &(NormForward){.op = NORM_RMS,
                           .rows = rows,
                           .columns = s->head_dim,
                           .epsilon = rank->scenario->model.functions.norm_epsilon,
                           .x = x->data,
                           .weight = chunk_weight(rank->backend, chunk, parts[i].weight),
                           .y = y->data,
                           .rstd = statistics->data},
            rank->stream);
        heads_copy(rank, &parts[i], stash->qkv, y, false);
        rank_drop(rank, &y);
        *parts[i].kept = x;
        *parts[i].statistics = statistics;
    }
}

void heads_norm_backward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                         Tensor *dqkv) {
    const RankShape *s = &rank->shape;
    Backend *b = rank->backend;
    Part parts[NUM_KINDS];
    if (!model_mixer(&rank->scenario->model)->qk_norm) return;
    parts_of(rank, chunk, index, stash, parts);
    for (int i = 0; i < NUM_KINDS; i++) {
        const int64_t rows = s->tokens * parts[i].heads;
        Tensor *dy = rank_tensor(rank, rows * s->head_dim);
        heads_copy(rank, &parts[i], dqkv, dy, true);
        b->table->norm_backward(
            b,
            &(NormBackward){.op = NORM_RMS,
                            .rows = rows,
                            .columns = s->head_dim,
                            .dy = dy->data,
                            .x = (*parts[i].kept)->data,
                            .weight = chunk_weight(b, chunk, parts[i].weight),
                            .rstd = (*parts[i].statistics)->data,
                            .dx = dy->data,
                            .dweight = chunk_gradient(b, chunk, parts[i].weight)},
            rank->stream);
        heads_copy(rank, &parts[i], dqkv, dy, false);
        rank_drop(rank, &dy);
    }
    heads_norm_drop(rank, stash);
}

void heads_norm_drop(Rank *rank, LayerStash *stash) {
    for (int i = 0; i < NUM_KINDS; i++) {
        rank_drop(rank, &stash->heads[i]);
        rank_drop(rank, &stash->heads_statistics[i]);
    }
}
