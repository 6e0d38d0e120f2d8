#include "base/text_lines.h"

#include <errno.h>
#include <string.h>

static Status refuse(const TextLines *lines, const char *what, size_t bytes) {
    return status_at(STATUS_INVALID, lines->file, "",
                     "line %d: %s more than %zu bytes; expected %s", lines->number, what, bytes,
                     "a text of lines");
}

// Room for a character at this place.
static void room_make(TextLines *lines, size_t place, Arena *arena) {
    if (place < lines->capacity) return;
    lines->capacity = lines->capacity ? 2 * lines->capacity : 4096;
    lines->line = arena_grow(arena, lines->line, lines->capacity);
}

Status text_lines_next(TextLines *lines, Arena *arena, bool *more) {
    size_t length = 0;
    int c;
    *more = false;
    lines->number++;
    while ((c = getc_unlocked(lines->stream)) != EOF && c != '\n') {
        *more = true;
        if (c == '\0')
            return status_at(STATUS_INVALID, lines->file, "", "line %d: a NUL byte; expected text",
                             lines->number);
        if (length == lines->max_line_bytes)
            return refuse(lines, "a line of", lines->max_line_bytes);
        if (++lines->num_bytes > lines->max_bytes)
            return refuse(lines, "the text has", lines->max_bytes);
        room_make(lines, length, arena);
        lines->line[length++] = (char)c;
    }
    if (c == '\n') {
        *more = true;
        if (++lines->num_bytes > lines->max_bytes)
            return refuse(lines, "the text has", lines->max_bytes);
    }
    room_make(lines, length, arena);
    lines->line[length] = '\0';
    if (c == EOF && ferror(lines->stream))
        return status_at(STATUS_INVALID, lines->file, "", "cannot be read: %s", strerror(errno));
    return status_ok();
}
