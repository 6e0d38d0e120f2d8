#include "runtime/grouped.h"

static int64_t rows_of_all(const Grouped *g) {
    int64_t rows = 0;
    for (int e = 0; e < g->num && g->rows; e++) rows += g->rows[e];
    return rows;
}

// One product an expert; layout: FORWARD or BACKWARD_INPUT.
static Tensor *grouped_products(Rank *rank, const Grouped *g, ProductLayout layout,
                                const Tensor *x) {
    Backend *b = rank->backend;
    const bool forward = layout == PRODUCT_FORWARD;
    const int64_t n = forward ? g->outputs : g->inputs, k = forward ? g->inputs : g->outputs;
    Tensor *y = rank_tensor(rank, rows_of_all(g) * n);
    int64_t row = 0;
    for (int e = 0; e < g->num && b->failure.code == STATUS_OK; e++) {
        if (g->rows[e] > 0)
            b->table->product(b,
                              &(Product){.layout = layout,
                                         .m = g->rows[e],
                                         .n = n,
                                         .k = k,
                                         .a = act_at(b, x->data, row * k),
                                         .b = chunk_weight(b, g->chunk, g->matrices[e]),
                                         .out = act_at(b, y->data, row * n),
                                         .rows_vary = true},
                              rank->stream);
        row += g->rows[e];
    }
    return y;
}

Tensor *grouped_forward(Rank *rank, const Grouped *g, const Tensor *x) {
    return grouped_products(rank, g, PRODUCT_FORWARD, x);
}

Tensor *grouped_backward(Rank *rank, const Grouped *g, Tensor *x, Tensor *dy, WeightQueue *queue) {
    Tensor *dx = grouped_products(rank, g, PRODUCT_BACKWARD_INPUT, dy);
    weight_queue_add(rank, queue,
                     (WeightWork){.grouped = *g, .x = tensor_hold(x), .dy = tensor_hold(dy)});
    return dx;
}
