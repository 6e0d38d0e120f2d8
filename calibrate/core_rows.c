#include "calibrate/core_rows.h"

#include "calibrate/kernel_table.h"

#include <string.h>

static const char *const DTYPES[] = {"float32", "float64", NULL};

// Names in memory_bound.csv (profiler/cpu_shapes.h).
static const struct {
    const char *name;
    CoreLoop loop;
    bool forward, backward, copy;
} LOOP_OPS[] = {
    {"copy", CORE_ADD, false, false, true},
    {"add", CORE_ADD, true, true, false},
    {"cast", CORE_ADD, false, false, false},
    {"rmsnorm_forward", CORE_RMSNORM, true, false, false},
    {"rmsnorm_backward", CORE_RMSNORM, false, true, false},
    {"layernorm_forward", CORE_LAYERNORM, true, false, false},
    {"layernorm_backward", CORE_LAYERNORM, false, true, false},
    {"swiglu_forward", CORE_GATED_ACTIVATION, true, false, false},
    {"swiglu_backward", CORE_GATED_ACTIVATION, false, true, false},
    {"gelu_forward", CORE_ACTIVATION, true, false, false},
    {"gelu_backward", CORE_ACTIVATION, false, true, false},
    {"rope", CORE_ROPE, true, true, false},
    {"embedding_forward", CORE_EMBEDDING, true, false, false},
    {"embedding_backward", CORE_EMBEDDING, false, true, false},
    {"cross_entropy", CORE_CROSS_ENTROPY, true, true, false},
    {"optimizer", CORE_OPTIMIZER, true, true, false},
};
enum { NUM_LOOP_OPS = sizeof LOOP_OPS / sizeof *LOOP_OPS };

// Numbers of a head that profile's rope turns: CPU_ROPE_HEAD_DIM of profiler/cpu_shapes.h.
static const double ROPE_HEAD_DIM = 64;

static Status table_load(const char *folder, const char *name, const char *const *columns,
                         Arena *arena, KernelTable *out) {
    TRY(kernel_table_load(arena_printf(arena, "%s/%s.csv", folder, name), arena, out));
    return kernel_table_require(out, columns);
}

// A column of names, all known.
static Status names_read(const KernelTable *table, const char *column, const char *const *names,
                         Arena *arena, const int **out) {
    *out = kernel_table_choices(table, column, names, arena);
    return kernel_table_check_choices(table, column, *out, names);
}

static Status products_load(const char *folder, bool backward, Arena *arena, CoreRows *rows) {
    static const char *const COLUMNS[] = {"gemm_dtype", "m", "n", "k", "latency_ms", NULL};
    static const char *const BACKWARD[] = {"layout", NULL};
    KernelTable table;
    TRY(table_load(folder, backward ? "gemm_backward" : "gemm_other", COLUMNS, arena, &table));
    double *m, *n, *k, *time_s;
    const int *dtypes, *layouts = NULL;
    TRY(names_read(&table, "gemm_dtype", DTYPES, arena, &dtypes));
    TRY(kernel_table_counts(&table, "m", 1, 1e9, arena, &m));
    TRY(kernel_table_counts(&table, "n", 1, 1e9, arena, &n));
    TRY(kernel_table_counts(&table, "k", 1, 1e9, arena, &k));
    TRY(kernel_table_latency_s(&table, arena, &time_s));
    if (backward) TRY(kernel_table_require(&table, BACKWARD));
    if (backward) TRY(names_read(&table, "layout", CORE_PRODUCT_NAMES, arena, &layouts));
    int before = rows->num_products, all = before + table.num_rows;
    ProductRow *products = ARENA_ARRAY(arena, all, ProductRow);
    if (before > 0) memcpy(products, rows->products, (size_t)before * sizeof *products);
    for (int i = 0; i < table.num_rows; i++)
        products[before + i] = (ProductRow){.dtype = (CoreDtype)dtypes[i],
                                            .layout = backward ? layouts[i] : 0,
                                            .m = m[i],
                                            .n = n[i],
                                            .k = k[i],
                                            .time_s = time_s[i]};
    rows->products = products;
    rows->num_products = all;
    return status_ok();
}

static Status attention_load(const char *folder, Arena *arena, CoreRows *rows) {
    static const char *const COLUMNS[] = {"op",    "dtype",      "tokens", "head_dim",
                                          "flops", "latency_ms", NULL};
    static const char *const OPS[] = {"attention_forward", "attention_backward", NULL};
    KernelTable table;
    TRY(table_load(folder, "attention", COLUMNS, arena, &table));
    double *tokens, *head_dim, *flops, *time_s;
    const int *dtypes, *ops;
    TRY(names_read(&table, "op", OPS, arena, &ops));
    TRY(names_read(&table, "dtype", DTYPES, arena, &dtypes));
    TRY(kernel_table_counts(&table, "tokens", 1, 1e9, arena, &tokens));
    TRY(kernel_table_counts(&table, "head_dim", 1, 1e5, arena, &head_dim));
    TRY(kernel_table_numbers(&table, "flops", 1, 1e18, arena, &flops));
    TRY(kernel_table_latency_s(&table, arena, &time_s));
    rows->attention = ARENA_ARRAY(arena, table.num_rows, AttentionRow);
    rows->num_attention = table.num_rows;
    for (int i = 0; i < table.num_rows; i++)
        rows->attention[i] = (AttentionRow){.dtype = (CoreDtype)dtypes[i],
                                            .backward = ops[i] == 1,
                                            .flops = flops[i],
                                            .tokens = tokens[i],
                                            .head_dim = head_dim[i],
                                            .time_s = time_s[i]};
    return status_ok();
}

static Status loops_load(const char *folder, Arena *arena, CoreRows *rows) {
    static const char *const COLUMNS[] = {"op", "dtype", "rows", "bytes", "latency_ms", NULL};
    const char *names[NUM_LOOP_OPS + 1] = {NULL};
    for (int i = 0; i < NUM_LOOP_OPS; i++) names[i] = LOOP_OPS[i].name;
    KernelTable table;
    TRY(table_load(folder, "memory_bound", COLUMNS, arena, &table));
    double *tokens, *bytes, *time_s;
    const int *dtypes, *ops;
    TRY(names_read(&table, "op", names, arena, &ops));
    TRY(names_read(&table, "dtype", DTYPES, arena, &dtypes));
    TRY(kernel_table_counts(&table, "rows", 1, 1e9, arena, &tokens));
    TRY(kernel_table_numbers(&table, "bytes", 1, 1e15, arena, &bytes));
    TRY(kernel_table_latency_s(&table, arena, &time_s));
    rows->loops = ARENA_ARRAY(arena, table.num_rows, LoopRow);
    rows->num_loops = table.num_rows;
    for (int i = 0; i < table.num_rows; i++) {
        CoreLoop loop = LOOP_OPS[ops[i]].loop;
        rows->loops[i] = (LoopRow){
            .dtype = (CoreDtype)dtypes[i],
            .loop = loop,
            .forward = LOOP_OPS[ops[i]].forward,
            .backward = LOOP_OPS[ops[i]].backward,
            .copy = LOOP_OPS[ops[i]].copy,
            .bytes = bytes[i],
            .angles = loop == CORE_ROPE ? tokens[i] * ROPE_HEAD_DIM / 2 : 0,
            .time_s = time_s[i],
        };
    }
    return status_ok();
}

static Status comm_load(const char *folder, Arena *arena, CoreRows *rows) {
    static const char *const COLUMNS[] = {"op_name", "num_gpus", "message_size", "latency_ms",
                                          NULL};
    static const char *const OPS[NUM_COMM_OPS + 1] = {
        "all_gather", "all_reduce", "alltoall", "reduce_scatter", "exchange", "send_recv", NULL};
    KernelTable table;
    TRY(table_load(folder, "comm", COLUMNS, arena, &table));
    double *num_ranks, *bytes, *time_s;
    const int *ops;
    TRY(names_read(&table, "op_name", OPS, arena, &ops));
    TRY(kernel_table_counts(&table, "num_gpus", 2, 1 << 20, arena, &num_ranks));
    TRY(kernel_table_counts(&table, "message_size", 1, 1e14, arena, &bytes));
    TRY(kernel_table_latency_s(&table, arena, &time_s));
    rows->comm = ARENA_ARRAY(arena, table.num_rows, CommRow);
    rows->num_comm = table.num_rows;
    for (int i = 0; i < table.num_rows; i++)
        rows->comm[i] = (CommRow){(CommOp)ops[i], (int)num_ranks[i], bytes[i], time_s[i]};
    return status_ok();
}

static Status launch_load(const char *folder, Arena *arena, CoreRows *rows) {
    static const char *const COLUMNS[] = {"op", "latency_ms", NULL};
    KernelTable table;
    double *time_ms;
    TRY(table_load(folder, "launch", COLUMNS, arena, &table));
    TRY(kernel_table_numbers(&table, "latency_ms", 0, 1e3, arena, &time_ms));
    rows->call_s = table.num_rows > 0 ? 1e-3 * time_ms[0] : 0;
    return status_ok();
}

Status core_rows_load(const char *folder, Arena *arena, CoreRows *out) {
    *out = (CoreRows){0};
    TRY(launch_load(folder, arena, out));
    TRY(products_load(folder, false, arena, out));
    TRY(products_load(folder, true, arena, out));
    TRY(attention_load(folder, arena, out));
    TRY(loops_load(folder, arena, out));
    return comm_load(folder, arena, out);
}
