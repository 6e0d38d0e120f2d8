// launch/script.h - the text of a launch script.
#pragma once

#include "base/arena.h"

#include <stddef.h>

// Growing text. Zero-initialise with the arena.
typedef struct {
    Arena *arena;
    char *text;
    size_t size, capacity;
} Script;

void script_add(Script *script, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The shortest text that is read back as exactly this number.
const char *number_text(double value, Arena *arena);

// text as comment lines of at most 100 columns; "" is an empty one.
void script_comment(Script *script, const char *text);
