// base/text_lines.h - the lines of a text of somebody else's, within limits of length and size.
//
// Endless input (a device, a pipe that never ends) and a line without an end are refused by their
// limit and line, before they take memory.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    FILE *stream;
    const char *file;      // the name used in messages
    size_t max_line_bytes; // of one line
    size_t max_bytes;      // of all
    // Kept by text_lines_next; zero-initialise.
    char *line; // without its newline
    size_t capacity;
    int number; // of the line, from 1
    size_t num_bytes;
} TextLines;

// The next line.
//   *more    whether there was one
//   returns  STATUS_INVALID: a NUL byte, a limit that is met, or what cannot be read
Status text_lines_next(TextLines *lines, Arena *arena, bool *more);
