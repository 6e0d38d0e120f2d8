#include "runtime/linear.h"

#include "runtime/mutant.h"

// --- Tokens of the tp group

static bool splits_tokens(const Rank *rank) {
    return rank->plan->sequence_parallel && rank_comm(rank, GROUP_TP);
}

Tensor *tokens_gather(Rank *rank, const Tensor *x, int64_t columns) {
    if (!splits_tokens(rank)) return NULL;
    Comm *tp = rank_comm(rank, GROUP_TP);
    Tensor *all = rank_tensor(rank, rank->shape.tokens * columns);
    tp->table->all_gather(tp, all->data, x->data, rank->shape.tokens_sp * columns,
                          rank->backend->act, rank->stream);
    return all;
}

Tensor *tokens_sum(Rank *rank, Tensor **x, int64_t columns) {
    Comm *tp = rank_comm(rank, GROUP_TP);
    Tensor *sum = *x;
    *x = NULL;
    if (!tp) return sum;
    if (!splits_tokens(rank)) {
        tp->table->all_reduce(tp, sum->data, rank->shape.tokens * columns, rank->backend->act,
                              REDUCE_SUM, rank->stream);
        return sum;
    }
    Tensor *own = rank_tensor(rank, rank->shape.tokens_sp * columns);
    tp->table->reduce_scatter(tp, own->data, sum->data, rank->shape.tokens_sp * columns,
                              rank->backend->act, rank->stream);
    rank_drop(rank, &sum);
    return own;
}

// --- Forward

Linear linear_of(const Rank *rank, const ChunkState *chunk, LinearSplit split,
                 const Parameter *weight, const Parameter *bias) {
    const Backend *b = rank->backend;
    const bool adds_bias = split == LINEAR_COLUMN || rank_is_tp_first(rank);
    return (Linear){.split = split,
                    .weight = chunk_weight(b, chunk, weight),
                    .bias = adds_bias ? chunk_weight(b, chunk, bias) : NULL,
                    .chunk = chunk,
                    .dweight = weight,
                    .dbias = bias};
}

static void product(Rank *rank, const Product *call) {
    rank->backend->table->product(rank->backend, call, rank->stream);
}

Tensor *linear_forward(Rank *rank, const Linear *l, const Tensor *x) {
    const int64_t tokens = rank->shape.tokens;
    Tensor *all = l->split == LINEAR_COLUMN ? tokens_gather(rank, x, l->inputs) : NULL;
    Tensor *y = rank_tensor(rank, tokens * l->outputs);
    product(rank, &(Product){.layout = PRODUCT_FORWARD,
                             .m = tokens,
                             .n = l->outputs,
                             .k = l->inputs,
                             .a = all ? all->data : x->data,
                             .b = l->weight,
                             .bias = l->bias,
                             .out = y->data});
    rank_drop(rank, &all);
    return l->split == LINEAR_ROW ? tokens_sum(rank, &y, l->outputs) : y;
}

// --- Backward

static void grouped_work_run(Rank *rank, const WeightWork *w) {
    Backend *b = rank->backend;
    const Grouped *g = &w->grouped;
    int64_t row = 0;
    for (int e = 0; e < g->num && b->failure.code == STATUS_OK; e++) {
        if (g->rows[e] > 0)
            product(rank, &(Product){.layout = PRODUCT_BACKWARD_WEIGHT,
                                     .m = g->outputs,
                                     .n = g->inputs,
                                     .k = g->rows[e],
                                     .a = act_at(b, w->dy->data, row * g->outputs),
                                     .b = act_at(b, w->x->data, row * g->inputs),
                                     .out = chunk_gradient(b, g->chunk, g->matrices[e]),
                                     .out_wide = true,
                                     .accumulate = true,
                                     .rows_vary = true});
        row += g->rows[e];
    }
}

// A row's bias: of this rank's tokens.
static void bias_work_run(Rank *rank, const WeightWork *w) {
    Backend *b = rank->backend;
    const Linear *l = &w->linear;
    const int64_t rows = w->dy_gathered ? rank->shape.tokens_sp : rank->shape.tokens;
    const int64_t first = w->dy_gathered ? rank->world->index[GROUP_TP] * rows : 0;
    b->table->sum_rows(b, chunk_gradient(b, l->chunk, l->dbias),
                       act_at(b, w->dy->data, first * l->outputs), rows, l->outputs, rank->stream);
}

static void weight_work_run(Rank *rank, WeightWork *w) {
    const Linear *l = &w->linear;
    if (w->grouped.num > 0) {
        grouped_work_run(rank, w);
        return;
    }
    Tensor *all = l->split == LINEAR_COLUMN ? tokens_gather(rank, w->x, l->inputs) : NULL;
    product(rank,
            &(Product){.layout = PRODUCT_BACKWARD_WEIGHT,
                       .m = l->outputs,
                       .n = l->inputs,
                       .k = l->split == LINEAR_WHOLE ? rank->shape.tokens_sp : rank->shape.tokens,
                       .a = w->dy->data,
                       .b = all ? all->data : w->x->data,
                       .out = chunk_gradient(rank->backend, l->chunk, l->dweight),
                       .out_wide = true,
                       .accumulate = !mutant("accumulation-overwrites")});
    rank_drop(rank, &all);
    if (l->dbias) bias_work_run(rank, w);
}

static void weight_work_drop(Rank *rank, WeightWork *w) {
    rank_drop(rank, &w->x);
    rank_drop(rank, &w->dy);
}

void weight_queue_run(Rank *rank, WeightQueue *queue, int block) {
    for (; queue->next < queue->num && queue->items[queue->next].block == block; queue->next++) {
        WeightWork *work = &queue->items[queue->next];
        if (!(mutant("split-drops-weight") && queue->next == 1)) weight_work_run(rank, work);
        weight_work_drop(rank, work);
    }
}

void weight_queue_add(Rank *rank, WeightQueue *queue, WeightWork work) {
    work.block = queue->block;
    if (queue->delayed) {
        queue->items[queue->num++] = work;
        return;
    }
    weight_work_run(rank, &work);
    weight_work_drop(rank, &work);
}

static Tensor *input_gradient(Rank *rank, const Linear *l, const Tensor *dy) {
    Tensor *dx = rank_tensor(rank, rank->shape.tokens * l->inputs);
    product(rank, &(Product){.layout = PRODUCT_BACKWARD_INPUT,
                             .m = rank->shape.tokens,
                             .n = l->inputs,
                             .k = l->outputs,
                             .a = dy->data,
                             .b = l->weight,
                             .out = dx->data});
    return dx;
}

Tensor *linear_backward(Rank *rank, const Linear *l, Tensor *x, Tensor *dy, WeightQueue *queue) {
    const bool row = l->split == LINEAR_ROW;
    Tensor *all = row ? tokens_gather(rank, dy, l->outputs) : NULL;
    WeightWork work = {.linear = *l,
                       .x = tensor_hold(x),
                       .dy = all ? all : tensor_hold(dy),
                       .dy_gathered = all != NULL};
    Tensor *dx = input_gradient(rank, l, work.dy);
    weight_queue_add(rank, queue, work);
    if (row || mutant("tp-no-input-sum")) return dx;
    return tokens_sum(rank, &dx, l->inputs);
}
