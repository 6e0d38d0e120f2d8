#include "calibrate/backward_rows.h"

#include <string.h>

const char *const BACKWARD_COLUMNS[] = {"gemm_dtype", "m",         "n",    "k",
                                        "latency_ms", "out_dtype", "beta", NULL};

static const char *cell_at(const KernelTable *table, int row, int column) {
    return column < 0 ? ""
                      : table->cells[(size_t)row * (size_t)table->num_columns + (size_t)column];
}

// Whether a row is a product of the formats of the forward one, and nothing else.
static bool is_plain(const KernelTable *backward, int row) {
    const char *in = cell_at(backward, row, kernel_table_column(backward, "gemm_dtype"));
    const char *out = cell_at(backward, row, kernel_table_column(backward, "out_dtype"));
    const char *beta = cell_at(backward, row, kernel_table_column(backward, "beta"));
    return strcmp(in, "bfloat16") == 0 && strcmp(out, in) == 0 && strcmp(beta, "0") == 0;
}

void backward_rows_add(const KernelTable *backward, KernelTable *products, Arena *arena) {
    const int most = products->num_rows + backward->num_rows;
    const size_t num_columns = (size_t)products->num_columns;
    const char **files = ARENA_ARRAY(arena, most, const char *);
    const char **lines = ARENA_ARRAY(arena, most, const char *);
    const char **cells = arena_array(arena, (size_t)most * num_columns, sizeof *cells);
    int *numbers = ARENA_ARRAY(arena, most, int);
    int num = products->num_rows;
    memcpy(lines, products->lines, (size_t)num * sizeof *lines);
    memcpy(cells, products->cells, (size_t)num * num_columns * sizeof *cells);
    memcpy(numbers, products->line_numbers, (size_t)num * sizeof *numbers);
    for (int row = 0; row < num; row++) files[row] = products->file;
    for (int row = 0; row < backward->num_rows; row++) {
        if (!is_plain(backward, row)) continue;
        for (int c = 0; c < products->num_columns; c++)
            cells[(size_t)num * num_columns + (size_t)c] =
                cell_at(backward, row, kernel_table_column(backward, products->names[c]));
        files[num] = backward->file;
        lines[num] = backward->lines[row];
        numbers[num++] = backward->line_numbers[row];
    }
    products->files = files;
    products->lines = lines;
    products->cells = cells;
    products->line_numbers = numbers;
    products->num_rows = num;
}
