#include "profiler/wrap_table.h"

#include "base/output_file.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 32 };

// One range, taken apart.
typedef struct {
    const char *kind;
    const char *names[MOST_COLUMNS], *values[MOST_COLUMNS];
    int num_columns;
    const char *joined; // the values in one text, to compare
} Marked;

// One range with kernels, by the row it belongs to.
typedef struct {
    int table, row;
    double latency_s;
} Sample;

typedef struct {
    RangeTable *tables; // num_rows and values grow
    const char ***values;
    char const ***keys; // [table][row]: joined values
    int *max_rows;
    int num_tables, max_tables;
    Sample *samples;
    size_t num_samples, max_samples;
    Arena *arena;
} Builder;

// --- Texts

static bool is_name(const char *text) {
    return text[0] && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

// Written by us, or files of the same folder.
static bool is_taken(const char *kind) {
    return strcmp(kind, "kernels") == 0 || strcmp(kind, "gaps") == 0;
}

static bool is_ours(const char *name) {
    static const char *const OURS[] = {"latency_ms", "num_calls", "spread_frac"};
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
        if (strcmp(name, OURS[i]) == 0) return true;
    return false;
}

static bool column_add(Marked *out, char *cell) {
    char *equals = strchr(cell, '=');
    if (!equals || out->num_columns == MOST_COLUMNS) return false;
    *equals = '\0';
    if (!is_name(cell) || is_ours(cell)) return false;
    if (!equals[1] || strpbrk(equals + 1, ",\"\t\r\n")) return false;
    for (int i = 0; i < out->num_columns; i++)
        if (strcmp(out->names[i], cell) == 0) return false;
    out->names[out->num_columns] = cell;
    out->values[out->num_columns++] = equals + 1;
    return true;
}

static bool marked_read(const char *text, Arena *arena, Marked *out) {
    *out = (Marked){0};
    char *rest = arena_strdup(arena, text + strlen(WRAP_RANGE_PREFIX));
    char *position = NULL;
    out->kind = strtok_r(rest, " ", &position);
    if (!out->kind || !is_name(out->kind) || is_taken(out->kind)) return false;
    for (char *cell; (cell = strtok_r(NULL, " ", &position));)
        if (!column_add(out, cell)) return false;
    out->joined = "";
    for (int i = 0; i < out->num_columns; i++)
        out->joined = arena_printf(arena, "%s %s", out->joined, out->values[i]);
    return out->num_columns > 0;
}

// --- Rows

static int table_add(Builder *builder, const Marked *marked) {
    if (builder->num_tables == builder->max_tables) {
        int most = builder->max_tables = builder->max_tables ? 2 * builder->max_tables : 8;
        builder->tables =
            arena_grow(builder->arena, builder->tables, (size_t)most * sizeof *builder->tables);
        builder->values =
            arena_grow(builder->arena, builder->values, (size_t)most * sizeof *builder->values);
        builder->keys =
            arena_grow(builder->arena, builder->keys, (size_t)most * sizeof *builder->keys);
        builder->max_rows =
            arena_grow(builder->arena, builder->max_rows, (size_t)most * sizeof *builder->max_rows);
    }
    int at = builder->num_tables++;
    const char **columns = ARENA_ARRAY(builder->arena, marked->num_columns, const char *);
    for (int i = 0; i < marked->num_columns; i++) columns[i] = marked->names[i];
    builder->tables[at] =
        (RangeTable){.kind = marked->kind, .columns = columns, .num_columns = marked->num_columns};
    builder->values[at] = NULL;
    builder->keys[at] = NULL;
    builder->max_rows[at] = 0;
    return at;
}

// The table of the range's kind, -1 where that has other columns.
static int table_of(Builder *builder, const Marked *marked) {
    for (int i = 0; i < builder->num_tables; i++) {
        const RangeTable *table = &builder->tables[i];
        if (strcmp(table->kind, marked->kind) != 0) continue;
        if (table->num_columns != marked->num_columns) return -1;
        for (int c = 0; c < table->num_columns; c++)
            if (strcmp(table->columns[c], marked->names[c]) != 0) return -1;
        return i;
    }
    return table_add(builder, marked);
}

static int row_add(Builder *builder, int at, const Marked *marked) {
    RangeTable *table = &builder->tables[at];
    size_t num_columns = (size_t)table->num_columns;
    if (table->num_rows == builder->max_rows[at]) {
        builder->max_rows[at] = builder->max_rows[at] ? 2 * builder->max_rows[at] : 64;
        size_t most = (size_t)builder->max_rows[at];
        builder->values[at] = arena_grow(builder->arena, builder->values[at],
                                         most * num_columns * sizeof(const char *));
        builder->keys[at] =
            arena_grow(builder->arena, builder->keys[at], most * sizeof(const char *));
    }
    int row = table->num_rows++;
    builder->keys[at][row] = marked->joined;
    for (size_t i = 0; i < num_columns; i++)
        builder->values[at][(size_t)row * num_columns + i] = marked->values[i];
    return row;
}

// From the newest row back: a program repeats a shape before it goes on to the next.
static int row_of(Builder *builder, int at, const Marked *marked) {
    for (int row = builder->tables[at].num_rows - 1; row >= 0; row--)
        if (strcmp(builder->keys[at][row], marked->joined) == 0) return row;
    return row_add(builder, at, marked);
}

static void sample_add(Builder *builder, Sample sample) {
    if (builder->num_samples == builder->max_samples) {
        builder->max_samples = builder->max_samples ? 2 * builder->max_samples : 1024;
        builder->samples = arena_grow(builder->arena, builder->samples,
                                      builder->max_samples * sizeof *builder->samples);
    }
    builder->samples[builder->num_samples++] = sample;
}

static void log_add(Builder *builder, const WrapLog *log, RangeTables *answer) {
    Arena scratch = {0};
    const RangeTime *times = wrap_match(log, &scratch);
    answer->num_ranges += (int64_t)log->num_ranges;
    for (size_t i = 0; i < log->num_ranges; i++) {
        Marked marked;
        bool good = marked_read(log->ranges[i].text, builder->arena, &marked);
        if (good && times[i].num_kernels == 0) {
            answer->num_empty++;
            continue;
        }
        int table = good ? table_of(builder, &marked) : -1;
        if (table < 0) {
            answer->num_malformed++;
            if (!answer->malformed) answer->malformed = log->ranges[i].text;
            continue;
        }
        int row = row_of(builder, table, &marked);
        sample_add(builder, (Sample){table, row, times[i].kernel_s});
    }
    arena_free(&scratch);
}

// --- Figures

static int by_row(const void *a, const void *b) {
    const Sample *left = a, *right = b;
    if (left->table != right->table) return left->table < right->table ? -1 : 1;
    if (left->row != right->row) return left->row < right->row ? -1 : 1;
    return (left->latency_s > right->latency_s) - (left->latency_s < right->latency_s);
}

// Linear between the two nearest of sorted values (Hyndman and Fan, "Sample quantiles in
// statistical packages", The American Statistician 50(4), 1996, definition 7).
static double quantile(const Sample *samples, size_t count, double frac) {
    double at = frac * (double)(count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < count ? below + 1 : below;
    double part = at - (double)below;
    return samples[below].latency_s * (1 - part) + samples[above].latency_s * part;
}

static void figures_set(Builder *builder) {
    int num_tables = builder->num_tables;
    double **latency_s = ARENA_ARRAY(builder->arena, num_tables, double *);
    double **spread_frac = ARENA_ARRAY(builder->arena, num_tables, double *);
    int **num_calls = ARENA_ARRAY(builder->arena, num_tables, int *);
    for (int i = 0; i < num_tables; i++) {
        RangeTable *table = &builder->tables[i];
        table->latency_s = latency_s[i] = ARENA_ARRAY(builder->arena, table->num_rows, double);
        table->spread_frac = spread_frac[i] = ARENA_ARRAY(builder->arena, table->num_rows, double);
        table->num_calls = num_calls[i] = ARENA_ARRAY(builder->arena, table->num_rows, int);
        table->values = builder->values[i];
    }
    if (builder->num_samples == 0) return;
    qsort(builder->samples, builder->num_samples, sizeof *builder->samples, by_row);
    for (size_t first = 0, end; first < builder->num_samples; first = end) {
        const Sample *row = &builder->samples[first];
        for (end = first + 1; end < builder->num_samples; end++)
            if (builder->samples[end].table != row->table || builder->samples[end].row != row->row)
                break;
        double median_s = quantile(row, end - first, 0.5);
        double wide_s = quantile(row, end - first, 0.75) - quantile(row, end - first, 0.25);
        latency_s[row->table][row->row] = median_s;
        spread_frac[row->table][row->row] = median_s > 0 ? wide_s / median_s : 0;
        num_calls[row->table][row->row] = (int)(end - first);
    }
}

static int by_kind(const void *a, const void *b) {
    const RangeTable *left = a, *right = b;
    return strcmp(left->kind, right->kind);
}

RangeTables range_tables(const WrapLog *logs, int num_logs, Arena *arena) {
    RangeTables answer = {0};
    Builder builder = {.arena = arena};
    for (int i = 0; i < num_logs; i++) log_add(&builder, &logs[i], &answer);
    figures_set(&builder);
    answer.tables = builder.tables;
    answer.num_tables = builder.num_tables;
    if (builder.num_tables > 0)
        qsort(builder.tables, (size_t)builder.num_tables, sizeof *builder.tables, by_kind);
    return answer;
}

Status range_table_write(const RangeTable *table, const char *path) {
    OutputFile file;
    TRY(output_open(path, &file));
    for (int i = 0; i < table->num_columns; i++) fprintf(file.stream, "%s,", table->columns[i]);
    fprintf(file.stream, "latency_ms,num_calls,spread_frac\n");
    for (int row = 0; row < table->num_rows; row++) {
        for (int i = 0; i < table->num_columns; i++)
            fprintf(file.stream, "%s,", table->values[row * table->num_columns + i]);
        fprintf(file.stream, "%.9g,%d,%.4g\n", 1e3 * table->latency_s[row], table->num_calls[row],
                table->spread_frac[row]);
    }
    return output_close(&file, status_ok());
}
