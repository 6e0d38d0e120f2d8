#include "calibrate/unpriced.h"

#include "calibrate/known_formats.h"

#include <string.h>

const char *unpriced_reason(const Kind *kind, const KernelTable *table, int row, Arena *arena) {
    for (int i = 0; kind->columns[i]; i++) {
        const char *column = kind->columns[i], *const *names = known_formats(kind, column);
        if (strcmp(column, "op_name") == 0) names = NCCL_OP_NAMES;
        if (!names) continue;
        if (kernel_table_choices(table, column, names, arena)[row] >= 0) continue;
        const char *list = names[0];
        for (int n = 1; names[n]; n++) list = arena_printf(arena, "%s, %s", list, names[n]);
        return arena_printf(arena, "%s \"%.40s\" is unknown; known are %s", column,
                            kernel_table_texts(table, column, arena)[row], list);
    }
    return "the GPU or its profile has no such kernel";
}
