#include "launch/script.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void script_append(Script *script, const char *text) {
    size_t length = strlen(text);
    if (script->size + length + 1 > script->capacity) {
        size_t capacity = 2 * (script->size + length + 1) + 4096;
        char *larger = arena_alloc(script->arena, capacity);
        if (script->size > 0) memcpy(larger, script->text, script->size);
        script->text = larger;
        script->capacity = capacity;
    }
    memcpy(script->text + script->size, text, length + 1);
    script->size += length;
}

void script_add(Script *script, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = arena_alloc(script->arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    script_append(script, text);
}

void script_comment(Script *script, const char *text) {
    const int space = 98;
    if (!*text) script_add(script, "#\n");
    while (*text) {
        int length = (int)strlen(text);
        if (length > space) {
            length = space;
            while (length > 0 && text[length] != ' ') length--;
            if (length == 0) length = (int)strcspn(text, " ");
        }
        script_add(script, "# %.*s\n", length, text);
        text += length;
        while (*text == ' ') text++;
    }
}

const char *number_text(double value, Arena *arena) {
    const char *text = "";
    if (fabs(value) < 1e15 && value == floor(value)) return arena_printf(arena, "%.0f", value);
    for (int digits = 6; digits <= 17; digits++) {
        text = arena_printf(arena, "%.*g", digits, value);
        if (memcmp(&(double){strtod(text, NULL)}, &value, sizeof value) == 0) break;
    }
    return text;
}
