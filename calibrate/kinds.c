#include "calibrate/kinds.h"

#include "calibrate/backward_rows.h"
#include "calibrate/fit_attention.h"
#include "calibrate/fit_gemm.h"
#include "calibrate/fit_moe.h"
#include "calibrate/fit_nccl.h"
#include "calibrate/known_formats.h"

#include <string.h>

static const char *const GEMM_COLUMNS[] = {"gemm_dtype", "m", "n", "k", NULL};

static const char *const MOE_COLUMNS[] = {
    "moe_dtype",   "kernel_source", "num_tokens",  "hidden_size",  "inter_size", "topk",
    "num_experts", "moe_tp_size",   "moe_ep_size", "distribution", NULL};

static const char *const CONTEXT_COLUMNS[] = {"attn_dtype", "kv_cache_dtype", "batch_size",
                                              "isl",        "num_heads",      "num_key_value_heads",
                                              "head_dim",   "window_size",    NULL};
static const char *const GENERATION_COLUMNS[] = {
    "attn_dtype", "kv_cache_dtype",      "batch_size", "isl",         "step",
    "num_heads",  "num_key_value_heads", "head_dim",   "window_size", NULL};
static const char *const CONTEXT_MLA_COLUMNS[] = {
    "kv_cache_dtype", "num_heads", "batch_size", "isl", "tp_size", NULL};
static const char *const GENERATION_MLA_COLUMNS[] = {"kv_cache_dtype", "num_heads", "batch_size",
                                                     "tp_size",        "step",      NULL};

static const char *const NCCL_COLUMNS[] = {"op_name", "nccl_dtype", "num_gpus", "message_size",
                                           NULL};

const Kind KINDS[] = {
    {"gemm", "gemm_backward", GEMM_COLUMNS, 200, gemm_fit, gemm_price},
    {"moe", NULL, MOE_COLUMNS, 200, moe_fit, moe_price},
    {"nccl", NULL, NCCL_COLUMNS, 20, nccl_fit, nccl_price},
    {"context_attention", NULL, CONTEXT_COLUMNS, 200, context_attention_fit,
     context_attention_price},
    {"generation_attention", NULL, GENERATION_COLUMNS, 200, generation_attention_fit,
     generation_attention_price},
    {"context_mla", NULL, CONTEXT_MLA_COLUMNS, 200, context_mla_fit, context_mla_price},
    {"generation_mla", NULL, GENERATION_MLA_COLUMNS, 200, generation_mla_fit, generation_mla_price},
};
const int NUM_KINDS = sizeof KINDS / sizeof *KINDS;

const Kind *kind_find(const char *name) {
    for (int i = 0; i < NUM_KINDS; i++)
        if (strcmp(KINDS[i].name, name) == 0) return &KINDS[i];
    return NULL;
}

const char *const *kind_names(Arena *arena) {
    const char **names = ARENA_ARRAY(arena, NUM_KINDS + 1, const char *);
    for (int i = 0; i < NUM_KINDS; i++) names[i] = KINDS[i].name;
    return names;
}

RowEdges row_edges(const KernelEdges *edges, Arena *arena) {
    KernelEdge *kept = ARENA_ARRAY(arena, edges->num_edges, KernelEdge);
    memcpy(kept, edges->edges, (size_t)edges->num_edges * sizeof *kept);
    return (RowEdges){edges->num_edges, kept, 0};
}

// Columns of a table to fit.
static Status columns_check(const Kind *kind, const KernelTable *table) {
    const char *names[16] = {NULL};
    int n = 0;
    while (kind->columns[n]) {
        names[n] = kind->columns[n];
        n++;
    }
    names[n] = "latency_ms";
    return kernel_table_require(table, names);
}

// The rows of a table and, where there is one, of that of its backward products.
static Status table_load(const Kind *kind, const char *path, const char *backward, Arena *arena,
                         KernelTable *table) {
    KernelTable further;
    TRY(kernel_table_load(path, arena, table));
    TRY(columns_check(kind, table));
    if (!backward) return status_ok();
    TRY(kernel_table_load(backward, arena, &further));
    TRY(kernel_table_require(&further, BACKWARD_COLUMNS));
    backward_rows_add(&further, table, arena);
    return status_ok();
}

Status kind_fit_file(const Kind *kind, const char *path, const char *backward, const Gpu *gpu,
                     Arena *arena, int *num_rows, KindFit *out) {
    KernelTable table;
    double *latency_s;
    *out = (KindFit){0};
    TRY(table_load(kind, path, backward, arena, &table));
    out->num_skipped = known_formats_keep(kind, &table, arena, &out->skipped);
    TRY(kernel_table_latency_s(&table, arena, &latency_s));
    int num_shapes = kernel_table_num_shapes(&table, kind->columns);
    out->too_few = num_shapes < kind->min_shapes;
    if (out->too_few)
        return status_at(STATUS_INVALID, table.file, "",
                         "%d rows of %d different shapes are too few to fit %s; expected at least "
                         "%d shapes",
                         table.num_rows, num_shapes, kind->name, kind->min_shapes);
    TRY(kernel_table_check_repeats(&table, kind->columns, latency_s));
    *num_rows = table.num_rows;
    TRY(kind->fit(&table, latency_s, gpu, arena, out));
    Status status = kernel_table_check_fit(&table, latency_s, out->fitted_s);
    if (status.code != STATUS_OK) cJSON_Delete(out->section);
    return status;
}
