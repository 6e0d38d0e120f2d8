// The calls of each operator, with the arrays of probe_work.c.
#include "profiler/probe/probe_work.h"

#include <math.h>

// --- Calls

static void run_product(Backend *b, const CpuShape *s, void *const *a) {
    Product call = {.layout = s->layout,
                    .m = s->m,
                    .n = s->n,
                    .k = s->k,
                    .a = a[0],
                    .b = a[1],
                    .out = a[2],
                    .accumulate = s->layout == PRODUCT_BACKWARD_WEIGHT};
    b->table->product(b, &call, b->stream);
}

void work_attention(Backend *b, const CpuShape *s, bool backward, void *const *a) {
    int64_t q = (int64_t)s->heads * s->head_dim, kv = (int64_t)s->kv_heads * s->head_dim;
    Attention call = {.batch = s->batch,
                      .heads = s->heads,
                      .kv_heads = s->kv_heads,
                      .head_dim = s->head_dim,
                      .num_queries = s->tokens,
                      .num_keys = s->tokens,
                      .causal = true,
                      .scale = 1 / sqrt(s->head_dim),
                      .q = a[0],
                      .k = a[1],
                      .v = a[2],
                      .q_stride = q,
                      .q_batch_stride = q * s->tokens,
                      .kv_stride = kv,
                      .kv_batch_stride = kv * s->tokens,
                      .o = a[3],
                      .o_stride = q,
                      .o_batch_stride = q * s->tokens,
                      .lse = a[4],
                      .lse_stride = s->tokens,
                      .dout = a[5],
                      .dq = a[6],
                      .dk = a[7],
                      .dv = a[8]};
    if (backward)
        b->table->attention_backward(b, &call, b->stream);
    else
        b->table->attention_forward(b, &call, b->stream);
}

static void run_norm_forward(Backend *b, const CpuShape *s, NormOp op, void *const *a) {
    NormForward call = {.op = op,
                        .rows = s->rows,
                        .columns = s->columns,
                        .epsilon = 1e-5,
                        .x = a[0],
                        .weight = a[1],
                        .bias = op == NORM_LAYER ? a[2] : NULL,
                        .y = a[3],
                        .mean = a[4],
                        .rstd = a[5]};
    b->table->norm_forward(b, &call, b->stream);
}

static void run_norm_backward(Backend *b, const CpuShape *s, NormOp op, void *const *a) {
    NormBackward call = {.op = op,
                         .rows = s->rows,
                         .columns = s->columns,
                         .x = a[0],
                         .weight = a[1],
                         .dweight = a[2],
                         .dy = a[3],
                         .mean = a[4],
                         .rstd = a[5],
                         .dx = a[6],
                         .dbias = op == NORM_LAYER ? a[7] : NULL};
    b->table->norm_backward(b, &call, b->stream);
}

static void run_activation(Backend *b, const CpuShape *s, ActivationOp op, bool backward,
                           void *const *a) {
    Activation call = {.op = op,
                       .rows = s->rows,
                       .width = s->columns,
                       .x = a[0],
                       .y = a[1],
                       .dy = a[1],
                       .dx = a[2]};
    if (backward)
        b->table->activation_backward(b, &call, b->stream);
    else
        b->table->activation_forward(b, &call, b->stream);
}

static void run_rope(Backend *b, const CpuShape *s, void *const *a) {
    Rope call = {.tokens = s->rows,
                 .heads = (int)(s->columns / CPU_ROPE_HEAD_DIM),
                 .head_dim = CPU_ROPE_HEAD_DIM,
                 .x = a[0],
                 .stride = s->columns,
                 .positions = a[1],
                 .theta = 10000};
    b->table->rope(b, &call, b->stream);
}

static void run_embedding(Backend *b, const CpuShape *s, bool backward, void *const *a) {
    Embedding call = {.rows = s->rows,
                      .columns = s->columns,
                      .tokens = a[2],
                      .table = a[0],
                      .num_rows = CPU_VOCAB,
                      .y = a[1],
                      .dy = a[1],
                      .dtable = a[0]};
    if (backward)
        b->table->embedding_backward(b, &call, b->stream);
    else
        b->table->embedding_forward(b, &call, b->stream);
}

static void run_cross_entropy(Backend *b, const CpuShape *s, void *const *a) {
    char *statistics = a[2];
    size_t row_bytes = (size_t)s->rows * dtype_bytes(s->dtype);
    CrossEntropy call = {.rows = s->rows,
                         .num_columns = s->columns,
                         .stride = s->columns,
                         .logits = a[0],
                         .targets = a[1],
                         .scale = 1,
                         .max = statistics,
                         .sums = statistics + row_bytes,
                         .loss = statistics + 3 * row_bytes};
    b->table->cross_entropy(b, &call, b->stream);
}

static void run_optimizer(Backend *b, const CpuShape *s, void *const *a) {
    int64_t count = s->rows * s->columns;
    AdamW call = {.count = count,
                  .gradient = a[0],
                  .gradient_scale = 1,
                  .master = a[1],
                  .weight = a[1],
                  .moment = a[2],
                  .variance = a[3],
                  .learning_rate = 1e-3,
                  .beta1 = 0.9,
                  .beta2 = 0.95,
                  .epsilon = 1e-8,
                  .weight_decay = 0.1,
                  .step = 1};
    b->table->sum_squares(b, a[4], a[0], count, b->stream);
    b->table->adamw(b, &call, b->stream);
    b->table->zero(b, a[0], (size_t)count * dtype_bytes(s->dtype), b->stream);
}

void work_alone(Backend *b, const CpuShape *s, void *const *a) {
    int64_t count = s->rows * s->columns;
    switch (s->op) {
    case CPU_OP_PRODUCT:
        run_product(b, s, a);
        break;
    case CPU_OP_ATTENTION_FORWARD:
    case CPU_OP_ATTENTION_BACKWARD:
        work_attention(b, s, s->op == CPU_OP_ATTENTION_BACKWARD, a);
        break;
    case CPU_OP_COPY:
        b->table->copy(b, a[0], a[1], (size_t)count * dtype_bytes(s->dtype), b->stream);
        break;
    case CPU_OP_CAST:
        b->table->cast(b, a[0], s->dtype, a[1], s->dtype, false, count, b->stream);
        break;
    case CPU_OP_RMSNORM_FORWARD:
    case CPU_OP_LAYERNORM_FORWARD:
        run_norm_forward(b, s, s->op == CPU_OP_RMSNORM_FORWARD ? NORM_RMS : NORM_LAYER, a);
        break;
    case CPU_OP_RMSNORM_BACKWARD:
    case CPU_OP_LAYERNORM_BACKWARD:
        run_norm_backward(b, s, s->op == CPU_OP_RMSNORM_BACKWARD ? NORM_RMS : NORM_LAYER, a);
        break;
    case CPU_OP_SWIGLU_FORWARD:
    case CPU_OP_SWIGLU_BACKWARD:
        run_activation(b, s, ACTIVATION_SILU_GATED, s->op == CPU_OP_SWIGLU_BACKWARD, a);
        break;
    case CPU_OP_GELU_FORWARD:
    case CPU_OP_GELU_BACKWARD:
        run_activation(b, s, ACTIVATION_GELU, s->op == CPU_OP_GELU_BACKWARD, a);
        break;
    case CPU_OP_ROPE:
        run_rope(b, s, a);
        break;
    case CPU_OP_EMBEDDING_FORWARD:
    case CPU_OP_EMBEDDING_BACKWARD:
        run_embedding(b, s, s->op == CPU_OP_EMBEDDING_BACKWARD, a);
        break;
    case CPU_OP_CROSS_ENTROPY:
        run_cross_entropy(b, s, a);
        break;
    case CPU_OP_OPTIMIZER:
        run_optimizer(b, s, a);
        break;
    default: // CPU_OP_CALL of nothing too
        b->table->add(b, a[0], s->op == CPU_OP_CALL ? a[0] : a[1],
                      s->op == CPU_OP_CALL ? a[0] : a[2], count, b->stream);
        break;
    }
}

// --- What ranks do together

static void run_messages(Comm *comm, const CpuShape *s, void *const *a) {
    int64_t count = s->message_bytes / (int64_t)dtype_bytes(s->dtype);
    int next = (comm->rank + 1) % comm->size, last = (comm->rank + comm->size - 1) % comm->size;
    Message messages[] = {
        {.peer = next, .array = a[0], .count = count, .dtype = s->dtype},
        {.peer = last, .receive = true, .array = a[1], .count = count, .dtype = s->dtype}};
    BackendStream *stream = comm->backend->stream;
    if (s->op == CPU_OP_EXCHANGE) {
        comm->table->exchange(comm, messages, 2, stream);
        return;
    }
    // To and fro between neighbours: even ranks send first.
    int peer = comm->rank ^ 1;
    if (peer >= comm->size) return;
    messages[0].peer = messages[1].peer = peer;
    int first = comm->rank % 2;
    comm->table->exchange(comm, &messages[first], 1, stream);
    comm->table->exchange(comm, &messages[1 - first], 1, stream);
}

void work_together(Work *work, void *const *a) {
    Comm *comm = work->comm;
    const CpuShape *s = work->shape;
    const CommTable *table = comm->table;
    BackendStream *stream = comm->backend->stream;
    int64_t whole = s->message_bytes / (int64_t)dtype_bytes(s->dtype), part = whole / comm->size;
    size_t place = (size_t)(part * comm->rank) * dtype_bytes(s->dtype);
    switch (s->op) {
    case CPU_OP_ALL_REDUCE:
        table->all_reduce(comm, a[0], whole, s->dtype, REDUCE_SUM, stream);
        break;
    case CPU_OP_ALL_GATHER:
        table->all_gather(comm, a[0], (char *)a[0] + place, part, s->dtype, stream);
        break;
    case CPU_OP_REDUCE_SCATTER:
        table->reduce_scatter(comm, a[1], a[0], part, s->dtype, stream);
        break;
    case CPU_OP_ALL_TO_ALL: {
        const int64_t *counts = work->parts, *offsets = work->parts + comm->size;
        table->all_to_all(comm, a[1], counts, offsets, a[0], counts, offsets, s->dtype, stream);
        break;
    }
    default:
        run_messages(comm, s, a);
        break;
    }
}
