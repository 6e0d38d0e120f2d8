#include "runtime/mlp.h"

typedef struct {
    int64_t inner, values; // behind and before the activation
    Linear up, down;
} Mlp;

static ActivationOp activation_op(const Model *model) {
    const FunctionKind kind = model->functions.activation;
    if (model_ffn(model)->gated)
        return kind == FUNCTION_GELU ? ACTIVATION_GELU_GATED : ACTIVATION_SILU_GATED;
    return kind == FUNCTION_RELU ? ACTIVATION_RELU : ACTIVATION_GELU;
}

Activation activation_of(const Rank *rank, const Tensor *x, int64_t rows, int64_t width) {
    return (Activation){
        .op = activation_op(&rank->scenario->model), .rows = rows, .width = width, .x = x->data};
}

static Mlp mlp_of(const Rank *rank, const ChunkState *chunk, const LayerParameters *p) {
    const RankShape *s = &rank->shape;
    Mlp mlp = {.inner = p->router ? s->shared_inner : s->inner,
               .values = p->router ? s->shared_up : s->up,
               .up = linear_of(rank, chunk, LINEAR_COLUMN, p->up, p->up_bias),
               .down = linear_of(rank, chunk, LINEAR_ROW, p->down, p->down_bias)};
    mlp.up.outputs = mlp.values, mlp.up.inputs = s->hidden;
    mlp.down.outputs = s->hidden, mlp.down.inputs = mlp.inner;
    return mlp;
}

static Tensor *dense_forward(Rank *rank, const Mlp *mlp, LayerStash *stash, bool keeps) {
    const int64_t tokens = rank->shape.tokens;
    stash->up = linear_forward(rank, &mlp->up, stash->norm[1]);
    if (!keeps) rank_drop(rank, &stash->norm[1]);
    stash->inner = rank_tensor(rank, tokens * mlp->inner);
    Activation activation = activation_of(rank, stash->up, tokens, mlp->inner);
    activation.y = stash->inner->data;
    rank->backend->table->activation_forward(rank->backend, &activation, rank->stream);
    if (!keeps) rank_drop(rank, &stash->up);
    Tensor *y = linear_forward(rank, &mlp->down, stash->inner);
    if (!keeps) rank_drop(rank, &stash->inner);
    return y;
}

static Tensor *dense_backward(Rank *rank, const Mlp *mlp, LayerStash *stash, Tensor *gradient,
                              WeightQueue *queue) {
    const int64_t tokens = rank->shape.tokens;
    Tensor *dinner = linear_backward(rank, &mlp->down, stash->inner, gradient, queue);
    rank_drop(rank, &stash->inner);
    Tensor *dup = rank_tensor(rank, tokens * mlp->values);
    Activation activation = activation_of(rank, stash->up, tokens, mlp->inner);
    activation.dy = dinner->data;
    activation.dx = dup->data;
    rank->backend->table->activation_backward(rank->backend, &activation, rank->stream);
    rank_drop(rank, &dinner);
    rank_drop(rank, &stash->up);
    Tensor *dx = linear_backward(rank, &mlp->up, stash->norm[1], dup, queue);
    rank_drop(rank, &dup);
    return dx;
}

// Adds `other`, which it takes, to `sum`; either may be NULL.
static Tensor *join(Rank *rank, Tensor *sum, Tensor *other) {
    if (!sum || !other) return sum ? sum : other;
    rank->backend->table->add(rank->backend, sum->data, sum->data, other->data,
                              rank->shape.tokens_sp * rank->shape.hidden, rank->stream);
    rank_drop(rank, &other);
    return sum;
}

Tensor *mlp_forward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash, bool keeps) {
    const LayerParameters *p = &chunk->list.layers[index];
    Tensor *routed = NULL, *dense = NULL;
    if (p->router) routed = experts_forward(rank, chunk, p, stash->norm[1], &stash->experts, keeps);
    if (p->up) {
        const Mlp mlp = mlp_of(rank, chunk, p);
        dense = dense_forward(rank, &mlp, stash, keeps);
    }
    if (!keeps) rank_drop(rank, &stash->norm[1]);
    return join(rank, routed, dense);
}

Tensor *mlp_backward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                     Tensor *gradient, WeightQueue *queue) {
    const LayerParameters *p = &chunk->list.layers[index];
    Tensor *dense = NULL, *routed = NULL;
    if (p->up) {
        const Mlp mlp = mlp_of(rank, chunk, p);
        dense = dense_backward(rank, &mlp, stash, gradient, queue);
    }
    if (p->router)
        routed = experts_backward(rank, chunk, p, stash->norm[1], gradient, &stash->experts, queue);
    return join(rank, dense, routed);
}
