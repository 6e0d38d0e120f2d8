// tests/checked_gpu/kernels.c - the kernels of the CUDA backend (backend/cuda/*.cu), done by the
// CPU's in fp32; what each reads and writes is said here once more, from backend/backend.h.
#include "tests/checked_gpu/kernels.h"
#include "backend/cpu_backend.h"

#include <stdlib.h>

enum { ACT = 4, WIDE = 4, INDEX = 4 }; // bytes

Backend *checked_cpu(void) {
    static Backend *opened;
    if (!opened && cpu_backend_open(DTYPE_FP32, 0, &opened).code != STATUS_OK) abort();
    return opened;
}

void checked_launch(Backend *backend, BackendStream *stream, const Call *call) {
    const void *arrays[MOST_ACCESSES];
    for (int i = 0; i < call->accesses.num; i++) arrays[i] = call->accesses.list[i].begin;
    if (!cuda_begin(backend, stream, arrays, call->accesses.num)) return;
    cuda_end(backend, stream, checked_queue(stream->handle, call), call->what);
}

// A kernel of one argument structure; NAME_arrays says which it uses.
#define KERNEL(name, Arguments)                                                                    \
    static void run_##name(void *arguments) {                                                      \
        Backend *cpu = checked_cpu();                                                              \
        cpu->table->name(cpu, arguments, cpu->stream);                                             \
    }                                                                                              \
    void cuda_##name(Backend *backend, const Arguments *arguments, BackendStream *stream) {        \
        Call call = {                                                                              \
            .what = #name, .run = run_##name, .arguments = arguments, .bytes = sizeof *arguments}; \
        name##_arrays(arguments, &call.accesses);                                                  \
        checked_launch(backend, stream, &call);                                                    \
    }

static void rest(Accesses *a, const void *array, bool read, bool write) {
    accesses_add(a, (Access){array, 1, 1, 0, 1, 0, read, write, true});
}

// --- Norms

static void norm_forward_arrays(const NormForward *c, Accesses *a) {
    const int64_t elements = c->rows * c->columns * ACT;
    reads(a, c->x, elements);
    reads(a, c->add, elements);
    if (c->add) writes(a, c->sum, elements);
    reads(a, c->weight, c->columns * ACT);
    reads(a, c->bias, c->columns * ACT);
    writes(a, c->y, elements);
    if (c->op == NORM_LAYER) writes(a, c->mean, c->rows * WIDE);
    writes(a, c->rstd, c->rows * WIDE);
}
KERNEL(norm_forward, NormForward)

static void norm_backward_arrays(const NormBackward *c, Accesses *a) {
    const int64_t elements = c->rows * c->columns * ACT;
    reads(a, c->dy, elements);
    reads(a, c->x, elements);
    reads(a, c->weight, c->columns * ACT);
    if (c->op == NORM_LAYER) reads(a, c->mean, c->rows * WIDE);
    reads(a, c->rstd, c->rows * WIDE);
    reads(a, c->add, elements);
    writes(a, c->dx, elements);
    updates(a, c->dweight, c->columns * WIDE);
    updates(a, c->dbias, c->columns * WIDE);
}
KERNEL(norm_backward, NormBackward)

// --- Activations

static int64_t activation_bytes(const Activation *c) {
    const bool gated = c->op == ACTIVATION_SILU_GATED || c->op == ACTIVATION_GELU_GATED;
    return c->rows * c->width * (gated ? 2 : 1) * ACT;
}

static void activation_forward_arrays(const Activation *c, Accesses *a) {
    reads(a, c->x, activation_bytes(c));
    writes(a, c->y, c->rows * c->width * ACT);
}
KERNEL(activation_forward, Activation)

static void activation_backward_arrays(const Activation *c, Accesses *a) {
    reads(a, c->x, activation_bytes(c));
    reads(a, c->dy, c->rows * c->width * ACT);
    writes(a, c->dx, activation_bytes(c));
}
KERNEL(activation_backward, Activation)

// --- Attention

static void rope_arrays(const Rope *c, Accesses *a) {
    accesses_add(a, (Access){.begin = c->x,
                             .bytes = (size_t)(c->heads * c->head_dim) * ACT,
                             .rows = c->tokens,
                             .stride_bytes = c->stride * ACT,
                             .planes = 1,
                             .read = true,
                             .write = true});
    reads(a, c->positions, c->tokens * INDEX);
}
KERNEL(rope, Rope)

typedef struct {
    int64_t batch, tokens, width, stride, batch_stride; // elements
} Heads;

static void heads_add(Accesses *a, const void *array, Heads h, bool read, bool write) {
    accesses_add(a, (Access){.begin = array,
                             .bytes = (size_t)h.width * 4,
                             .rows = h.tokens,
                             .stride_bytes = h.stride * 4,
                             .planes = h.batch,
                             .plane_stride_bytes = h.batch_stride * 4,
                             .read = read,
                             .write = write});
}

static void attention_arrays(const Attention *c, Accesses *a, bool backward) {
    const int64_t wide = (int64_t)c->heads * c->head_dim;
    const int64_t narrow = (int64_t)c->kv_heads * c->head_dim;
    const Heads q = {c->batch, c->num_queries, wide, c->q_stride, c->q_batch_stride};
    const Heads kv = {c->batch, c->num_keys, narrow, c->kv_stride, c->kv_batch_stride};
    const Heads o = {c->batch, c->num_queries, wide, c->o_stride, c->o_batch_stride};
    const Heads lse = {1, (int64_t)c->batch * c->heads, c->num_queries, c->lse_stride, 0};
    heads_add(a, c->q, q, true, false);
    heads_add(a, c->k, kv, true, false);
    heads_add(a, c->v, kv, true, false);
    heads_add(a, c->o, o, backward, !backward);
    heads_add(a, c->lse, lse, backward, !backward);
    if (!backward) return;
    heads_add(a, c->dout, o, true, false);
    heads_add(a, c->dq, q, false, true);
    heads_add(a, c->dk, kv, false, true);
    heads_add(a, c->dv, kv, false, true);
}

static void attention_forward_arrays(const Attention *c, Accesses *a) {
    attention_arrays(c, a, false);
}
KERNEL(attention_forward, Attention)

static void attention_backward_arrays(const Attention *c, Accesses *a) {
    attention_arrays(c, a, true);
}
KERNEL(attention_backward, Attention)

static void attention_merge_arrays(const AttentionMerge *c, Accesses *a) {
    const int64_t wide = (int64_t)c->heads * c->head_dim, rows = (int64_t)c->batch * c->heads;
    const Heads o = {c->batch, c->num_queries, wide, c->o_stride, c->o_batch_stride};
    const Heads sum = {c->batch, c->num_queries, wide, c->sum_stride, c->sum_batch_stride};
    const Heads lse = {1, rows, c->num_queries, c->lse_stride, 0};
    heads_add(a, c->o, o, true, false);
    heads_add(a, c->lse, lse, true, false);
    heads_add(a, c->o_sum, sum, !c->first, true);
    heads_add(a, c->lse_sum, lse, !c->first, true);
}
KERNEL(attention_merge, AttentionMerge)

// --- Vocabulary

static void embedding_forward_arrays(const Embedding *c, Accesses *a) {
    reads(a, c->tokens, c->rows * INDEX);
    reads(a, c->table, c->num_rows * c->columns * ACT);
    if (c->positions_table) reads(a, c->positions, c->rows * INDEX);
    rest(a, c->positions_table, true, false);
    writes(a, c->y, c->rows * c->columns * ACT);
}
KERNEL(embedding_forward, Embedding)

static void embedding_backward_arrays(const Embedding *c, Accesses *a) {
    reads(a, c->tokens, c->rows * INDEX);
    reads(a, c->dy, c->rows * c->columns * ACT);
    updates(a, c->dtable, c->num_rows * c->columns * WIDE);
    if (c->dpositions_table) reads(a, c->positions, c->rows * INDEX);
    rest(a, c->dpositions_table, true, true);
}
KERNEL(embedding_backward, Embedding)

// What is read of logits, and what else each part of a cross entropy uses.
static void logits_read(const CrossEntropy *c, Accesses *a) {
    const Heads logits = {1, c->rows, c->num_columns, c->stride, 0};
    heads_add(a, c->logits, logits, true, false);
}

static void gradient_write(const CrossEntropy *c, Accesses *a) {
    reads(a, c->targets, c->rows * INDEX);
    writes(a, c->logits, c->rows * c->stride * ACT);
    updates(a, c->loss, WIDE);
}

static void cross_entropy_arrays(const CrossEntropy *c, Accesses *a) {
    logits_read(c, a);
    gradient_write(c, a);
}
KERNEL(cross_entropy, CrossEntropy)

static void row_max_arrays(const CrossEntropy *c, Accesses *a) {
    logits_read(c, a);
    writes(a, c->max, c->rows * WIDE);
}
KERNEL(row_max, CrossEntropy)

static void row_sums_arrays(const CrossEntropy *c, Accesses *a) {
    logits_read(c, a);
    reads(a, c->max, c->rows * WIDE);
    reads(a, c->targets, c->rows * INDEX);
    writes(a, c->sums, 2 * c->rows * WIDE);
}
KERNEL(row_sums, CrossEntropy)

static void cross_entropy_shared_arrays(const CrossEntropy *c, Accesses *a) {
    logits_read(c, a);
    reads(a, c->max, c->rows * WIDE);
    reads(a, c->sums, 2 * c->rows * WIDE);
    gradient_write(c, a);
}
KERNEL(cross_entropy_shared, CrossEntropy)

// --- Optimizers

static void adamw_arrays(const AdamW *c, Accesses *a) {
    reads(a, c->gradient, c->count * WIDE);
    updates(a, c->master, c->count * WIDE);
    if (c->weight != c->master) writes(a, c->weight, c->count * ACT);
    updates(a, c->moment, c->count * WIDE);
    updates(a, c->variance, c->count * WIDE);
}
KERNEL(adamw, AdamW)

static void sgd_arrays(const Sgd *c, Accesses *a) {
    reads(a, c->gradient, c->count * WIDE);
    updates(a, c->master, c->count * WIDE);
    if (c->weight != c->master) writes(a, c->weight, c->count * ACT);
    updates(a, c->momentum, c->count * WIDE);
}
KERNEL(sgd, Sgd)

// --- Experts

static void router_forward_arrays(const Router *c, Accesses *a) {
    const int64_t chosen = c->rows * c->num_chosen;
    reads(a, c->logits, c->rows * c->num_experts * WIDE);
    writes(a, c->probabilities, c->rows * c->num_experts * WIDE);
    if (c->chosen_given)
        reads(a, c->chosen, chosen * INDEX);
    else
        writes(a, c->chosen, chosen * INDEX);
    writes(a, c->weights, chosen * WIDE);
}
KERNEL(router_forward, Router)

static void router_backward_arrays(const Router *c, Accesses *a) {
    const int64_t chosen = c->rows * c->num_chosen;
    reads(a, c->probabilities, c->rows * c->num_experts * WIDE);
    reads(a, c->chosen, chosen * INDEX);
    reads(a, c->weights, chosen * WIDE);
    reads(a, c->weighted_dw, chosen * WIDE);
    writes(a, c->dlogits, c->rows * c->num_experts * WIDE);
}
KERNEL(router_backward, Router)

static void row_dots_arrays(const RowDots *c, Accesses *a) {
    reads(a, c->a, c->rows * c->columns * ACT);
    reads(a, c->b, c->rows * c->columns * ACT);
    writes(a, c->dots, c->rows * WIDE);
}
KERNEL(row_dots, RowDots)

static void gather_rows_arrays(const GatherRows *c, Accesses *a) {
    if (c->rows == 0) return;
    rest(a, c->x, true, false);
    reads(a, c->index, c->rows * INDEX);
    writes(a, c->y, c->rows * c->columns * ACT);
}
KERNEL(gather_rows, GatherRows)

static void combine_forward_arrays(const CombineRows *c, Accesses *a) {
    const int64_t chosen = c->rows * c->num_chosen;
    if (chosen == 0) return;
    rest(a, c->x, true, false);
    reads(a, c->index, chosen * INDEX);
    reads(a, c->weights, chosen * WIDE);
    writes(a, c->y, c->rows * c->columns * ACT);
}
KERNEL(combine_forward, CombineRows)

static void combine_backward_arrays(const CombineRows *c, Accesses *a) {
    const int64_t chosen = c->rows * c->num_chosen;
    if (chosen == 0) return;
    if (c->dweights) rest(a, c->x, true, false);
    reads(a, c->index, chosen * INDEX);
    reads(a, c->weights, chosen * WIDE);
    reads(a, c->dy, c->rows * c->columns * ACT);
    rest(a, c->dx, false, true);
    writes(a, c->dweights, chosen * WIDE);
}
KERNEL(combine_backward, CombineRows)
