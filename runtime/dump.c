#include "runtime/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Status dump_write(const Rank *rank, const char *folder, GlobalKind kind, int64_t step) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%lld.f64", folder,
             kind == GLOBAL_GRADIENTS ? "gradients" : "weights", (long long)step);
    return global_file_write(rank, path, kind);
}

static void list_print(const Rank *rank, FILE *out) {
    for (int c = 0; c < rank->num_chunks; c++) {
        const ChunkParameters *list = &rank->chunks[c].list;
        for (int i = 0; i < list->num_parameters; i++) {
            const Parameter *p = &list->parameters[i];
            fprintf(out, "%s %lld %lld %lld\n", p->name, (long long)p->rows, (long long)p->columns,
                    (long long)p->global_offset);
        }
    }
}

// In one piece: other processes append theirs.
Status dump_list(const Rank *rank, const char *folder) {
    char path[4096], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/parameters.txt", folder);
    FILE *list = open_memstream(&text, &size);
    if (!list) return status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
    list_print(rank, list);
    const bool whole = fclose(list) == 0;
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool good = whole && file >= 0 && write(file, text, size) == (ssize_t)size;
    const int error = errno;
    if (file >= 0) good = close(file) == 0 && good;
    free(text);
    if (good) return status_ok();
    return status_error(file < 0 && error == ENOENT ? STATUS_INVALID : STATUS_MACHINE, "%s: %s",
                        path, strerror(error));
}
