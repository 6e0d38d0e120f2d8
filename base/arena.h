// base/arena.h - memory with one lifetime, freed in one piece.
//
// Nothing inside is freed singly. An exhausted machine is the one failure that is not a Status:
// the process says so on standard error and exits with code 3, so that no caller has to check.
#pragma once

#include <stddef.h>

typedef struct ArenaBlock ArenaBlock;
typedef struct ArenaCleanup ArenaCleanup;

typedef struct {
    ArenaBlock *last;       // newest block; NULL before the first allocation
    ArenaCleanup *cleanups; // newest first
} Arena;                    // zero-initialise

// Zeroed memory, aligned for any type; never NULL. A size of 0 gives a unique valid pointer.
void *arena_alloc(Arena *arena, size_t size);

// Zeroed array of count elements; refuses (exit 3) a product that does not fit size_t.
void *arena_array(Arena *arena, size_t count, size_t element_size);

// Makes an array larger, or NULL into one: only of its kind, which have a block each. It may move;
// what is new in it is not set. A size of 0 gives it back before the rest and returns NULL.
void *arena_grow(Arena *arena, void *array, size_t size);

// A copy of size bytes; a size of 0 gives a unique valid pointer.
void *arena_copy(Arena *arena, const void *from, size_t size);

char *arena_strdup(Arena *arena, const char *text);

char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Bytes in use, alignment included.
size_t arena_used(const Arena *arena);

// Calls free_it(thing) when the arena is reset or freed: for what a library allocated.
void arena_own(Arena *arena, void (*free_it)(void *thing), void *thing);

// Forgets all allocations but keeps the largest block for reuse.
void arena_reset(Arena *arena);

// Gives everything back; a zeroed Arena is accepted.
void arena_free(Arena *arena);

#define ARENA_NEW(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define ARENA_ARRAY(arena, count, Type)                                                            \
    ((Type *)arena_array((arena), (size_t)(count), sizeof(Type)))
