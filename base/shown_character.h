// base/shown_character.h - one character as it may be shown; base/shown_text.h has whole texts.
//
// Characters that would steer a terminal, break a line or turn the order of letters are written as
// escapes. Control characters (C0, DEL, C1), line and paragraph separators, marks of direction,
// invisible spaces and byte order marks are written as \u001b. Newlines and tabs are written as \n
// and \t, and bytes that are no UTF-8 as \xff. Sources: RFC 3629 (UTF-8); Unicode 16, section 23.2;
// ECMA-48 (C0 and C1). In a header of its own, since base/status.c is built into libraries without
// the rest of base/.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 8 }; // an escape or a character, with a NUL

// How long the character at text is, and which; 0: no UTF-8.
static inline size_t shown_character_read(const char *text, uint32_t *out) {
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000}; // shorter ones are not legal
    const unsigned char first = (unsigned char)text[0];
    const size_t length = first < 0x80             ? 1
                          : (first & 0xe0) == 0xc0 ? 2
                          : (first & 0xf0) == 0xe0 ? 3
                          : (first & 0xf8) == 0xf0 ? 4
                                                   : 0;
    uint32_t value = length == 1 ? first : length == 0 ? 0 : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | ((unsigned char)text[i] & 0x3f);
    }
    *out = value;
    const bool surrogate = value >= 0xd800 && value <= 0xdfff;
    return length > 0 && value >= LEAST[length] && value <= 0x10ffff && !surrogate ? length : 0;
}

static inline bool shown_needs_escape(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb);
}

// Writes the next character of a text, or an escape for it, and moves *text behind it.
//   returns  bytes written before the NUL
static inline size_t shown_next(const char **text, char out[SHOWN_MAX]) {
    uint32_t c = 0;
    const size_t length = shown_character_read(*text, &c);
    int written;
    if (length > 0 && !shown_needs_escape(c)) {
        memcpy(out, *text, length);
        out[length] = '\0';
        *text += length;
        return length;
    }
    if (length == 0)
        written = snprintf(out, SHOWN_MAX, "\\x%02x", (unsigned char)**text);
    else if (c == '\n' || c == '\t')
        written = snprintf(out, SHOWN_MAX, "%s", c == '\n' ? "\\n" : "\\t");
    else
        written = snprintf(out, SHOWN_MAX, "\\u%04x", (unsigned)c & 0xffff);
    *text += length ? length : 1;
    return (size_t)written;
}
