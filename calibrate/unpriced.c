#include "calibrate/unpriced.h"

#include "calibrate/fit_nccl.h"
#include "costmodel/kernel/kernel_gemm.h"

#include <string.h>

// The columns that hold one of some names.
static const struct {
    const char *column;
    const char *const *names;
} CHOICES[] = {
    {"gemm_dtype", GEMM_DTYPE_NAMES},
    {"moe_dtype", MOE_DTYPE_NAMES},
    {"attn_dtype", ATTENTION_DTYPE_NAMES},
    {"kv_cache_dtype", ATTENTION_DTYPE_NAMES},
    {"op_name", NCCL_OP_NAMES},
    {"nccl_dtype", NCCL_ELEMENT_NAMES},
};

static bool column_of_kind(const Kind *kind, const char *column) {
    for (int i = 0; kind->columns[i]; i++)
        if (strcmp(kind->columns[i], column) == 0) return true;
    return false;
}

const char *unpriced_reason(const Kind *kind, const KernelTable *table, int row, Arena *arena) {
    for (size_t i = 0; i < sizeof CHOICES / sizeof *CHOICES; i++) {
        const char *column = CHOICES[i].column, *const *names = CHOICES[i].names;
        if (!column_of_kind(kind, column)) continue;
        if (kernel_table_choices(table, column, names, arena)[row] >= 0) continue;
        const char *list = names[0];
        for (int n = 1; names[n]; n++) list = arena_printf(arena, "%s, %s", list, names[n]);
        return arena_printf(arena, "%s \"%.40s\" is unknown; known are %s", column,
                            kernel_table_texts(table, column, arena)[row], list);
    }
    return "the GPU or its profile has no such kernel";
}
