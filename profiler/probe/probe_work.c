#include "profiler/probe/probe_work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What an array holds at first.
typedef enum { FILL_REAL, FILL_POSITIVE, FILL_TOKENS, FILL_POSITIONS, FILL_ZERO } Fill;

typedef struct {
    int num_arrays;
    double elements[WORK_MAX_ARRAYS];
    Fill fills[WORK_MAX_ARRAYS];
} Arrays;

static void want(Arrays *arrays, double elements, Fill fill) {
    arrays->elements[arrays->num_arrays] = elements;
    arrays->fills[arrays->num_arrays++] = fill;
}

// --- Which arrays, in the order in which run_* read them

// Which of them the operator before has just made, as bits: x, logits or queries, keys and values
// of a forward, the gradient of the result of a backward.
static const unsigned FRESH[NUM_CPU_OPS] = {
    [CPU_OP_PRODUCT] = 1 << 0,
    [CPU_OP_ATTENTION_FORWARD] = 1 << 0 | 1 << 1 | 1 << 2,
    [CPU_OP_ATTENTION_BACKWARD] = 1 << 5,
    [CPU_OP_RMSNORM_FORWARD] = 1 << 0,
    [CPU_OP_RMSNORM_BACKWARD] = 1 << 3,
    [CPU_OP_LAYERNORM_FORWARD] = 1 << 0,
    [CPU_OP_LAYERNORM_BACKWARD] = 1 << 3,
    [CPU_OP_SWIGLU_FORWARD] = 1 << 0,
    [CPU_OP_SWIGLU_BACKWARD] = 1 << 1,
    [CPU_OP_GELU_FORWARD] = 1 << 0,
    [CPU_OP_GELU_BACKWARD] = 1 << 1,
    [CPU_OP_ROPE] = 1 << 0,
    [CPU_OP_EMBEDDING_BACKWARD] = 1 << 1,
    [CPU_OP_CROSS_ENTROPY] = 1 << 0,
};

static bool is_fresh(const CpuShape *s, int array) {
    return FRESH[s->op] >> array & 1;
}

static void product_arrays(const CpuShape *s, Arrays *a) {
    want(a, (double)(s->m * s->k), FILL_REAL);
    want(a, (double)(s->k * s->n), FILL_REAL);
    want(a, (double)(s->m * s->n), FILL_ZERO);
}

static void attention_arrays(const CpuShape *s, Arrays *a) {
    double tokens = (double)s->batch * s->tokens;
    double q = tokens * s->heads * s->head_dim, kv = tokens * s->kv_heads * s->head_dim;
    want(a, q, FILL_REAL);
    want(a, kv, FILL_REAL);
    want(a, kv, FILL_REAL);
    want(a, q, FILL_ZERO); // o
    want(a, tokens * s->heads, FILL_ZERO);
    if (s->op == CPU_OP_ATTENTION_FORWARD) return;
    want(a, q, FILL_REAL); // dout
    want(a, q, FILL_ZERO);
    want(a, kv, FILL_ZERO);
    want(a, kv, FILL_ZERO);
}

static void norm_arrays(const CpuShape *s, bool backward, Arrays *a) {
    double values = (double)(s->rows * s->columns), rows = (double)s->rows;
    want(a, values, FILL_REAL);
    want(a, (double)s->columns, FILL_REAL);
    want(a, (double)s->columns, FILL_ZERO); // bias, or the gradient of the weight
    want(a, values, FILL_REAL);             // y, or dy
    want(a, rows, FILL_ZERO);
    want(a, rows, FILL_POSITIVE);
    if (backward) want(a, values, FILL_ZERO);
    if (backward) want(a, (double)s->columns, FILL_ZERO);
}

static void memory_arrays(const CpuShape *s, Arrays *a) {
    double values = (double)(s->rows * s->columns), rows = (double)s->rows;
    bool swiglu = s->op == CPU_OP_SWIGLU_FORWARD || s->op == CPU_OP_SWIGLU_BACKWARD;
    switch (s->op) {
    case CPU_OP_SWIGLU_FORWARD:
    case CPU_OP_SWIGLU_BACKWARD:
    case CPU_OP_GELU_FORWARD:
    case CPU_OP_GELU_BACKWARD:
        want(a, swiglu ? 2 * values : values, FILL_REAL);
        want(a, values, FILL_REAL);
        want(a, swiglu ? 2 * values : values, FILL_ZERO);
        break;
    case CPU_OP_ROPE:
        want(a, values, FILL_REAL);
        want(a, rows, FILL_POSITIONS);
        break;
    case CPU_OP_EMBEDDING_FORWARD:
    case CPU_OP_EMBEDDING_BACKWARD:
        want(a, (double)(CPU_VOCAB * s->columns), FILL_REAL);
        want(a, values, FILL_REAL);
        want(a, rows, FILL_TOKENS);
        break;
    case CPU_OP_CROSS_ENTROPY:
        want(a, values, FILL_REAL);
        want(a, rows, FILL_ZERO); // all targets are column 0
        want(a, 3 * rows + 1, FILL_ZERO);
        break;
    case CPU_OP_OPTIMIZER:
        for (int i = 0; i < 4; i++) want(a, values, i == 3 ? FILL_POSITIVE : FILL_REAL);
        want(a, 1, FILL_ZERO);
        break;
    default:
        for (int i = 0; i < 3; i++) want(a, values, FILL_REAL);
        break;
    }
}

static Arrays arrays_of(const CpuShape *s, int num_ranks) {
    Arrays a = {0};
    if (s->op == CPU_OP_CALL) {
        want(&a, 1, FILL_ZERO);
    } else if (s->op == CPU_OP_PRODUCT) {
        product_arrays(s, &a);
    } else if (s->op <= CPU_OP_ATTENTION_BACKWARD) {
        attention_arrays(s, &a);
    } else if (s->op >= CPU_OP_RMSNORM_FORWARD && s->op <= CPU_OP_LAYERNORM_BACKWARD) {
        norm_arrays(s, s->op == CPU_OP_RMSNORM_BACKWARD || s->op == CPU_OP_LAYERNORM_BACKWARD, &a);
    } else if (s->op >= CPU_OP_ALL_REDUCE) {
        bool in_place = s->op == CPU_OP_ALL_REDUCE || s->op == CPU_OP_ALL_GATHER;
        double elements = (double)s->message_bytes / (double)dtype_bytes(s->dtype) + num_ranks;
        want(&a, elements, FILL_ZERO); // sums of zeros stay what they are
        if (!in_place) want(&a, elements, FILL_ZERO);
    } else {
        memory_arrays(s, &a);
    }
    return a;
}

// --- Filling

// Numbers between -2 and 2 that repeat only after a while (Knuth's multiplicative hash).
static double number_at(size_t i) {
    return (double)(uint32_t)((uint32_t)i * 2654435761u) / 4294967296.0 * 4 - 2;
}

static void fill(void *array, double elements, Fill how, Dtype dtype) {
    for (size_t i = 0; i < (size_t)elements; i++) {
        double x = how == FILL_ZERO ? 0 : number_at(i);
        if (how == FILL_POSITIVE) x = fabs(x) + 0.1;
        if (how == FILL_TOKENS)
            ((int32_t *)array)[i] = (int32_t)((i * 2654435761u) % CPU_VOCAB);
        else if (how == FILL_POSITIONS)
            ((int32_t *)array)[i] = (int32_t)i;
        else if (dtype == DTYPE_FP64)
            ((double *)array)[i] = x;
        else
            ((float *)array)[i] = (float)x;
    }
}

static Status parts_prepare(Work *work) {
    int size = work->comm->size;
    work->parts = calloc(2 * (size_t)size, sizeof *work->parts);
    if (!work->parts)
        return status_error(STATUS_MACHINE, "meshwright: no memory for an all-to-all");
    int64_t part =
        work->shape->message_bytes / (int64_t)dtype_bytes(work->shape->dtype) / work->comm->size;
    for (int r = 0; r < size; r++) {
        work->parts[r] = part;
        work->parts[size + r] = part * r;
    }
    return status_ok();
}

// --- Work

static void array_fill(Work *work, const Arrays *arrays, int copy, int i) {
    void *const array = work->arrays[copy][i];
    if (copy == 0)
        fill(array, arrays->elements[i], arrays->fills[i], work->shape->dtype);
    else
        memcpy(array, work->arrays[0][i], work->bytes[i]);
}

Status work_prepare(Backend *backend, Comm *comm, const CpuShape *shape, Work *out) {
    *out = (Work){.backend = backend, .comm = comm, .shape = shape};
    Arrays arrays = arrays_of(shape, shape->num_ranks);
    double rotated = 0;
    out->num_arrays = arrays.num_arrays;
    for (int i = 0; i < arrays.num_arrays; i++) {
        out->bytes[i] = (size_t)arrays.elements[i] * dtype_bytes(shape->dtype);
        if (!is_fresh(shape, i)) rotated += (double)out->bytes[i];
    }
    int copies = (int)fmin(WORK_MAX_COPIES, ceil(WORK_ROTATED_BYTES / fmax(rotated, 1)));
    for (int c = 0; c < copies; c++) {
        out->num_copies = c + 1;
        for (int i = 0; i < arrays.num_arrays; i++) {
            const bool shared = c > 0 && is_fresh(shape, i);
            out->arrays[c][i] =
                shared ? out->arrays[0][i] : backend->table->alloc(backend, out->bytes[i]);
            if (!out->arrays[c][i]) return backend_sync(backend);
            if (!shared) array_fill(out, &arrays, c, i);
        }
        if (shape->op == CPU_OP_ATTENTION_BACKWARD) // which reads o and lse
            work_attention(backend, shape, false, out->arrays[c]);
    }
    return comm && shape->op == CPU_OP_ALL_TO_ALL ? parts_prepare(out) : status_ok();
}

void work_call(Work *work) {
    void *const *arrays = work->arrays[work->next];
    work->next = work->next + 1 < work->num_copies ? work->next + 1 : 0;
    if (work->shape->op < CPU_OP_ALL_REDUCE)
        work_alone(work->backend, work->shape, arrays);
    else if (work->comm)
        work_together(work, arrays);
}

bool work_is_renewed(const Work *work) {
    return work->shape->kind == CPU_KIND_COMM && work->shape->message_bytes >= 4096;
}

void work_renew(Work *work) {
    for (int c = 0; c < work->num_copies; c++) memset(work->arrays[c][0], 0, work->bytes[0]);
}

void work_release(Work *work) {
    for (int c = 0; c < work->num_copies; c++)
        for (int i = 0; i < work->num_arrays; i++)
            if (c == 0 || !is_fresh(work->shape, i))
                work->backend->table->release(work->backend, work->arrays[c][i], work->bytes[i]);
    free(work->parts);
}
