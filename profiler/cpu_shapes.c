#include "profiler/cpu_shapes.h"

const char *const CPU_KIND_NAMES[NUM_CPU_KINDS + 1] = {
    "launch", "gemm_other", "gemm_backward", "attention", "memory_bound", "comm", "sharing", NULL};

const char *const CPU_OP_NAMES[NUM_CPU_OPS + 1] = {
    "call",
    "product",
    "attention_forward",
    "attention_backward",
    "copy",
    "add",
    "cast",
    "rmsnorm_forward",
    "rmsnorm_backward",
    "layernorm_forward",
    "layernorm_backward",
    "swiglu_forward",
    "swiglu_backward",
    "gelu_forward",
    "gelu_backward",
    "rope",
    "embedding_forward",
    "embedding_backward",
    "cross_entropy",
    "optimizer",
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "alltoall",
    "exchange",
    "send_recv",
    NULL,
};

// As the GPU's tables have them (profiler/profile_rows.c).
#define MEASURED_COLUMNS                                                                           \
    "latency_ms,batch_latency_ms,spread_frac,num_samples,timer,kernel,sm_clock_hz,temperature_c,"  \
    "throttle_reasons"

static const struct {
    int num_keys;
    const char *header;
} TABLES[NUM_CPU_KINDS] = {
    [CPU_KIND_LAUNCH] = {2, "op,num_kernels," MEASURED_COLUMNS},
    [CPU_KIND_GEMM_OTHER] = {4, "gemm_dtype,m,n,k," MEASURED_COLUMNS},
    [CPU_KIND_GEMM_BACKWARD] = {7, "gemm_dtype,m,n,k,layout,out_dtype,beta," MEASURED_COLUMNS},
    [CPU_KIND_ATTENTION] =
        {7, "op,dtype,batch,tokens,heads,kv_heads,head_dim,flops," MEASURED_COLUMNS},
    [CPU_KIND_MEMORY] = {4, "op,dtype,rows,columns,bytes," MEASURED_COLUMNS},
    [CPU_KIND_COMM] = {4, "op_name,dtype,num_gpus,message_size," MEASURED_COLUMNS},
    [CPU_KIND_SHARING] = {5, "op,dtype,rows,columns,num_ranks," MEASURED_COLUMNS},
};

const char *cpu_header(CpuKind kind, int *num_keys) {
    *num_keys = TABLES[kind].num_keys;
    return TABLES[kind].header;
}

const char *cpu_dtype_name(Dtype dtype) {
    return dtype == DTYPE_FP64 ? "float64" : "float32";
}

const char *cpu_key(const CpuShape *s, Arena *arena) {
    static const char *const LAYOUTS[] = {"forward", "backward_input", "backward_weight"};
    const char *dtype = cpu_dtype_name(s->dtype), *op = CPU_OP_NAMES[s->op];
    switch (s->kind) {
    case CPU_KIND_LAUNCH:
        return arena_printf(arena, "%s,1", op);
    case CPU_KIND_GEMM_OTHER:
        return arena_printf(arena, "%s,%lld,%lld,%lld", dtype, (long long)s->m, (long long)s->n,
                            (long long)s->k);
    case CPU_KIND_GEMM_BACKWARD:
        return arena_printf(arena, "%s,%lld,%lld,%lld,%s,%s,%d", dtype, (long long)s->m,
                            (long long)s->n, (long long)s->k, LAYOUTS[s->layout], dtype,
                            s->layout == PRODUCT_BACKWARD_WEIGHT);
    case CPU_KIND_ATTENTION:
        return arena_printf(arena, "%s,%s,%d,%d,%d,%d,%d", op, dtype, s->batch, s->tokens, s->heads,
                            s->kv_heads, s->head_dim);
    case CPU_KIND_COMM:
        return arena_printf(arena, "%s,%s,%d,%lld", op, dtype, s->num_ranks,
                            (long long)s->message_bytes);
    case CPU_KIND_SHARING:
        return arena_printf(arena, "%s,%s,%lld,%lld,%d", op, dtype, (long long)s->rows,
                            (long long)s->columns, s->num_ranks);
    default:
        return arena_printf(arena, "%s,%s,%lld,%lld", op, dtype, (long long)s->rows,
                            (long long)s->columns);
    }
}

// --- What a shape moves and computes

double cpu_shape_bytes(const CpuShape *s) {
    // Arrays of rows x columns read and written, each once.
    static const int PASSES[NUM_CPU_OPS] = {
        [CPU_OP_COPY] = 2,
        [CPU_OP_ADD] = 3,
        [CPU_OP_CAST] = 2,
        [CPU_OP_RMSNORM_FORWARD] = 2,
        [CPU_OP_RMSNORM_BACKWARD] = 3,
        [CPU_OP_LAYERNORM_FORWARD] = 2,
        [CPU_OP_LAYERNORM_BACKWARD] = 3,
        [CPU_OP_SWIGLU_FORWARD] = 3,
        [CPU_OP_SWIGLU_BACKWARD] = 5,
        [CPU_OP_GELU_FORWARD] = 2,
        [CPU_OP_GELU_BACKWARD] = 3,
        [CPU_OP_ROPE] = 2,
        [CPU_OP_EMBEDDING_FORWARD] = 2,
        [CPU_OP_EMBEDDING_BACKWARD] = 1,
        [CPU_OP_CROSS_ENTROPY] = 4, // 2 of the forward, 2 of the backward
        [CPU_OP_OPTIMIZER] = 9,     // gradient 3, weight 2, moments 4
    };
    double values = (double)s->rows * (double)s->columns;
    // Without the library of backend/, which brings OpenBLAS.
    double bytes = values * PASSES[s->op] * (s->dtype == DTYPE_FP64 ? 8 : 4);
    // The gradient of the table is counted in fp32.
    return s->op == CPU_OP_EMBEDDING_BACKWARD ? bytes + 8 * values : bytes;
}

double cpu_shape_flops(const CpuShape *s) {
    if (s->op == CPU_OP_PRODUCT) return 2.0 * (double)s->m * (double)s->n * (double)s->k;
    if (s->op != CPU_OP_ATTENTION_FORWARD && s->op != CPU_OP_ATTENTION_BACKWARD) return 0;
    double pairs = (double)s->batch * s->heads * s->tokens * (s->tokens + 1) / 2;
    return pairs * s->head_dim * (s->op == CPU_OP_ATTENTION_FORWARD ? 4 : 10);
}

// --- Lists; sizes end with 0

static const Dtype DTYPES[] = {DTYPE_FP32, DTYPE_FP64};
enum { NUM_REALS = 2 };

static void add(CpuShapes *list, Arena *arena, CpuShape shape) {
    int n = list->num_shapes;
    if (n == 0 || (n & (n - 1)) == 0) // grows by doubling
        list->shapes = arena_grow(arena, list->shapes, (size_t)(n ? 2 * n : 1) * sizeof shape);
    list->shapes[list->num_shapes++] = shape;
}

// A product of more takes seconds where cores are slow.
static const double MOST_FLOPS = 2e9, QUICK_MOST_FLOPS = 6e8;

static void add_product(CpuShapes *list, bool quick, Arena *arena, CpuShape shape) {
    shape.op = CPU_OP_PRODUCT;
    if (cpu_shape_flops(&shape) <= (quick ? QUICK_MOST_FLOPS : MOST_FLOPS)) add(list, arena, shape);
}

// Of y [t][out] = x [t][in] W [out][in]: dx [t][in] sums over out, dW [out][in] over t.
static void add_layer(CpuShapes *list, CpuKind kind, bool quick, Arena *arena, Dtype dtype,
                      const int64_t shape[3]) {
    int64_t t = shape[0], out = shape[1], in = shape[2];
    CpuShape product = {.kind = kind, .dtype = dtype, .m = t, .n = out, .k = in};
    if (kind == CPU_KIND_GEMM_OTHER) {
        add_product(list, quick, arena, product);
        return;
    }
    product.layout = PRODUCT_BACKWARD_INPUT;
    product.n = in, product.k = out;
    add_product(list, quick, arena, product);
    product.layout = PRODUCT_BACKWARD_WEIGHT;
    product.m = out, product.k = t;
    add_product(list, quick, arena, product);
}

static void products(CpuShapes *list, CpuKind kind, bool quick, Arena *arena) {
    static const int64_t ROWS[] = {32, 128, 256, 512, 2048, 0};
    static const int64_t WIDTHS[] = {64, 128, 192, 256, 512, 1024, 2048, 0};
    static const int64_t QUICK_ROWS[] = {64, 512, 0};
    static const int64_t QUICK_WIDTHS[] = {64, 256, 1024, 0};
    const int64_t *rows = quick ? QUICK_ROWS : ROWS, *widths = quick ? QUICK_WIDTHS : WIDTHS;
    for (int d = 0; d < NUM_REALS; d++)
        for (const int64_t *m = rows; *m; m++)
            for (const int64_t *n = widths; *n; n++)
                for (const int64_t *k = widths; *k; k++)
                    add_layer(list, kind, quick, arena, DTYPES[d], (const int64_t[]){*m, *n, *k});
}

static void attention(CpuShapes *list, bool quick, Arena *arena) {
    static const int TOKENS[] = {64, 96, 128, 192, 256, 384, 512, 0};
    static const int QUICK_TOKENS[] = {64, 256, 0};
    static const int HEAD_DIMS[] = {32, 64, 96, 128, 0}, QUICK_HEAD_DIMS[] = {32, 64, 128, 0};
    for (int d = 0; d < NUM_REALS; d++)
        for (const int *t = quick ? QUICK_TOKENS : TOKENS; *t; t++)
            for (const int *h = quick ? QUICK_HEAD_DIMS : HEAD_DIMS; *h; h++)
                for (int i = 0; i < (quick ? 2 : 4); i++) { // both ways, also grouped
                    CpuShape shape = {.kind = CPU_KIND_ATTENTION,
                                      .op = i % 2 ? CPU_OP_ATTENTION_BACKWARD
                                                  : CPU_OP_ATTENTION_FORWARD,
                                      .dtype = DTYPES[d],
                                      .batch = 1,
                                      .tokens = *t,
                                      .heads = 4,
                                      .kv_heads = i < 2 ? 4 : 1,
                                      .head_dim = *h};
                    add(list, arena, shape);
                }
}

typedef struct {
    CpuOp first, last;
    int64_t rows[5], columns[5], quick_rows[5], quick_columns[5];
} MemorySweep;

static const MemorySweep SWEEPS[] = {
    // On the hidden size.
    {CPU_OP_COPY,
     CPU_OP_LAYERNORM_BACKWARD,
     {64, 256, 1024, 2048},
     {128, 256, 512, 1024},
     {128, 1024},
     {128, 512}},
    {CPU_OP_EMBEDDING_FORWARD,
     CPU_OP_EMBEDDING_BACKWARD,
     {512, 1024, 2048},
     {128, 256, 512, 1024},
     {512, 2048},
     {128, 512}},
    // On the MLP's width.
    {CPU_OP_SWIGLU_FORWARD,
     CPU_OP_GELU_BACKWARD,
     {64, 256, 1024},
     {256, 768, 2048},
     {128, 512},
     {256, 1024}},
    // On the heads' numbers.
    {CPU_OP_ROPE, CPU_OP_ROPE, {64, 256, 1024, 2048}, {128, 256, 512}, {128, 1024}, {128, 512}},
    // On logits.
    {CPU_OP_CROSS_ENTROPY,
     CPU_OP_CROSS_ENTROPY,
     {64, 256, 512},
     {256, 1024, 4096, 16384},
     {128, 512},
     {256, 2048}},
    // On parameters.
    {CPU_OP_OPTIMIZER, CPU_OP_OPTIMIZER, {64, 512, 2048}, {1024}, {64, 1024}, {1024}},
};

static void memory_bound(CpuShapes *list, bool quick, Arena *arena) {
    for (size_t i = 0; i < sizeof SWEEPS / sizeof *SWEEPS; i++) {
        const MemorySweep *sweep = &SWEEPS[i];
        for (CpuOp op = sweep->first; op <= sweep->last; op++)
            for (int d = 0; d < NUM_REALS; d++)
                for (const int64_t *c = quick ? sweep->quick_columns : sweep->columns; *c; c++)
                    for (const int64_t *r = quick ? sweep->quick_rows : sweep->rows; *r; r++)
                        add(list, arena,
                            (CpuShape){.kind = CPU_KIND_MEMORY,
                                       .op = op,
                                       .dtype = DTYPES[d],
                                       .rows = *r,
                                       .columns = *c});
    }
}

// Groups of 2, 4, ... ranks and of all; message sizes from 64 B to 16 MiB.
static void comm(CpuShapes *list, bool quick, int num_ranks, Arena *arena) {
    for (int size = 2; size <= num_ranks; size = size == num_ranks      ? size + 1
                                                 : 2 * size < num_ranks ? 2 * size
                                                                        : num_ranks)
        for (CpuOp op = CPU_OP_ALL_REDUCE; op <= CPU_OP_SEND_RECV; op++)
            for (int64_t bytes = 64; bytes <= 16 << 20; bytes *= quick ? 4 : 2)
                add(list, arena,
                    (CpuShape){.kind = CPU_KIND_COMM,
                               .op = op,
                               .dtype = DTYPE_FP32,
                               .message_bytes = bytes,
                               .num_ranks = size});
}

static void sharing(CpuShapes *list, int num_ranks, Arena *arena) {
    static const CpuShape SHAPES[] = {
        {.op = CPU_OP_ADD, .rows = 2048, .columns = 1024},
        {.op = CPU_OP_OPTIMIZER, .rows = 1024, .columns = 1024},
        {.op = CPU_OP_PRODUCT, .rows = 512, .columns = 512, .m = 512, .n = 512, .k = 512},
    };
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        CpuShape shape = SHAPES[i];
        shape.kind = CPU_KIND_SHARING;
        shape.dtype = DTYPE_FP32;
        shape.num_ranks = num_ranks;
        add(list, arena, shape);
    }
}

CpuShapes cpu_shapes(CpuKind kind, bool quick, int num_ranks, Arena *arena) {
    CpuShapes list = {0};
    switch (kind) {
    case CPU_KIND_LAUNCH:
        add(&list, arena, (CpuShape){.kind = kind, .op = CPU_OP_CALL, .dtype = DTYPE_FP32});
        break;
    case CPU_KIND_GEMM_OTHER:
    case CPU_KIND_GEMM_BACKWARD:
        products(&list, kind, quick, arena);
        break;
    case CPU_KIND_ATTENTION:
        attention(&list, quick, arena);
        break;
    case CPU_KIND_MEMORY:
        memory_bound(&list, quick, arena);
        break;
    case CPU_KIND_COMM:
        comm(&list, quick, num_ranks, arena);
        break;
    default:
        sharing(&list, num_ranks, arena);
        break;
    }
    return list;
}
