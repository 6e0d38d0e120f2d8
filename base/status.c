#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Replaces what would break a one-line message: control characters of quoted input.
static void text_make_printable(char *text) {
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c == 0x7f) *c = '?';
}

static Status status_format(StatusCode code, const char *prefix, const char *format, va_list args) {
    Status status = {.code = code};
    int used = snprintf(status.text, sizeof status.text, "%s", prefix);
    size_t at = used < 0 ? 0 : (size_t)used;
    if (at >= sizeof status.text) at = sizeof status.text - 1;
    vsnprintf(status.text + at, sizeof status.text - at, format, args);
    text_make_printable(status.text);
    return status;
}

Status status_ok(void) {
    Status status;
    status.code = STATUS_OK;
    status.text[0] = '\0';
    return status;
}

Status status_error(StatusCode code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Status status = status_format(code, "", format, args);
    va_end(args);
    return status;
}

Status status_at(StatusCode code, const char *file, const char *path, const char *format, ...) {
    char prefix[400];
    const char *join = path[0] ? ": " : "";
    snprintf(prefix, sizeof prefix, "%s: %s%s", file, path, join);
    va_list args;
    va_start(args, format);
    Status status = status_format(code, prefix, format, args);
    va_end(args);
    return status;
}
