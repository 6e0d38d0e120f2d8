// From bytes to a checked tree, and back to a file.
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JSON_MAX_DEPTH = 64 };

static void tree_free(void *tree) {
    cJSON_Delete(tree);
}

// Line and column (from 1) of a byte.
static void text_place(const char *text, size_t at, int *line, int *column) {
    *line = *column = 1;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            (*line)++;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xC0) != 0x80) { // not inside a UTF-8 character
            (*column)++;
        }
    }
}

static Status text_error(const char *text, size_t at, const char *file, const char *sentence) {
    int line, column;
    text_place(text, at, &line, &column);
    char path[64];
    snprintf(path, sizeof path, "line %d, column %d", line, column);
    return status_at(STATUS_INVALID, file, path, "%s", sentence);
}

// Length of the UTF-8 character at s (RFC 3629), 0 where it is none.
static size_t utf8_length(const unsigned char *s, size_t left) {
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xF0 && s[0] < 0xF5 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC2 ? 2 : 0;
    if (s[0] >= 0xF5 || n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0;
    return n;
}

// Refuses what the parser would accept or would recurse into: bad UTF-8, NUL bytes, deep nesting.
static Status text_check(const char *text, size_t size, const char *file) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size;) {
        size_t n = utf8_length((const unsigned char *)text + i, size - i);
        if (n == 0) return text_error(text, i, file, "not valid UTF-8");
        char c = text[i];
        if (c == '\0') return text_error(text, i, file, "syntax error: a NUL byte");
        if (in_string && c == '\\' && i + 1 < size)
            n = 2;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '[' || c == '{') && ++depth > JSON_MAX_DEPTH)
            return text_error(text, i, file, "nested deeper than 64 levels");
        else if (!in_string && (c == ']' || c == '}'))
            depth--;
        i += n;
    }
    return status_ok();
}

// Where the parser stopped, corrected: it steps over what stands in place of a key's quote.
static size_t text_stop(const char *text, size_t at) {
    char open[JSON_MAX_DEPTH + 2] = {0}; // brackets around the place
    int depth = 0;
    char before = '\0'; // the last character that is not white space
    bool in_string = false;
    if (at == 0) return 0;
    for (size_t i = 0; i + 1 < at; i++) {
        char c = text[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            open[++depth] = c;
        else if (!in_string && (c == '}' || c == ']') && depth > 0)
            depth--;
        if (!strchr(" \t\r\n", c)) before = c;
    }
    bool key_expected = !in_string && open[depth] == '{' && (before == '{' || before == ',');
    return key_expected && !strchr("\" \t\r\n", text[at - 1]) ? at - 1 : at;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static Status object_refuse_repeated(const JsonNode *node, Arena *arena) {
    int n = cJSON_GetArraySize(node->item);
    if (n < 2) return status_ok();
    const char **keys = ARENA_ARRAY(arena, n, const char *);
    const cJSON *child;
    int i = 0;
    cJSON_ArrayForEach(child, node->item) keys[i++] = child->string;
    qsort(keys, (size_t)n, sizeof *keys, compare_keys);
    for (i = 1; i < n; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            JsonNode repeated = {.file = node->file, .parent = node, .key = keys[i]};
            return json_error(&repeated, "the key stands here twice");
        }
    return status_ok();
}

static Status tree_check(const JsonNode *node, Arena *arena) {
    if (cJSON_IsNumber(node->item) && !isfinite(node->item->valuedouble))
        return json_error(node, "the number is beyond what a double holds");
    bool object = cJSON_IsObject(node->item);
    if (object) TRY(object_refuse_repeated(node, arena));
    const cJSON *child;
    int index = 0;
    cJSON_ArrayForEach(child, node->item) {
        JsonNode member = {.file = node->file, .item = child, .parent = node, .index = index++};
        if (object) member.key = child->string;
        TRY(tree_check(&member, arena));
    }
    return status_ok();
}

Status json_parse(const char *text, size_t size, const char *file, Arena *arena, JsonNode *root) {
    if (size > JSON_MAX_BYTES)
        return status_at(STATUS_INVALID, file, "",
                         "larger than %zu MiB; expected one JSON document", JSON_MAX_BYTES >> 20);
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, size -= 3; // byte order mark
    if (strspn(text, " \t\r\n") >= size)
        return status_at(STATUS_INVALID, file, "", "empty; expected one JSON document");
    TRY(text_check(text, size, file));
    const char *end = NULL;
    cJSON *tree = cJSON_ParseWithLengthOpts(text, size, &end, false);
    size_t at = end && end >= text && end <= text + size ? (size_t)(end - text) : 0;
    if (!tree) return text_error(text, text_stop(text, at), file, "syntax error");
    arena_own(arena, tree_free, tree);
    at += strspn(text + at, " \t\r\n");
    if (at < size) return text_error(text, at, file, "syntax error: text after the document");
    *root = (JsonNode){.file = arena_strdup(arena, file), .item = tree};
    Arena scratch = {0};
    Status status = tree_check(root, &scratch);
    arena_free(&scratch);
    return status;
}

// Reads at most JSON_MAX_BYTES + 1 bytes, so that endless input ends.
static Status stream_read(FILE *stream, const char *file, Arena *arena, char **text, size_t *size) {
    size_t capacity = 1 << 16, used = 0;
    char *buffer = malloc(capacity);
    while (buffer && used <= JSON_MAX_BYTES) {
        if (used + 1 == capacity) {
            char *larger = realloc(buffer, capacity *= 2);
            if (!larger) free(buffer);
            buffer = larger;
            continue;
        }
        size_t got = fread(buffer + used, 1, capacity - 1 - used, stream);
        used += got;
        if (got == 0) break;
    }
    if (!buffer) return status_at(STATUS_MACHINE, file, "", "out of memory while reading");
    arena_own(arena, free, buffer);
    if (ferror(stream))
        return status_at(STATUS_INVALID, file, "", "cannot be read: %s", strerror(errno));
    buffer[used] = '\0';
    *text = buffer;
    *size = used;
    return status_ok();
}

Status json_load(const char *path, Arena *arena, JsonNode *root) {
    bool standard_input = strcmp(path, "-") == 0;
    const char *file = standard_input ? "standard input" : path;
    FILE *stream = standard_input ? stdin : fopen(path, "rb");
    if (!stream) return status_at(STATUS_INVALID, file, "", "cannot be read: %s", strerror(errno));
    char *text = NULL;
    size_t size = 0;
    Status status = stream_read(stream, file, arena, &text, &size);
    if (!standard_input) fclose(stream);
    TRY(status);
    return json_parse(text, size, file, arena, root);
}

void json_add_number(cJSON *object, const char *key, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}

Status json_write(const cJSON *tree, FILE *stream) {
    char *text = cJSON_Print(tree);
    if (!text) return status_error(STATUS_MACHINE, "out of memory while writing JSON");
    bool failed = fputs(text, stream) < 0 || fputc('\n', stream) < 0 || fflush(stream) != 0;
    cJSON_free(text);
    if (failed) return status_error(STATUS_MACHINE, "cannot write: %s", strerror(errno));
    return status_ok();
}

Status json_save(const cJSON *tree, const char *path) {
    if (strcmp(path, "-") == 0) return json_write(tree, stdout);
    char temporary[4096];
    int n = snprintf(temporary, sizeof temporary, "%s.tmp%ld", path, (long)getpid());
    if (n < 0 || n >= (int)sizeof temporary)
        return status_at(STATUS_INVALID, path, "", "the path is too long");
    FILE *stream = fopen(temporary, "wb");
    if (!stream)
        return status_at(STATUS_INVALID, path, "", "cannot be written: %s", strerror(errno));
    Status status = json_write(tree, stream);
    if (fclose(stream) != 0 && status.code == STATUS_OK)
        status = status_at(STATUS_MACHINE, path, "", "cannot be written: %s", strerror(errno));
    if (status.code == STATUS_OK && rename(temporary, path) != 0)
        status = status_at(STATUS_INVALID, path, "", "cannot be written: %s", strerror(errno));
    if (status.code != STATUS_OK) unlink(temporary);
    return status;
}
