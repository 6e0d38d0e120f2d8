#include "config/cluster_matrix.h"

#include "base/data_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Numbers of one line; value is where the path stands, for the message.
static Status line_check(const JsonNode *value, const char *path, int line, const char *text,
                         int num_nodes) {
    int n = 0;
    for (const char *at = text;; n++) {
        char *end;
        double bytes_per_s = strtod(at, &end);
        bool is_number = end != at;
        end += strspn(end, " \t\r\n");
        if (!is_number || (*end && *end != ','))
            return json_error(value, "%.100s line %d: number %d is not a number", path, line,
                              n + 1);
        if (!(bytes_per_s >= 1e3 && bytes_per_s <= 1e14))
            return json_error(value, "%.100s line %d: %.6g is out of range; expected 1000 to 1e+14",
                              path, line, bytes_per_s);
        if (!*end) break;
        at = end + 1;
    }
    if (n + 1 != num_nodes)
        return json_error(value,
                          "%.100s line %d: found %d numbers, expected one for each of %d nodes",
                          path, line, n + 1, num_nodes);
    return status_ok();
}

static Status rows_check(const JsonNode *value, const char *path, FILE *file, int num_nodes) {
    char *text = NULL;
    size_t size = 0;
    int line = 0, rows = 0;
    Status status = status_ok();
    while (status.code == STATUS_OK && rows <= num_nodes && getline(&text, &size, file) >= 0) {
        line++;
        if (text[0] == '#' || text[strspn(text, " \t\r\n")] == '\0') continue;
        status = line_check(value, path, line, text, num_nodes);
        rows++;
    }
    free(text);
    if (status.code == STATUS_OK && rows != num_nodes)
        return json_error(value, "%.100s: found %s%d rows, expected one for each of %d nodes", path,
                          rows > num_nodes ? "more than " : "", rows > num_nodes ? num_nodes : rows,
                          num_nodes);
    return status;
}

Status bandwidth_matrix_check(const JsonNode *value, int num_nodes, Arena *arena) {
    const char *name;
    TRY(json_read_string(value, arena, &name));
    const char *path = path_beside(arena, value->file ? value->file : "", name);
    FILE *file = fopen(path, "r");
    if (!file) return json_error(value, "%.200s cannot be read: %s", path, strerror(errno));
    Status status = rows_check(value, path, file, num_nodes);
    fclose(file);
    return status;
}
