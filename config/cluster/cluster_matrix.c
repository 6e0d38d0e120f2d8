#include "config/cluster/cluster_matrix.h"

#include "base/data_dir.h"
#include "base/quantity.h"
#include "base/text_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE_BYTES = 1 << 20, MAX_FILE_BYTES = 1 << 28 };

static const double MIN_BYTES_PER_S = 1e3, MAX_BYTES_PER_S = 1e14;

// Where the numbers are from, for messages, and where they go.
typedef struct {
    const JsonNode *value; // names the file
    const char *path;
    int num_nodes;
    double *bytes_per_s; // [num_nodes][num_nodes]
} Matrix;

static Status number_check(const Matrix *matrix, int line, int from, int to, double bytes_per_s) {
    if (from == to) return status_ok();
    if (bytes_per_s == 0)
        return json_error(
            matrix->value,
            "%.100s line %d: 0 from node %d to node %d: all nodes of a job reach each "
            "other",
            matrix->path, line, from, to);
    if (bytes_per_s >= MIN_BYTES_PER_S && bytes_per_s <= MAX_BYTES_PER_S) return status_ok();
    return json_error(matrix->value, "%.100s line %d: %.6g is out of range; expected %.6g to %.6g",
                      matrix->path, line, bytes_per_s, MIN_BYTES_PER_S, MAX_BYTES_PER_S);
}

// The cell at `at`, without spaces around it.
static Status cell_refuse(const Matrix *matrix, int line, int number, const char *at) {
    at += strspn(at, " \t");
    int length = (int)strcspn(at, ",\r\n");
    while (length > 0 && (at[length - 1] == ' ' || at[length - 1] == '\t')) length--;
    return json_error(matrix->value,
                      "%.100s line %d: number %d is \"%.*s\"; expected bytes/s (text stands in "
                      "lines that begin with #)",
                      matrix->path, line, number, length < 40 ? length : 40, at);
}

// inf stands on diagonals: what a node exchanges with itself.
static double number_read(const char *at, char **end) {
    const char *word = at + strspn(at, " \t+-");
    return isalpha((unsigned char)*word) ? strtod(at, end) : decimal_read(at, end);
}

// The numbers from one node.
static Status line_read(const Matrix *matrix, int line, int from, const char *text) {
    int n = 0;
    for (const char *at = text;; n++) {
        char *end;
        double bytes_per_s = number_read(at, &end);
        bool is_number = end != at;
        end += strspn(end, " \t\r\n");
        if (!is_number || (*end && *end != ',')) return cell_refuse(matrix, line, n + 1, at);
        if (n < matrix->num_nodes) {
            TRY(number_check(matrix, line, from, n, bytes_per_s));
            matrix->bytes_per_s[from * matrix->num_nodes + n] = bytes_per_s;
        }
        if (!*end) break;
        at = end + 1;
    }
    if (n + 1 != matrix->num_nodes)
        return json_error(matrix->value,
                          "%.100s line %d: found %d numbers, expected one for each of %d nodes",
                          matrix->path, line, n + 1, matrix->num_nodes);
    return status_ok();
}

static Status rows_read(const Matrix *matrix, FILE *file) {
    TextLines lines = {.stream = file,
                       .file = matrix->path,
                       .max_line_bytes = MAX_LINE_BYTES,
                       .max_bytes = MAX_FILE_BYTES};
    Arena scratch = {0}; // of the lines
    bool more = true;
    int rows = 0;
    Status status = status_ok();
    while (status.code == STATUS_OK && more && rows <= matrix->num_nodes) {
        status = text_lines_next(&lines, &scratch, &more);
        if (status.code != STATUS_OK || !more) break;
        char *text = lines.line;
        if (text[0] == '#' || text[strspn(text, " \t\r\n")] == '\0') continue;
        if (rows < matrix->num_nodes) status = line_read(matrix, lines.number, rows, text);
        rows++;
    }
    arena_free(&scratch);
    int expected = matrix->num_nodes;
    if (status.code == STATUS_OK && rows != expected)
        return json_error(matrix->value,
                          "%.100s: found %s%d rows, expected one for each of %d nodes",
                          matrix->path, rows > expected ? "more than " : "",
                          rows > expected ? expected : rows, expected);
    return status;
}

Status bandwidth_matrix_read(const JsonNode *value, int num_nodes, Arena *arena,
                             const ClusterSites **out) {
    const char *name;
    TRY(json_read_string(value, arena, &name));
    if (num_nodes > MAX_SITES)
        return json_error(value, "%d nodes are legal, but not supported yet; expected at most %d",
                          num_nodes, MAX_SITES);
    const char *path = path_beside(arena, value->file ? value->file : "", name);
    Matrix matrix = {value, path, num_nodes, ARENA_ARRAY(arena, num_nodes * num_nodes, double)};
    FILE *file = fopen(path, "r");
    if (!file) return json_error(value, "%.200s cannot be read: %s", path, strerror(errno));
    Status status = rows_read(&matrix, file);
    fclose(file);
    *out = NULL;
    if (status.code != STATUS_OK || num_nodes == 1) return status;
    int *site_of_node = ARENA_ARRAY(arena, num_nodes, int);
    int *num_nodes_of = ARENA_ARRAY(arena, num_nodes, int);
    for (int i = 0; i < num_nodes; i++) {
        site_of_node[i] = i;
        num_nodes_of[i] = 1;
    }
    ClusterSites *sites = ARENA_NEW(arena, ClusterSites);
    *sites = (ClusterSites){.kind = SITE_NODE,
                            .num_sites = num_nodes,
                            .num_nodes = num_nodes,
                            .site_of_node = site_of_node,
                            .num_nodes_of = num_nodes_of,
                            .bytes_per_s = matrix.bytes_per_s};
    *out = sites;
    return status_ok();
}
