#include "base/shown_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *shown_text(const char *text, Arena *arena) {
    char out[SHOWN_MAX];
    size_t size = 0;
    const char *at = text;
    while (*at) size += shown_next(&at, out);
    if (size == strlen(text)) return text; // escapes are longer than what they are for
    char *shown = arena_alloc(arena, size + 1);
    size_t used = 0;
    for (at = text; *at;) {
        const size_t length = shown_next(&at, out);
        memcpy(shown + used, out, length);
        used += length;
    }
    return shown;
}

void shown_line(FILE *stream, const char *format, ...) {
    char *text = NULL;
    va_list args;
    va_start(args, format);
    const int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) return;
    Arena scratch = {0};
    fprintf(stream, "%s\n", shown_text(text, &scratch));
    arena_free(&scratch);
    free(text);
}
