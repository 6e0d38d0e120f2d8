#include "base/file_hash.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Goes on with another file; Fowler, Noll, Vo, RFC 9923.
static bool hash_add(const char *path, uint64_t *hash) {
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    for (int c; (c = fgetc(stream)) != EOF;) {
        *hash ^= (uint64_t)c;
        *hash *= UINT64_C(1099511628211);
    }
    const bool good = !ferror(stream);
    fclose(stream);
    return good;
}

const char *files_hash(const char *const *paths, int num, Arena *arena) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int i = 0; i < num; i++)
        if (!hash_add(paths[i], &hash)) return NULL;
    return arena_printf(arena, "%016" PRIx64, hash);
}

const char *file_hash(const char *path, Arena *arena) {
    return files_hash(&path, 1, arena);
}
