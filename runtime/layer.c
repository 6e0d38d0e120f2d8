#include "runtime/layer.h"

#include "runtime/context.h"
#include "runtime/heads_norm.h"
#include "runtime/mlp.h"
#include "runtime/mutant.h"

#include <math.h>

// --- Weights

typedef struct {
    Linear qkv, out;
    NormWeights norm[2];
} LayerWeights;

static LayerWeights layer_weights(const Rank *rank, const ChunkState *chunk, int index) {
    const LayerParameters *p = &chunk->list.layers[index];
    const RankShape *s = &rank->shape;
    LayerWeights w = {.qkv = linear_of(rank, chunk, LINEAR_COLUMN, p->qkv, p->qkv_bias),
                      .out = linear_of(rank, chunk, LINEAR_ROW, p->out, p->out_bias)};
    for (int i = 0; i < 2; i++) w.norm[i] = norm_weights(rank, chunk, p->norm[i], p->norm_bias[i]);
    w.qkv.outputs = s->qkv, w.qkv.inputs = s->hidden;
    w.out.outputs = s->hidden, w.out.inputs = s->attended;
    return w;
}

NormWeights norm_weights(const Rank *rank, const ChunkState *chunk, const Parameter *weight,
                         const Parameter *bias) {
    const Backend *b = rank->backend;
    return (NormWeights){chunk_weight(b, chunk, weight), chunk_weight(b, chunk, bias),
                         chunk_gradient(b, chunk, weight), chunk_gradient(b, chunk, bias)};
}

// --- Norms

static NormOp norm_op(const Rank *rank) {
    return rank->scenario->model.norm == NORM_RMSNORM ? NORM_RMS : NORM_LAYER;
}

Tensor *residual_norm(Rank *rank, const NormWeights *weights, Residual *stream, Tensor **kept,
                      Tensor **statistics) {
    const int64_t rows = rank->shape.tokens_sp, columns = rank->shape.hidden;
    Tensor *x = stream->branch ? stream->branch : stream->sum;
    Tensor *y = rank_tensor(rank, rows * columns);
    *statistics = rank_wide(rank, 2 * rows);
    rank->backend->table->norm_forward(
        rank->backend,
        &(NormForward){.op = norm_op(rank),
                       .rows = rows,
                       .columns = columns,
                       .epsilon = rank->scenario->model.functions.norm_epsilon,
                       .x = x->data,
                       .add = stream->branch ? stream->sum->data : NULL,
                       .sum = x->data,
                       .weight = weights->weight,
                       .bias = weights->bias,
                       .y = y->data,
                       .mean = (*statistics)->data,
                       .rstd = wide_at(rank->backend, (*statistics)->data, rows)},
        rank->stream);
    if (stream->branch) rank_drop(rank, &stream->sum);
    *stream = (Residual){.sum = x};
    *kept = tensor_hold(x);
    return y;
}

Tensor *residual_norm_backward(Rank *rank, const NormWeights *weights, const Tensor *x,
                               const Tensor *statistics, const Tensor *dy, const Tensor *past) {
    const int64_t rows = rank->shape.tokens_sp, columns = rank->shape.hidden;
    Tensor *dx = rank_tensor(rank, rows * columns);
    rank->backend->table->norm_backward(
        rank->backend,
        &(NormBackward){.op = norm_op(rank),
                        .rows = rows,
                        .columns = columns,
                        .dy = dy->data,
                        .x = x->data,
                        .weight = weights->weight,
                        .mean = statistics->data,
                        .rstd = wide_at(rank->backend, statistics->data, rows),
                        .add = past ? past->data : NULL,
                        .dx = dx->data,
                        .dweight = weights->dweight,
                        .dbias = weights->dbias},
        rank->stream);
    return dx;
}

// --- Attention

static RopeScaling scaling_of(const ModelFunctions *functions) {
    if (functions->rope == ROPE_PLAIN) return (RopeScaling){0};
    if (functions->rope == ROPE_LINEAR) return (RopeScaling){.factor = functions->rope_factor};
    return (RopeScaling){functions->rope_factor,
                         functions->original_positions / functions->low_freq_factor,
                         functions->original_positions / functions->high_freq_factor};
}

static void rotate(Rank *rank, Tensor *qkv, bool inverse) {
    const RankShape *s = &rank->shape;
    if (rank->scenario->model.position != POSITION_ROPE) return;
    rank->backend->table->rope(rank->backend,
                               &(Rope){.tokens = s->tokens,
                                       .heads = s->heads + s->kv_heads, // keys follow the queries
                                       .head_dim = s->head_dim,
                                       .x = qkv->data,
                                       .stride = s->qkv,
                                       .positions = rank->positions,
                                       .theta = rank->scenario->model.functions.rope_theta,
                                       .scaling = scaling_of(&rank->scenario->model.functions),
                                       .inverse = inverse},
                               rank->stream);
}

static void *values_at(const Rank *rank, const Tensor *qkv, int64_t values) {
    return qkv->data ? (char *)qkv->data + values * (int64_t)dtype_bytes(rank->backend->act) : NULL;
}

static Attention attention_of(const Rank *rank, const ChunkState *chunk, int index,
                              const Tensor *qkv) {
    const RankShape *s = &rank->shape;
    const Model *m = &rank->scenario->model;
    const int64_t keys = s->attended, values = keys + (int64_t)s->kv_heads * s->head_dim;
    return (Attention){
        .batch = (int)s->sequences,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->head_dim,
        .num_queries = s->seq_len,
        .num_keys = s->seq_len,
        .causal = rank->scenario->training.causal,
        .window = m->kinds[m->layer_kind[chunk->list.place->first_layer + index]].mixer.window,
        .scale = 1 / sqrt(s->head_dim),
        .q = qkv->data,
        .k = values_at(rank, qkv, keys),
        .v = values_at(rank, qkv, values),
        .q_stride = s->qkv,
        .q_batch_stride = s->seq_len * s->qkv,
        .kv_stride = s->qkv,
        .kv_batch_stride = s->seq_len * s->qkv,
        .o_stride = s->attended,
        .o_batch_stride = s->seq_len * s->attended,
        .lse_stride = s->seq_len};
}

// Makes the output and its log-sum-exp of rotated queries, keys and values.
static void attend(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash) {
    const RankShape *s = &rank->shape;
    Attention call = attention_of(rank, chunk, index, stash->qkv);
    stash->o = rank_tensor(rank, s->tokens * s->attended);
    stash->lse = rank_wide(rank, s->tokens * s->heads);
    call.o = stash->o->data;
    call.lse = stash->lse->data;
    if (rank_comm(rank, GROUP_CP))
        context_attend(rank, &call, stash);
    else
        rank->backend->table->attention_forward(rank->backend, &call, rank->stream);
}

// Takes the gradient of the output; returns that of queries, keys and values before their rotation.
static Tensor *attend_backward(Rank *rank, const ChunkState *chunk, int index,
                               const LayerStash *stash, Tensor **dout) {
    const RankShape *s = &rank->shape;
    Attention call = attention_of(rank, chunk, index, stash->qkv);
    Tensor *dqkv;
    call.o = stash->o->data;
    call.lse = stash->lse->data;
    call.dout = (*dout)->data;
    if (rank_comm(rank, GROUP_CP)) {
        dqkv = context_attend_backward(rank, &call, stash, dout);
    } else {
        dqkv = rank_tensor(rank, s->tokens * s->qkv);
        call.dq = dqkv->data;
        call.dk = values_at(rank, dqkv, s->attended);
        call.dv = values_at(rank, dqkv, s->attended + (int64_t)s->kv_heads * s->head_dim);
        rank->backend->table->attention_backward(rank->backend, &call, rank->stream);
    }
    rank_drop(rank, dout);
    rotate(rank, dqkv, true);
    return dqkv;
}

// --- The layer

void layer_forward(Rank *rank, const ChunkState *chunk, int index, Residual *stream,
                   LayerStash *stash) {
    const LayerWeights w = layer_weights(rank, chunk, index);
    const bool all = stash->keep != KEEP_INPUT;
    Tensor *x = NULL;
    stash->norm[0] = residual_norm(rank, &w.norm[0], stream, &x, &stash->statistics[0]);
    if (stash->x)
        rank_drop(rank, &x); // it runs again: its input is there
    else
        stash->x = x;
    stash->qkv = linear_forward(rank, &w.qkv, stash->norm[0]);
    if (!all) rank_drop(rank, &stash->norm[0]);
    heads_norm(rank, chunk, index, stash);
    if (!all) heads_norm_drop(rank, stash);
    rotate(rank, stash->qkv, false);
    attend(rank, chunk, index, stash);
    if (!all) rank_drop(rank, &stash->qkv);
    if (stash->keep != KEEP_ALL) rank_drop(rank, &stash->lse);
    stream->branch = linear_forward(rank, &w.out, stash->o);
    if (!all) rank_drop(rank, &stash->o);
    stash->norm[1] = residual_norm(rank, &w.norm[1], stream, &stash->middle, &stash->statistics[1]);
    stream->branch = mlp_forward(rank, chunk, index, stash, all);
    if (all) return;
    rank_drop(rank, &stash->middle);
    for (int i = 0; i < 2; i++) rank_drop(rank, &stash->statistics[i]);
}

static void run_again(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash) {
    if (stash->keep == KEEP_INPUT) {
        const bool stale = index > 0 && mutant("recompute-stale-input"); // of the layer before
        Residual stream = {.sum = tensor_hold(stale ? (stash - 1)->x : stash->x)};
        stash->keep = KEEP_ALL;
        layer_forward(rank, chunk, index, &stream, stash);
        rank_drop(rank, &stream.sum);
        rank_drop(rank, &stream.branch);
    } else if (stash->keep == KEEP_ATTENTION_OUTPUT) {
        stash->keep = KEEP_ALL;
        rank_drop(rank, &stash->o);
        if (mutant("recompute-rotates-again")) rotate(rank, stash->qkv, false);
        attend(rank, chunk, index, stash);
    }
}

// From the gradient of the layer's result to that of `middle`.
static void branch_backward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                            Tensor **gradient, WeightQueue *queue) {
    const LayerWeights w = layer_weights(rank, chunk, index);
    Tensor *dnorm = mlp_backward(rank, chunk, index, stash, *gradient, queue);
    rank_drop(rank, &stash->norm[1]);
    Tensor *dx = residual_norm_backward(rank, &w.norm[1], stash->middle, stash->statistics[1],
                                        dnorm, *gradient);
    rank_drop(rank, &dnorm);
    rank_drop(rank, &stash->middle);
    rank_drop(rank, &stash->statistics[1]);
    rank_drop(rank, gradient);
    *gradient = dx;
}

void layer_backward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                    Tensor **gradient, WeightQueue *queue) {
    const LayerWeights w = layer_weights(rank, chunk, index);
    run_again(rank, chunk, index, stash);
    branch_backward(rank, chunk, index, stash, gradient, queue);
    Tensor *dout = linear_backward(rank, &w.out, stash->o, *gradient, queue);
    Tensor *dqkv = attend_backward(rank, chunk, index, stash, &dout);
    rank_drop(rank, &stash->o);
    rank_drop(rank, &stash->lse);
    rank_drop(rank, &stash->heads_o);
    rank_drop(rank, &stash->qkv);
    heads_norm_backward(rank, chunk, index, stash, dqkv);
    Tensor *dnorm = linear_backward(rank, &w.qkv, stash->norm[0], dqkv, queue);
    rank_drop(rank, &dqkv);
    rank_drop(rank, &stash->norm[0]);
    Tensor *dx =
        residual_norm_backward(rank, &w.norm[0], stash->x, stash->statistics[0], dnorm, *gradient);
    rank_drop(rank, &dnorm);
    rank_drop(rank, &stash->x);
    rank_drop(rank, &stash->statistics[0]);
    rank_drop(rank, gradient);
    *gradient = dx;
}
