#include "runtime/experts.h"

#include "runtime/mlp.h"
#include "runtime/mutant.h"

// --- The router

static Router router_of(const Rank *rank, const ExpertStash *stash) {
    const RankShape *s = &rank->shape;
    return (Router){.rows = s->tokens_sp,
                    .num_experts = model_ffn(&rank->scenario->model)->num_experts,
                    .num_chosen = s->experts_per_token,
                    .normalised = model_ffn(&rank->scenario->model)->norm_topk_prob,
                    .chosen_given = rank->balanced != NULL,
                    .probabilities = stash->probabilities->data,
                    .chosen = stash->chosen->data,
                    .weights = stash->weights->data};
}

static void route(Rank *rank, const ChunkState *chunk, const LayerParameters *p, const Tensor *x,
                  ExpertStash *stash) {
    Backend *b = rank->backend;
    const RankShape *s = &rank->shape;
    const int64_t scores = s->tokens_sp * model_ffn(&rank->scenario->model)->num_experts;
    Tensor *logits = rank_wide(rank, scores);
    b->table->product(b,
                      &(Product){.layout = PRODUCT_FORWARD,
                                 .m = s->tokens_sp,
                                 .n = model_ffn(&rank->scenario->model)->num_experts,
                                 .k = s->hidden,
                                 .a = x->data,
                                 .b = chunk_weight(b, chunk, p->router),
                                 .out = logits->data,
                                 .out_wide = true},
                      rank->stream);
    stash->probabilities = rank_wide(rank, scores);
    stash->weights = rank_wide(rank, s->routed);
    stash->chosen = tensor_new(&rank->pool, s->routed, DTYPE_INT32);
    if (rank->balanced)
        b->table->upload(b, stash->chosen->data, rank->balanced,
                         (size_t)s->routed * sizeof *rank->balanced, rank->stream);
    Router router = router_of(rank, stash);
    router.logits = logits->data;
    b->table->router_forward(b, &router, rank->stream);
    rank_drop(rank, &logits);
    routes_make(rank, stash->chosen, &stash->routes);
}

// From the gradients of the weights, times them, to that of x, to which it is added.
static void router_backward(Rank *rank, const ChunkState *chunk, const LayerParameters *p,
                            const ExpertStash *stash, Tensor *weighted, Tensor *x, Tensor *dx,
                            WeightQueue *queue) {
    Backend *b = rank->backend;
    const RankShape *s = &rank->shape;
    const int64_t num = model_ffn(&rank->scenario->model)->num_experts, scores = s->tokens_sp * num;
    Linear linear = linear_of(rank, chunk, LINEAR_WHOLE, p->router, NULL);
    linear.outputs = num, linear.inputs = s->hidden;
    Tensor *wide = rank_wide(rank, scores), *dlogits = rank_tensor(rank, scores);
    Router router = router_of(rank, stash);
    router.weighted_dw = weighted->data;
    router.dlogits = wide->data;
    b->table->router_backward(b, &router, rank->stream);
    b->table->cast(b, dlogits->data, b->act, wide->data, b->wide, false, scores, rank->stream);
    rank_drop(rank, &wide);
    b->table->product(b,
                      &(Product){.layout = PRODUCT_BACKWARD_INPUT,
                                 .m = s->tokens_sp,
                                 .n = s->hidden,
                                 .k = num,
                                 .a = dlogits->data,
                                 .b = linear.weight,
                                 .out = dx->data,
                                 .accumulate = true},
                      rank->stream);
    weight_queue_add(rank, queue,
                     (WeightWork){.linear = linear, .x = tensor_hold(x), .dy = dlogits});
}

// --- Forward

static Grouped grouped_of(const Rank *rank, const ChunkState *chunk, const LayerParameters *p,
                          const Routes *routes, bool up) {
    const RankShape *s = &rank->shape;
    return (Grouped){.chunk = chunk,
                     .matrices = up ? p->expert_up : p->expert_down,
                     .num = s->experts,
                     .rows = routes->rows,
                     .outputs = up ? s->expert_up : s->hidden,
                     .inputs = up ? s->hidden : s->expert_inner};
}

// Adds up what came back of each token's rows; weights NULL: as it is.
static Tensor *combine(Rank *rank, const Routes *routes, const Tensor *rows,
                       const Tensor *weights) {
    const RankShape *s = &rank->shape;
    Tensor *y = rank_tensor(rank, s->tokens_sp * s->hidden);
    rank->backend->table->combine_forward(rank->backend,
                                          &(CombineRows){.rows = s->tokens_sp,
                                                         .columns = s->hidden,
                                                         .num_chosen = s->experts_per_token,
                                                         .x = rows->data,
                                                         .index = routes->to_sent->data,
                                                         .weights = weights ? weights->data : NULL,
                                                         .y = y->data},
                                          rank->stream);
    return y;
}

// A row for each expert that a token was given, sorted as they are sent.
static Tensor *rows_to_send(Rank *rank, const Routes *routes, const Tensor *x) {
    const RankShape *s = &rank->shape;
    Tensor *rows = rank_tensor(rank, s->routed * s->hidden);
    rank->backend->table->gather_rows(rank->backend,
                                      &(GatherRows){.rows = s->routed,
                                                    .columns = s->hidden,
                                                    .x = x->data,
                                                    .index = routes->from_token->data,
                                                    .y = rows->data},
                                      rank->stream);
    return rows;
}

static void stash_drop(Rank *rank, ExpertStash *stash) {
    rank_drop(rank, &stash->probabilities);
    rank_drop(rank, &stash->weights);
    rank_drop(rank, &stash->chosen);
    routes_drop(rank, &stash->routes);
}

Tensor *experts_forward(Rank *rank, const ChunkState *chunk, const LayerParameters *p,
                        const Tensor *x, ExpertStash *stash, bool keeps) {
    Backend *b = rank->backend;
    const RankShape *s = &rank->shape;
    const RowKind kind = {.columns = s->hidden};
    route(rank, chunk, p, x, stash);
    const Routes *routes = &stash->routes;
    const Grouped up = grouped_of(rank, chunk, p, routes, true);
    const Grouped down = grouped_of(rank, chunk, p, routes, false);
    if (b->failure.code != STATUS_OK) return rank_tensor(rank, s->tokens_sp * s->hidden);
    expert_load_add(&rank->expert_load,
                    chunk->list.place->first_layer + (int)(p - chunk->list.layers),
                    (double)routes->num_rows, (double)s->routed * rank->plan->etp);
    Tensor *moved = rows_to_send(rank, routes, x);
    stash->rows = routes_to_experts(rank, routes, kind, &moved);
    stash->up = grouped_forward(rank, &up, stash->rows);
    if (!keeps) rank_drop(rank, &stash->rows);
    stash->inner = rank_tensor(rank, routes->num_rows * s->expert_inner);
    Activation activation = activation_of(rank, stash->up, routes->num_rows, s->expert_inner);
    activation.y = stash->inner->data;
    if (routes->num_rows > 0) b->table->activation_forward(b, &activation, rank->stream);
    if (!keeps) rank_drop(rank, &stash->up);
    moved = grouped_forward(rank, &down, stash->inner);
    if (!keeps) rank_drop(rank, &stash->inner);
    moved = routes_from_experts(rank, routes, kind, &moved);
    Tensor *y = combine(rank, routes, moved, mutant("experts-no-weights") ? NULL : stash->weights);
    rank_drop(rank, &moved);
    if (keeps) return y;
    stash_drop(rank, stash);
    routes_free(rank, &stash->routes);
    return y;
}

// --- Backward

// The gradient of a token's result, for each of its rows, to the experts.
static Tensor *gradient_to_experts(Rank *rank, const ExpertStash *stash, const Tensor *gradient) {
    const RankShape *s = &rank->shape;
    Tensor *rows = rank_tensor(rank, s->routed * s->hidden);
    rank->backend->table->combine_backward(rank->backend,
                                           &(CombineRows){.rows = s->tokens_sp,
                                                          .columns = s->hidden,
                                                          .num_chosen = s->experts_per_token,
                                                          .index = stash->routes.to_sent->data,
                                                          .weights = stash->weights->data,
                                                          .dy = gradient->data,
                                                          .dx = rows->data},
                                           rank->stream);
    return routes_to_experts(rank, &stash->routes, (RowKind){.columns = s->hidden}, &rows);
}

// Each weight times its gradient, [tokens_sp][experts_per_token], of the experts' [num_rows].
static Tensor *weighted_gradients(Rank *rank, const Routes *routes, Tensor **dots) {
    const RankShape *s = &rank->shape;
    Tensor *back = routes_from_experts(rank, routes, (RowKind){1, true}, dots);
    Tensor *weighted = rank_wide(rank, s->routed);
    rank->backend->table->gather_rows(rank->backend,
                                      &(GatherRows){.rows = s->routed,
                                                    .columns = 1,
                                                    .wide = true,
                                                    .x = back->data,
                                                    .index = routes->to_sent->data,
                                                    .y = weighted->data},
                                      rank->stream);
    rank_drop(rank, &back);
    return weighted;
}

// Takes the gradient of the experts' results, returns that of their inputs; *dots is made.
static Tensor *experts_through(Rank *rank, const ChunkState *chunk, const LayerParameters *p,
                               Tensor **dy, ExpertStash *stash, WeightQueue *queue, Tensor **dots) {
    Backend *b = rank->backend;
    const RankShape *s = &rank->shape;
    const int64_t num_rows = stash->routes.num_rows;
    const Grouped up = grouped_of(rank, chunk, p, &stash->routes, true);
    const Grouped down = grouped_of(rank, chunk, p, &stash->routes, false);
    Tensor *dinner = grouped_backward(rank, &down, stash->inner, *dy, queue);
    rank_drop(rank, dy);
    *dots = rank_wide(rank, num_rows);
    b->table->row_dots(b,
                       &(RowDots){.rows = num_rows,
                                  .columns = s->expert_inner,
                                  .a = dinner->data,
                                  .b = stash->inner->data,
                                  .dots = (*dots)->data},
                       rank->stream);
    rank_drop(rank, &stash->inner);
    Tensor *dup = rank_tensor(rank, num_rows * s->expert_up);
    Activation activation = activation_of(rank, stash->up, num_rows, s->expert_inner);
    activation.dy = dinner->data;
    activation.dx = dup->data;
    if (num_rows > 0) b->table->activation_backward(b, &activation, rank->stream);
    rank_drop(rank, &dinner);
    rank_drop(rank, &stash->up);
    Tensor *drows = grouped_backward(rank, &up, stash->rows, dup, queue);
    rank_drop(rank, &dup);
    rank_drop(rank, &stash->rows);
    return drows;
}

Tensor *experts_backward(Rank *rank, const ChunkState *chunk, const LayerParameters *p, Tensor *x,
                         const Tensor *gradient, ExpertStash *stash, WeightQueue *queue) {
    const RankShape *s = &rank->shape;
    Tensor *dots = NULL;
    if (rank->backend->failure.code != STATUS_OK)
        return rank_tensor(rank, s->tokens_sp * s->hidden);
    Tensor *dy = gradient_to_experts(rank, stash, gradient);
    Tensor *drows = experts_through(rank, chunk, p, &dy, stash, queue, &dots);
    drows = routes_from_experts(rank, &stash->routes, (RowKind){.columns = s->hidden}, &drows);
    Tensor *dx = combine(rank, &stash->routes, drows, NULL);
    rank_drop(rank, &drows);
    Tensor *weighted = weighted_gradients(rank, &stash->routes, &dots);
    if (!mutant("experts-no-router-gradient"))
        router_backward(rank, chunk, p, stash, weighted, x, dx, queue);
    rank_drop(rank, &weighted);
    stash_drop(rank, stash);
    return dx;
}
