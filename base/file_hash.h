// base/file_hash.h - a short name for the bytes of files, so that they can be recognised again.
#pragma once

#include "base/arena.h"

#include <stdint.h>

// FNV-1a of 64 bits as 16 hexadecimal digits; no secret. NULL where the file cannot be read.
const char *file_hash(const char *path, Arena *arena);

// The hash of a text.
const char *text_hash(const char *text, Arena *arena);

// The hash of a text that comes in pieces: it begins with TEXT_HASH_START.
#define TEXT_HASH_START UINT64_C(14695981039346656037)
void text_hash_add(const char *piece, uint64_t *hash);
const char *text_hash_name(uint64_t hash, Arena *arena);

// Of several as if they were one: paths[num].
const char *files_hash(const char *const *paths, int num, Arena *arena);
