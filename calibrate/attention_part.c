#include "calibrate/attention_part.h"

#include <string.h>

static bool row_belongs(const AttentionRows *rows, const int *sharings, int row,
                        const AttentionPart *part) {
    return part->sharing == (sharings ? sharings[row] : 0) &&
           memcmp(&rows->shapes[row].variant, &part->variant, sizeof part->variant) == 0;
}

static void part_fill(const AttentionRows *rows, const int *sharings, Arena *arena,
                      AttentionPart *part) {
    int *part_rows = ARENA_ARRAY(arena, rows->num_rows, int), n = 0;
    for (int row = 0; row < rows->num_rows; row++)
        if (row_belongs(rows, sharings, row, part)) part_rows[n++] = row;
    double *target = ARENA_ARRAY(arena, n, double);
    int *folds = ARENA_ARRAY(arena, n, int);
    part->num_rows = n;
    part->rows = part_rows;
    part->shapes = ARENA_ARRAY(arena, n, const AttentionShape *);
    part->places = ARENA_ARRAY(arena, ATTENTION_NUM_AXES * n, double);
    for (int i = 0; i < n; i++) {
        part->shapes[i] = &rows->shapes[part_rows[i]];
        target[i] = rows->log_latency[part_rows[i]];
        folds[i] = rows->folds[part_rows[i]];
    }
    part->segment =
        (Segment){.num_rows = n, .log_latency = target, .places = part->places, .folds = folds};
}

int attention_parts(const AttentionRows *rows, const int *sharings, Arena *arena,
                    AttentionPart *parts) {
    int num_parts = 0;
    for (int row = 0; row < rows->num_rows; row++) {
        int p = 0;
        while (p < num_parts && !row_belongs(rows, sharings, row, &parts[p])) p++;
        if (p < num_parts || num_parts == ATTENTION_MAX_PARTS) continue;
        parts[p] = (AttentionPart){.variant = rows->shapes[row].variant,
                                   .sharing = sharings ? sharings[row] : 0};
        part_fill(rows, sharings, arena, &parts[p]);
        num_parts++;
    }
    return num_parts;
}
