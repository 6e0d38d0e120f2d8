#include "base/json_skip.h"
#include "base/json_parse.h"

#include <string.h>

// The end of a string: just behind its closing quote, or at the end of the text.
static char *string_end(char *at) {
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

// Behind white space and comments; a comment that is not closed is left to the parser.
static char *space_end(char *at) {
    bool unclosed = false;
    at += json_space_end(at, &unclosed) - at;
    return unclosed ? at + strlen(at) : at;
}

// The end of an object or array: just behind its closing bracket.
static char *brackets_end(char *at) {
    int depth = 0;
    while (*at) {
        if (*at == '"') {
            at = string_end(at);
            continue;
        }
        if (*at == '/') {
            char *behind = space_end(at);
            at = behind > at ? behind : at + 1;
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
        if (depth == 0) break;
    }
    return at;
}

static bool is_one_of(const char *name, size_t length, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) return true;
    return false;
}

// Writes null and blanks over the value; line ends stay.
static void value_blank(char *value, const char *end) {
    if (end - value < 4) return; // {} and [] need no time
    for (char *at = value; at < end; at++)
        if (*at != '\n' && *at != '\r') *at = ' ';
    memcpy(value, "null", 4);
}

void json_blank_members(char *text, const char *const *names) {
    char *at = space_end(text);
    if (*at != '{') return;
    at++;
    while (*(at = space_end(at))) {
        if (*at != '"') { // between members, or a value that is no string
            at = *at == '{' || *at == '[' ? brackets_end(at) : at + 1;
            continue;
        }
        char *name = at + 1;
        at = string_end(at);
        size_t length = (size_t)(at - name) - 1;
        char *value = space_end(at);
        if (*value != ':') continue;
        value = space_end(value + 1);
        at = value;
        if (*value != '{' && *value != '[') continue;
        at = brackets_end(value);
        if (is_one_of(name, length, names)) value_blank(value, at);
    }
}
