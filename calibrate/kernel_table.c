#include "calibrate/kernel_table.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

// A table of 256 MiB holds five million rows; larger is a mistake.
enum { TABLE_MAX_BYTES = 256 << 20, TABLE_MAX_COLUMNS = 64 };

Status kernel_table_error(const KernelTable *table, int row, const char *format, ...) {
    char place[32], sentence[400];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    snprintf(place, sizeof place, "row %d", table->line_numbers[row]);
    return status_at(STATUS_INVALID, table->file, place, "%s", sentence);
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
    while (buffer && got > 0 && used < TABLE_MAX_BYTES) {
        if (capacity - used < (1 << 16)) {
            char *larger = realloc(buffer, capacity *= 2);
            if (!larger) free(buffer);
            buffer = larger;
            continue;
        }
        got = gzread(stream, buffer + used, (unsigned)(capacity - used - 1));
        if (got > 0) used += (size_t)got;
    }
    bool broken = got < 0 || (gzclose(stream) != Z_OK && got >= 0);
    if (got < 0) gzclose(stream);
    if (!buffer) return status_at(STATUS_MACHINE, file, "", "out of memory while reading");
    arena_own(arena, free, buffer);
    if (broken)
        return status_at(STATUS_INVALID, file, "", "cannot be read, or its packing is broken");
    if (used >= TABLE_MAX_BYTES)
        return status_at(STATUS_INVALID, file, "", "larger than %d MiB", TABLE_MAX_BYTES >> 20);
    buffer[used] = '\0';
    *text = buffer;
    *size = used;
    return status_ok();
}

static char *trim(char *text) {
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1])) text[--length] = '\0';
    return text;
}

// Cuts a line at its commas; returns how many cells there are, of which at most max are kept.
static int line_split(char *line, const char **cells, int max) {
    int num_cells = 0;
    while (line) {
        char *comma = strchr(line, ',');
        if (comma) *comma = '\0';
        if (num_cells < max) cells[num_cells] = trim(line);
        num_cells++;
        line = comma ? comma + 1 : NULL;
    }
    return num_cells;
}

static Status header_read(KernelTable *table, Arena *arena) {
    const char **names = ARENA_ARRAY(arena, TABLE_MAX_COLUMNS, const char *);
    table->num_columns = line_split(arena_strdup(arena, table->header), names, TABLE_MAX_COLUMNS);
    if (table->num_columns > TABLE_MAX_COLUMNS)
        return status_at(STATUS_INVALID, table->file, "row 1", "more than %d columns",
                         TABLE_MAX_COLUMNS);
    for (int i = 0; i < table->num_columns; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return status_at(STATUS_INVALID, table->file, "row 1",
                                 "the column \"%.40s\" stands there twice", names[i]);
    table->names = names;
    return status_ok();
}

// Cuts the text into lines; blank ones are left out but counted.
static void lines_read(KernelTable *table, char *text, int max_rows, Arena *arena) {
    const char **lines = ARENA_ARRAY(arena, max_rows, const char *);
    int *numbers = ARENA_ARRAY(arena, max_rows, int);
    int number = 0;
    for (char *line = text; line; number++) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
        if (!table->header) {
            table->header = line;
        } else if (line[strspn(line, " \t")] != '\0') {
            lines[table->num_rows] = line;
            numbers[table->num_rows++] = number + 1;
        }
        line = end ? end + 1 : NULL;
    }
    table->lines = lines;
    table->line_numbers = numbers;
}

static Status cells_read(KernelTable *table, Arena *arena) {
    size_t num_columns = (size_t)table->num_columns;
    const char **cells = arena_array(arena, (size_t)table->num_rows * num_columns, sizeof *cells);
    for (int row = 0; row < table->num_rows; row++) {
        int n = line_split(arena_strdup(arena, table->lines[row]),
                           cells + (size_t)row * num_columns, table->num_columns);
        if (n != table->num_columns)
            return kernel_table_error(table, row, "%d cells; the header names %d columns", n,
                                      table->num_columns);
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
    int max_rows = 1;
    for (const char *c = text; *c; c++) max_rows += *c == '\n';
    lines_read(&table, text, max_rows, arena);
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
    for (int i = 0; names[i]; i++)
        if (kernel_table_column(table, names[i]) < 0)
            return status_at(STATUS_INVALID, table->file, "row 1",
                             "the column \"%s\" is missing; found \"%.200s\"", names[i],
                             table->header);
    return status_ok();
}

const char **kernel_table_texts(const KernelTable *table, const char *name, Arena *arena) {
    const char **texts = ARENA_ARRAY(arena, table->num_rows, const char *);
    int column = kernel_table_column(table, name);
    for (int row = 0; row < table->num_rows; row++)
        texts[row] = table->cells[(size_t)row * (size_t)table->num_columns + (size_t)column];
    return texts;
}

Status kernel_table_numbers(const KernelTable *table, const char *name, double min, double max,
                            Arena *arena, double **out) {
    const char **texts = kernel_table_texts(table, name, arena);
    double *numbers = ARENA_ARRAY(arena, table->num_rows, double);
    for (int row = 0; row < table->num_rows; row++) {
        char *end;
        numbers[row] = strtod(texts[row], &end);
        if (end == texts[row] || *end || !isfinite(numbers[row]))
            return kernel_table_error(table, row, "%s: \"%.40s\" is not a number", name,
                                      texts[row]);
        if (numbers[row] < min || numbers[row] > max)
            return kernel_table_error(table, row, "%s: %.6g; expected %.6g to %.6g", name,
                                      numbers[row], min, max);
    }
    *out = numbers;
    return status_ok();
}

Status kernel_table_latency_s(const KernelTable *table, Arena *arena, double **out) {
    static const char *const NAMES[] = {"latency_ms", NULL};
    TRY(kernel_table_require(table, NAMES));
    double *latency;
    TRY(kernel_table_numbers(table, "latency_ms", -INFINITY, INFINITY, arena, &latency));
    for (int row = 0; row < table->num_rows; row++) {
        if (latency[row] <= 0)
            return kernel_table_error(table, row, "latency_ms: %.6g is not a time", latency[row]);
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

Status kernel_table_check_least(const KernelTable *table, const double *latency_s,
                                const double *least_s, const char *what) {
    int num_beyond = 0, worst = -1;
    double worst_ratio = 1;
    for (int row = 0; row < table->num_rows; row++) {
        double ratio = least_s[row] / latency_s[row];
        num_beyond += ratio > 1;
        if (ratio > worst_ratio) {
            worst_ratio = ratio;
            worst = row;
        }
    }
    if (num_beyond * 1000.0 <= table->num_rows) return status_ok();
    return kernel_table_error(table, worst,
                              "latency_ms: %.6g ms is %.3g times faster than %s allows, and %d of "
                              "%d rows are; is the unit milliseconds in every row?",
                              latency_s[worst] * 1e3, worst_ratio, what, num_beyond,
                              table->num_rows);
}
