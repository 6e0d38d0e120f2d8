#include "calibrate/kernel_table.h"

#include "base/quantity.h"
#include "base/shown_character.h"
#include "calibrate/csv.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static const char *file_of(const KernelTable *table, int row) {
    return table->files ? table->files[row] : table->file;
}

Status kernel_table_error(const KernelTable *table, int row, const char *format, ...) {
    char place[32], sentence[400];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    snprintf(place, sizeof place, "row %d", table->line_numbers[row]);
    return status_at(STATUS_INVALID, file_of(table, row), place, "%s", sentence);
}

// The whole text, unpacked where it is packed; text[*size] is NUL.
static Status text_load(const char *path, const char *file, Arena *arena, char **text,
                        size_t *size) {
    bool standard_input = strcmp(path, "-") == 0;
    gzFile stream = standard_input ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path, "rb");
    if (!stream) return status_at(STATUS_INVALID, file, "", "cannot be read: %s", strerror(errno));
    size_t capacity = 1 << 20, used = 0;
    char *buffer = malloc(capacity);
    int got = 1;
    while (buffer && got > 0 && used <= KERNEL_TABLE_MAX_BYTES) {
        if (capacity - used < (1 << 16)) {
            char *larger = realloc(buffer, capacity *= 2);
            if (!larger) free(buffer);
            buffer = larger;
            continue;
        }
        got = gzread(stream, buffer + used, (unsigned)(capacity - used - 1));
        if (got > 0) used += (size_t)got;
    }
    int fault = Z_OK;
    if (got < 0) gzerror(stream, &fault);
    const int error = fault == Z_ERRNO ? errno : 0; // of the file, not of its packing
    bool broken = got < 0 || (gzclose(stream) != Z_OK && got >= 0);
    if (got < 0) gzclose(stream);
    if (!buffer) return status_at(STATUS_MACHINE, file, "", "out of memory while reading");
    arena_own(arena, free, buffer);
    if (error) return status_at(STATUS_INVALID, file, "", "cannot be read: %s", strerror(error));
    if (broken)
        return status_at(STATUS_INVALID, file, "",
                         "cannot be read to its end: the packing is cut off or broken; expected a "
                         "CSV text, plain or packed by gzip");
    if (used > KERNEL_TABLE_MAX_BYTES)
        return status_at(STATUS_INVALID, file, "", "larger than %d MiB",
                         KERNEL_TABLE_MAX_BYTES >> 20);
    buffer[used] = '\0';
    *text = buffer;
    *size = used;
    return status_ok();
}

// Rows are printed as they were read: what a terminal would obey, or is no text, is refused.
static Status characters_check(const char *file, const char *text) {
    int row = 1;
    for (const char *at = text; *at;) {
        uint32_t c = 0;
        const bool plain = (*at >= ' ' && *at <= '~') || strchr("\t\r\n", *at);
        const size_t length = plain ? 1 : shown_character_read(at, &c);
        if (length == 0 || (!plain && shown_needs_escape(c))) {
            char place[32], shown[SHOWN_MAX];
            snprintf(place, sizeof place, "row %d", row);
            shown_next(&at, shown);
            return status_at(STATUS_INVALID, file, place,
                             "the character %s; expected UTF-8 without control characters", shown);
        }
        row += *at == '\n';
        at += length;
    }
    return status_ok();
}

static Status header_read(KernelTable *table, Arena *arena) {
    const char **names = ARENA_ARRAY(arena, KERNEL_TABLE_MAX_COLUMNS, const char *);
    CsvFault fault;
    table->num_columns =
        csv_cells(arena_strdup(arena, table->header), names, KERNEL_TABLE_MAX_COLUMNS, &fault);
    if (fault) return status_at(STATUS_INVALID, table->file, "row 1", "%s", CSV_FAULT_TEXTS[fault]);
    if (table->num_columns > KERNEL_TABLE_MAX_COLUMNS)
        return status_at(STATUS_INVALID, table->file, "row 1", "more than %d columns",
                         KERNEL_TABLE_MAX_COLUMNS);
    for (int i = 0; i < table->num_columns; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return status_at(STATUS_INVALID, table->file, "row 1",
                                 "the column \"%.40s\" stands there twice", names[i]);
    table->names = names;
    return status_ok();
}

// Cuts the text into records; blank lines are left out but counted.
static Status lines_read(KernelTable *table, char *text, int max_rows, Arena *arena) {
    const char **lines = ARENA_ARRAY(arena, max_rows, const char *);
    int *numbers = ARENA_ARRAY(arena, max_rows, int);
    for (int number = 1, num_lines; text && *text; number += num_lines) {
        char *line = text;
        if (number > KERNEL_TABLE_MAX_ROWS + 1) {
            char place[32];
            snprintf(place, sizeof place, "row %d", number);
            return status_at(STATUS_INVALID, table->file, place, "more than %d rows",
                             KERNEL_TABLE_MAX_ROWS);
        }
        text = csv_record(text, &num_lines);
        if (!table->header) {
            table->header = line;
        } else if (line[strspn(line, " \t")] != '\0') {
            lines[table->num_rows] = line;
            numbers[table->num_rows++] = number;
        }
    }
    table->lines = lines;
    table->line_numbers = numbers;
    return status_ok();
}

static Status cells_read(KernelTable *table, Arena *arena) {
    size_t num_columns = (size_t)table->num_columns;
    const char **cells = arena_array(arena, (size_t)table->num_rows * num_columns, sizeof *cells);
    for (int row = 0; row < table->num_rows; row++) {
        CsvFault fault;
        int n = csv_cells(arena_strdup(arena, table->lines[row]), cells + (size_t)row * num_columns,
                          table->num_columns, &fault);
        if (fault) return kernel_table_error(table, row, "%s", CSV_FAULT_TEXTS[fault]);
        if (n != table->num_columns)
            return kernel_table_error(table, row, "%d cells; the header names %d columns", n,
                                      table->num_columns);
        if (strcmp(table->lines[row], table->header) == 0)
            return kernel_table_error(table, row, "the header stands there again");
    }
    table->cells = cells;
    return status_ok();
}

Status kernel_table_load(const char *path, Arena *arena, KernelTable *out) {
    const char *file = strcmp(path, "-") == 0 ? "standard input" : path;
    KernelTable table = {.file = arena_strdup(arena, file)};
    char *text = NULL;
    size_t size = 0;
    TRY(text_load(path, file, arena, &text, &size));
    if (memchr(text, '\0', size))
        return status_at(STATUS_INVALID, file, "", "holds a NUL byte; expected a CSV text");
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3;
    if (text[strspn(text, " \t\r\n")] == '\0')
        return status_at(STATUS_INVALID, file, "", "empty; expected a CSV text with a header");
    TRY(characters_check(file, text));
    int max_rows = 1;
    for (const char *c = text; *c && max_rows <= KERNEL_TABLE_MAX_ROWS; c++) max_rows += *c == '\n';
    TRY(lines_read(&table, text, max_rows, arena));
    TRY(header_read(&table, arena));
    TRY(cells_read(&table, arena));
    *out = table;
    return status_ok();
}

int kernel_table_column(const KernelTable *table, const char *name) {
    for (int i = 0; i < table->num_columns; i++)
        if (strcmp(table->names[i], name) == 0) return i;
    return -1;
}

Status kernel_table_require(const KernelTable *table, const char *const *names) {
    Arena scratch = {0};
    const char *missing = NULL;
    bool several = false;
    for (int i = 0; names[i]; i++) {
        if (kernel_table_column(table, names[i]) >= 0) continue;
        several = missing != NULL;
        missing = missing ? arena_printf(&scratch, "%s, \"%s\"", missing, names[i])
                          : arena_printf(&scratch, "\"%s\"", names[i]);
    }
    Status status = status_ok();
    if (missing)
        status = status_at(STATUS_INVALID, table->file, "row 1",
                           "the column%s %s %s missing; found \"%.200s\"", several ? "s" : "",
                           missing, several ? "are" : "is", table->header);
    arena_free(&scratch);
    return status;
}

const char **kernel_table_texts(const KernelTable *table, const char *name, Arena *arena) {
    const char **texts = ARENA_ARRAY(arena, table->num_rows, const char *);
    int column = kernel_table_column(table, name);
    for (int row = 0; row < table->num_rows; row++)
        texts[row] = table->cells[(size_t)row * (size_t)table->num_columns + (size_t)column];
    return texts;
}

int *kernel_table_choices(const KernelTable *table, const char *column, const char *const *names,
                          Arena *arena) {
    const char **texts = kernel_table_texts(table, column, arena);
    int *choices = ARENA_ARRAY(arena, table->num_rows, int);
    for (int row = 0; row < table->num_rows; row++) {
        int i = 0;
        while (names[i] && strcmp(texts[row], names[i]) != 0) i++;
        choices[row] = names[i] ? i : -1;
    }
    return choices;
}

Status kernel_table_check_choices(const KernelTable *table, const char *column, const int *choices,
                                  const char *const *names) {
    int row = 0;
    while (row < table->num_rows && choices[row] >= 0) row++;
    if (row == table->num_rows) return status_ok();
    Arena scratch = {0};
    const char *list = names[0];
    for (int i = 1; names[i]; i++) list = arena_printf(&scratch, "%s, %s", list, names[i]);
    const char *text = kernel_table_texts(table, column, &scratch)[row];
    Status status =
        kernel_table_error(table, row, "%s: \"%.40s\"; expected one of %s", column, text, list);
    arena_free(&scratch);
    return status;
}

// The number of a cell; false where it holds none.
static bool cell_number(const char *text, double *out) {
    char *end;
    *out = decimal_read(text, &end);
    return end != text && !*end && isfinite(*out);
}

// A column of numbers within bounds.
static Status column_read(const KernelTable *table, const char *name, bool whole, double min,
                          double max, Arena *arena, double **out) {
    const char **texts = kernel_table_texts(table, name, arena);
    *out = ARENA_ARRAY(arena, table->num_rows, double);
    for (int row = 0; row < table->num_rows; row++) {
        double *number = &(*out)[row];
        if (!cell_number(texts[row], number) || *number < min || *number > max ||
            (whole && *number != floor(*number)))
            return kernel_table_error(table, row,
                                      "%s: \"%.40s\"; expected a %s from %.15g to %.15g", name,
                                      texts[row], whole ? "whole number" : "number", min, max);
    }
    return status_ok();
}

Status kernel_table_numbers(const KernelTable *table, const char *name, double min, double max,
                            Arena *arena, double **out) {
    return column_read(table, name, false, min, max, arena, out);
}

Status kernel_table_counts(const KernelTable *table, const char *name, double min, double max,
                           Arena *arena, double **out) {
    return column_read(table, name, true, min, max, arena, out);
}

Status kernel_table_latency_s(const KernelTable *table, Arena *arena, double **out) {
    static const char *const NAMES[] = {"latency_ms", NULL};
    TRY(kernel_table_require(table, NAMES));
    const char **texts = kernel_table_texts(table, "latency_ms", arena);
    double *latency = ARENA_ARRAY(arena, table->num_rows, double);
    for (int row = 0; row < table->num_rows; row++) {
        if (!cell_number(texts[row], &latency[row]) || latency[row] <= 0)
            return kernel_table_error(
                table, row, "latency_ms: \"%.40s\"; expected a time in milliseconds", texts[row]);
        if (latency[row] < 1e-4)
            return kernel_table_error(
                table, row, "latency_ms: %.6g ms is shorter than any kernel; is it in seconds?",
                latency[row]);
        if (latency[row] > 6e5)
            return kernel_table_error(
                table, row, "latency_ms: %.6g ms is over ten minutes; is it in nanoseconds?",
                latency[row]);
        latency[row] *= 1e-3;
    }
    *out = latency;
    return status_ok();
}

// A row by the hash of what makes its shape: FNV-1a of the cells.
typedef struct {
    uint64_t key;
    int row;
} ShapeRow;

static int compare_shapes(const void *a, const void *b) {
    const ShapeRow *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->row - y->row;
}

// [num_rows] rows of one shape together, in their order.
static ShapeRow *rows_by_shape(const KernelTable *table, const char *const *names, Arena *arena) {
    ShapeRow *rows = ARENA_ARRAY(arena, table->num_rows, ShapeRow);
    for (int row = 0; row < table->num_rows; row++)
        rows[row] = (ShapeRow){14695981039346656037u, row};
    for (int i = 0; names[i]; i++) {
        const char **texts = kernel_table_texts(table, names[i], arena);
        for (int row = 0; row < table->num_rows; row++) {
            const char *c = texts[row];
            do rows[row].key = (rows[row].key ^ (unsigned char)*c) * 1099511628211u;
            while (*c++);
        }
    }
    qsort(rows, (size_t)table->num_rows, sizeof *rows, compare_shapes);
    return rows;
}

int kernel_table_num_shapes(const KernelTable *table, const char *const *names) {
    Arena scratch = {0};
    const ShapeRow *rows = rows_by_shape(table, names, &scratch);
    int num_shapes = 0;
    for (int i = 0; i < table->num_rows; i++)
        num_shapes += i == 0 || rows[i].key != rows[i - 1].key;
    arena_free(&scratch);
    return num_shapes;
}

Status kernel_table_check_repeats(const KernelTable *table, const char *const *names,
                                  const double *latency_s) {
    Arena scratch = {0};
    const ShapeRow *rows = rows_by_shape(table, names, &scratch);
    Status status = status_ok();
    int least = 0, most = 0; // rows of this shape
    for (int i = 0; i < table->num_rows && status.code == STATUS_OK; i++) {
        int row = rows[i].row;
        bool first = i == 0 || rows[i].key != rows[i - 1].key;
        if (first || latency_s[row] < latency_s[least]) least = row;
        if (first || latency_s[row] > latency_s[most]) most = row;
        if (latency_s[most] <= KERNEL_MOST_REPEAT * latency_s[least]) continue;
        int other = row == least ? most : least;
        bool same_file = file_of(table, row) == file_of(table, other);
        status = kernel_table_error(table, row,
                                    "latency_ms: %.6g ms, but row %d%s%s has the same shape and "
                                    "%.6g ms; expected at most %.15g times between them",
                                    latency_s[row] * 1e3, table->line_numbers[other],
                                    same_file ? "" : " of ", same_file ? "" : file_of(table, other),
                                    latency_s[other] * 1e3, KERNEL_MOST_REPEAT);
    }
    arena_free(&scratch);
    return status;
}

KernelLimits kernel_limits_new(const KernelTable *table, Arena *arena) {
    return (KernelLimits){ARENA_ARRAY(arena, table->num_rows, double),
                          ARENA_ARRAY(arena, table->num_rows, double)};
}

Status kernel_table_check_limits(const KernelTable *table, const double *latency_s,
                                 const KernelLimits *limits, const char *what) {
    int num_beyond = 0, num_slips = 0, worst = -1;
    double worst_ratio = 1;
    for (int row = 0; row < table->num_rows; row++) {
        double ratio = limits->least_s[row] / latency_s[row];
        num_beyond += ratio > 1;
        num_slips += ratio > KERNEL_BOOST;
        if (ratio > worst_ratio) {
            worst_ratio = ratio;
            worst = row;
        }
        double most_s = KERNEL_IDLE_S + KERNEL_MOST_WORK * limits->work_s[row];
        if (latency_s[row] > most_s)
            return kernel_table_error(table, row,
                                      "latency_ms: %.6g ms; expected at most %.4g ms, a hundred "
                                      "times what the work of the "
                                      "row takes; is it in microseconds?",
                                      latency_s[row] * 1e3, most_s * 1e3);
    }
    if (worst_ratio < KERNEL_SLIP && num_slips * KERNEL_ROWS_A_SLIP <= table->num_rows)
        return status_ok();
    return kernel_table_error(table, worst,
                              "latency_ms: %.6g ms is %.3g times faster than %s allows, and %d of "
                              "%d rows are; are all in milliseconds, and of this GPU?",
                              latency_s[worst] * 1e3, worst_ratio, what, num_beyond,
                              table->num_rows);
}

Status kernel_table_check_fit(const KernelTable *table, const double *latency_s,
                              const double *fitted_s) {
    int num_beyond = 0, worst = 0;
    double worst_ratio = 1;
    for (int row = 0; row < table->num_rows; row++) {
        double ratio = latency_s[row] / fitted_s[row];
        if (isnan(ratio)) continue;
        if (ratio < 1) ratio = 1 / ratio;
        num_beyond += ratio > KERNEL_ODD_ERROR;
        if (ratio <= worst_ratio) continue;
        worst_ratio = ratio;
        worst = row;
    }
    if (worst_ratio <= KERNEL_MOST_ERROR && num_beyond * KERNEL_ROWS_AN_ODD <= table->num_rows)
        return status_ok();
    return kernel_table_error(table, worst,
                              "latency_ms: %.6g ms contradicts the other rows, which make it about "
                              "%.3g ms; %d of %d rows do; are all in milliseconds?",
                              latency_s[worst] * 1e3, fitted_s[worst] * 1e3, num_beyond,
                              table->num_rows);
}
