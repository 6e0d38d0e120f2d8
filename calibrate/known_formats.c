#include "calibrate/known_formats.h"

#include "calibrate/fit_nccl.h"

#include <string.h>

enum { MAX_UNKNOWN = 64 }; // different formats that a sentence names

static const struct {
    const char *column;
    const char *const *names;
} FORMATS[] = {
    {"gemm_dtype", GEMM_DTYPE_NAMES},      {"moe_dtype", MOE_DTYPE_NAMES},
    {"attn_dtype", ATTENTION_DTYPE_NAMES}, {"kv_cache_dtype", ATTENTION_DTYPE_NAMES},
    {"nccl_dtype", NCCL_ELEMENT_NAMES},
};
enum { NUM_FORMATS = sizeof FORMATS / sizeof *FORMATS };

// A format that is not modelled, as a column names it.
typedef struct {
    const char *column, *name;
    int num_rows;
} UnknownFormat;

typedef struct {
    UnknownFormat *formats; // [num_formats], in the order of their first rows
    int num_formats;
    bool *rows; // [num_rows] of the table, in one of them
    int num_rows;
} UnknownRows;

static bool column_of_kind(const Kind *kind, const char *column) {
    for (int i = 0; kind->columns[i]; i++)
        if (strcmp(kind->columns[i], column) == 0) return true;
    return false;
}

const char *const *known_formats(const Kind *kind, const char *column) {
    if (!column_of_kind(kind, column)) return NULL;
    for (int i = 0; i < NUM_FORMATS; i++)
        if (strcmp(FORMATS[i].column, column) == 0) return FORMATS[i].names;
    return NULL;
}

static void format_count(UnknownRows *unknown, const char *column, const char *name) {
    for (int i = 0; i < unknown->num_formats; i++) {
        UnknownFormat *format = &unknown->formats[i];
        if (strcmp(format->column, column) != 0 || strcmp(format->name, name) != 0) continue;
        format->num_rows++;
        return;
    }
    if (unknown->num_formats == MAX_UNKNOWN) return;
    unknown->formats[unknown->num_formats++] = (UnknownFormat){column, name, 1};
}

// An empty cell names no format: the fit refuses it.
static UnknownRows unknown_find(const Kind *kind, const KernelTable *table, Arena *arena) {
    UnknownRows unknown = {.formats = ARENA_ARRAY(arena, MAX_UNKNOWN, UnknownFormat),
                           .rows = ARENA_ARRAY(arena, table->num_rows, bool)};
    for (int i = 0; i < NUM_FORMATS; i++) {
        const char *column = FORMATS[i].column;
        if (!column_of_kind(kind, column)) continue;
        const int *choices = kernel_table_choices(table, column, FORMATS[i].names, arena);
        const char **texts = kernel_table_texts(table, column, arena);
        for (int row = 0; row < table->num_rows; row++) {
            if (choices[row] >= 0 || *texts[row] == '\0') continue;
            unknown.num_rows += !unknown.rows[row];
            unknown.rows[row] = true;
            format_count(&unknown, column, texts[row]);
        }
    }
    return unknown;
}

static const char *names_list(const char *const *names, Arena *arena) {
    const char *list = names[0];
    for (int i = 1; names[i]; i++) list = arena_printf(arena, "%s, %s", list, names[i]);
    return list;
}

// "FILE: 1612 of 26693 rows: moe_dtype w4a16_mxfp4 (229 rows), w4a8_mxfp4_mxfp8 (1383 rows);
// known are ...".
static const char *unknown_text(const Kind *kind, const KernelTable *table,
                                const UnknownRows *unknown, Arena *arena) {
    const char *text =
        arena_printf(arena, "%s: %d of %d rows in formats that are not modelled:", table->file,
                     unknown->num_rows, table->num_rows);
    const char *column = NULL;
    for (int i = 0; i < unknown->num_formats; i++) {
        const UnknownFormat *format = &unknown->formats[i];
        const bool first = !column || strcmp(column, format->column) != 0;
        if (first && column)
            text = arena_printf(arena, "%s; known are %s;", text,
                                names_list(known_formats(kind, column), arena));
        column = format->column;
        text = arena_printf(arena, "%s%s %.40s (%d)", text,
                            first ? arena_printf(arena, " %s", column) : ",", format->name,
                            format->num_rows);
    }
    return arena_printf(arena, "%s; known are %s", text,
                        names_list(known_formats(kind, column), arena));
}

int known_formats_keep(const Kind *kind, KernelTable *table, Arena *arena, const char **skipped) {
    const UnknownRows unknown = unknown_find(kind, table, arena);
    *skipped = NULL;
    if (unknown.num_rows == 0 || unknown.num_rows == table->num_rows) return 0;
    *skipped = unknown_text(kind, table, &unknown, arena);
    const size_t num_columns = (size_t)table->num_columns;
    const int num_kept = table->num_rows - unknown.num_rows;
    const char **lines = ARENA_ARRAY(arena, num_kept, const char *);
    const char **cells = arena_array(arena, (size_t)num_kept * num_columns, sizeof *cells);
    const char **files = table->files ? ARENA_ARRAY(arena, num_kept, const char *) : NULL;
    int *numbers = ARENA_ARRAY(arena, num_kept, int), kept = 0;
    for (int row = 0; row < table->num_rows; row++) {
        if (unknown.rows[row]) continue;
        lines[kept] = table->lines[row];
        numbers[kept] = table->line_numbers[row];
        if (files) files[kept] = table->files[row];
        memcpy(cells + (size_t)kept++ * num_columns, table->cells + (size_t)row * num_columns,
               num_columns * sizeof *cells);
    }
    table->lines = lines;
    table->cells = cells;
    table->files = files;
    table->line_numbers = numbers;
    table->num_rows = kept;
    return unknown.num_rows;
}
