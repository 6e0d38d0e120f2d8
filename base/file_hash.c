#include "base/file_hash.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

// Fowler, Noll, Vo, RFC 9923.
static void byte_add(int byte, uint64_t *hash) {
    *hash = (*hash ^ (uint64_t)byte) * UINT64_C(1099511628211);
}

// Goes on with another file.
static bool hash_add(const char *path, uint64_t *hash) {
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    for (int c; (c = getc_unlocked(stream)) != EOF;) byte_add(c, hash);
    const bool good = !ferror(stream);
    fclose(stream);
    return good;
}

void text_hash_add(const char *piece, uint64_t *hash) {
    for (; *piece; piece++) byte_add((unsigned char)*piece, hash);
}

const char *text_hash_name(uint64_t hash, Arena *arena) {
    return arena_printf(arena, "%016" PRIx64, hash);
}

const char *text_hash(const char *text, Arena *arena) {
    uint64_t hash = TEXT_HASH_START;
    text_hash_add(text, &hash);
    return text_hash_name(hash, arena);
}

const char *files_hash(const char *const *paths, int num, Arena *arena) {
    uint64_t hash = TEXT_HASH_START;
    for (int i = 0; i < num; i++)
        if (!hash_add(paths[i], &hash)) return NULL;
    return text_hash_name(hash, arena);
}

const char *file_hash(const char *path, Arena *arena) {
    return files_hash(&path, 1, arena);
}
