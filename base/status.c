#include "base/status.h"

#include "base/shown_character.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// A sentence quotes what users write: what a terminal obeys, or what breaks the line, is shown
// escaped. What has no room is cut off between characters.
static void text_show(const char *text, char *out, size_t size) {
    char next[SHOWN_MAX];
    size_t used = 0;
    while (*text) {
        const size_t length = shown_next(&text, next);
        if (used + length >= size) break;
        memcpy(out + used, next, length);
        used += length;
    }
    out[used] = '\0';
}

static Status status_format(StatusCode code, const char *prefix, const char *format, va_list args) {
    Status status = {.code = code, .reason = REASON_ANY};
    int used = snprintf(status.text, sizeof status.text, "%s", prefix);
    size_t at = used < 0 ? 0 : (size_t)used;
    if (at >= sizeof status.text) at = sizeof status.text - 1;
    vsnprintf(status.text + at, sizeof status.text - at, format, args);
    char raw[sizeof status.text];
    memcpy(raw, status.text, sizeof raw);
    text_show(raw, status.text, sizeof status.text);
    return status;
}

Status status_ok(void) {
    Status status;
    status.code = STATUS_OK;
    status.reason = REASON_ANY;
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
    // A name that is too long is cut off, not what parts it from the sentence.
    enum { MOST_OF_PATH = 190, PARTS = 7 }; // "...: " and ": "
    char prefix[400];
    const char *join = path[0] ? ": " : "", *shown = file[0] ? file : "\"\"";
    const size_t path_bytes = strlen(path) < MOST_OF_PATH ? strlen(path) : MOST_OF_PATH;
    const size_t room = sizeof prefix - 1 - PARTS - path_bytes;
    snprintf(prefix, sizeof prefix, "%.*s%s: %.*s%s", (int)room, shown,
             strlen(shown) > room ? "..." : "", (int)path_bytes, path, join);
    va_list args;
    va_start(args, format);
    Status status = status_format(code, prefix, format, args);
    va_end(args);
    return status;
}

const char *status_text_within(const Status *status, const char *file) {
    char shown[sizeof status->text];
    text_show(file, shown, sizeof shown);
    const size_t length = strlen(shown);
    if (strncmp(status->text, shown, length) != 0 || strncmp(status->text + length, ": ", 2) != 0)
        return status->text;
    return status->text + length + 2;
}

Status status_because(Status status, StatusReason reason) {
    if (status.code != STATUS_OK) status.reason = reason;
    return status;
}
