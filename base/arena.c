#include "base/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_FIRST_BYTES = 16 * 1024 };

struct ArenaBlock {
    ArenaBlock *previous;
    size_t size; // usable bytes
    size_t used;
    _Alignas(max_align_t) char data[];
};

struct ArenaCleanup {
    ArenaCleanup *previous;
    void (*free_it)(void *thing);
    void *thing;
};

static _Noreturn void arena_exhausted(size_t size) {
    fprintf(stderr, "%s: out of memory (%zu bytes asked for)\n", program_invocation_short_name,
            size);
    exit(3);
}

static ArenaBlock *block_new(ArenaBlock *previous, size_t at_least) {
    size_t size = previous ? previous->size * 2 : ARENA_FIRST_BYTES;
    if (size > (size_t)64 << 20) size = (size_t)64 << 20;
    if (size < at_least) size = at_least;
    ArenaBlock *block = malloc(sizeof *block + size);
    if (!block) arena_exhausted(size);
    *block = (ArenaBlock){.previous = previous, .size = size};
    return block;
}

// Aligned room for size bytes, not set.
static void *room_take(Arena *arena, size_t size) {
    const size_t align = _Alignof(max_align_t);
    if (size > SIZE_MAX / 2) arena_exhausted(size);
    size = (size + align - 1) / align * align;
    if (size == 0) size = align;
    if (!arena->last || arena->last->size - arena->last->used < size)
        arena->last = block_new(arena->last, size);
    void *memory = arena->last->data + arena->last->used;
    arena->last->used += size;
    return memory;
}

void *arena_alloc(Arena *arena, size_t size) {
    return memset(room_take(arena, size), 0, size);
}

void *arena_copy(Arena *arena, const void *from, size_t size) {
    void *copy = room_take(arena, size);
    return size > 0 ? memcpy(copy, from, size) : copy;
}

size_t arena_used(const Arena *arena) {
    size_t bytes = 0;
    for (const ArenaBlock *block = arena->last; block; block = block->previous)
        bytes += block->used;
    return bytes;
}

void *arena_array(Arena *arena, size_t count, size_t element_size) {
    if (element_size && count > SIZE_MAX / 2 / element_size) arena_exhausted(SIZE_MAX);
    return arena_alloc(arena, count * element_size);
}

void *arena_grow(Arena *arena, void *array, size_t size) {
    if (size > SIZE_MAX / 2) arena_exhausted(size);
    // Behind the newest block, which is the one with room.
    if (!arena->last) arena->last = block_new(NULL, 0);
    ArenaBlock **link = &arena->last->previous;
    while (array && (void *)(*link)->data != array) link = &(*link)->previous;
    ArenaBlock *block = array ? *link : NULL;
    ArenaBlock *previous = array ? block->previous : *link;
    *link = previous;
    if (size == 0) {
        free(block);
        return NULL;
    }
    block = realloc(block, sizeof *block + size);
    if (!block) arena_exhausted(size);
    *block = (ArenaBlock){.previous = previous, .size = size, .used = size};
    *link = block;
    return block->data;
}

char *arena_strdup(Arena *arena, const char *text) {
    size_t size = strlen(text) + 1;
    return arena_copy(arena, text, size);
}

char *arena_printf(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    size_t size = (size_t)(length < 0 ? 0 : length) + 1;
    char *text = arena_alloc(arena, size);
    va_start(args, format);
    vsnprintf(text, size, format, args);
    va_end(args);
    return text;
}

void arena_own(Arena *arena, void (*free_it)(void *thing), void *thing) {
    ArenaCleanup *cleanup = ARENA_NEW(arena, ArenaCleanup);
    *cleanup = (ArenaCleanup){.previous = arena->cleanups, .free_it = free_it, .thing = thing};
    arena->cleanups = cleanup;
}

static void cleanups_run(Arena *arena) {
    for (ArenaCleanup *c = arena->cleanups; c; c = c->previous) c->free_it(c->thing);
    arena->cleanups = NULL;
}

static void blocks_free(ArenaBlock *block) {
    while (block) {
        ArenaBlock *previous = block->previous;
        free(block);
        block = previous;
    }
}

void arena_reset(Arena *arena) {
    if (!arena->last) return;
    cleanups_run(arena);
    // Blocks grow, so the newest is the largest but for those of arena_grow.
    blocks_free(arena->last->previous);
    arena->last->previous = NULL;
    arena->last->used = 0;
}

void arena_free(Arena *arena) {
    cleanups_run(arena);
    blocks_free(arena->last);
    arena->last = NULL;
}
