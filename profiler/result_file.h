// profiler/result_file.h - a CSV table that grows row by row and goes on where it was cut off.
//
// Every row is written and flushed by itself. A file that is there already is continued. Its header
// has to be the same, and its last line is removed where it was not written to its end. The rows it
// holds are known by their first num_keys cells. Cells hold no commas, quotes or line ends.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    const char *path;
    FILE *stream;
    int num_columns, num_keys;
    Arena *arena;
    const char **keys; // [num_rows], the first cells of each row with their commas
    int num_rows, capacity;
    bool torn; // a last line was removed
} ResultFile;

// Holds a folder against other programs that measure into it, until result_folder_release or the
// end of this process. STATUS_MACHINE where another does.
Status result_folder_hold(const char *folder, int *held);
void result_folder_release(int held); // accepts -1

// Refuses what result_file_open would, and changes nothing. A missing file is legal.
Status result_file_check(const char *path, const char *header, int num_keys, Arena *arena);

// Opens or makes it, and holds it as a folder. STATUS_INVALID, and the file as it was, for a file
// of another header or with a row of other cells.
Status result_file_open(const char *path, const char *header, int num_keys, Arena *arena,
                        ResultFile *out);

// Whether a row begins with these cells ("bfloat16,128,4096,4096").
bool result_file_has(const ResultFile *file, const char *key);

// Appends the row "key,rest" and flushes it. Accepts what has no comma or line end within a cell.
Status result_file_add(ResultFile *file, const char *key, const char *rest);

// Accepts a zeroed one.
Status result_file_close(ResultFile *file);
