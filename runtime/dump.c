#include "runtime/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

Status dump_write(const Rank *rank, const char *folder, GlobalKind kind, int64_t step) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%lld.f64", folder,
             kind == GLOBAL_GRADIENTS ? "gradients" : "weights", (long long)step);
    return global_file_write(rank, path, kind);
}

Status dump_list(const Rank *rank, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/parameters.txt", folder);
    FILE *file = fopen(path, "a");
    if (!file) return status_error(STATUS_MACHINE, "%s: %s", path, strerror(errno));
    for (int c = 0; c < rank->num_chunks; c++) {
        const ChunkParameters *list = &rank->chunks[c].list;
        for (int i = 0; i < list->num_parameters; i++) {
            const Parameter *p = &list->parameters[i];
            fprintf(file, "%s %lld %lld %lld\n", p->name, (long long)p->rows, (long long)p->columns,
                    (long long)p->global_offset);
        }
    }
    fclose(file);
    return status_ok();
}
