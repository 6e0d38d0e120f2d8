// From bytes to a checked tree, and back to a file.
#include "base/json.h"
#include "base/json_parse.h"
#include "base/json_shelf.h"
#include "base/json_skip.h"
#include "base/output_file.h"
#include "base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What is parsed, and where it stands.
typedef struct {
    const char *text; // NUL at text[size]
    size_t size;
    const char *file;
    int first_line;     // of file, from 1
    size_t *num_values; // of all that is read of the file
} Source;

static void tree_free(void *tree) {
    cJSON_Delete(tree);
}

void json_own(Arena *arena, cJSON *tree) {
    arena_own(arena, tree_free, tree);
}

// Line and column (from 1) of a byte of a text that begins in first_line.
static void text_place(const char *text, size_t at, int first_line, int *line, int *column) {
    *line = first_line;
    *column = 1;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            (*line)++;
            *column = 1;
        } else if (((unsigned char)text[i] & 0xC0) != 0x80) { // not inside a UTF-8 character
            (*column)++;
        }
    }
}

static Status text_error(const Source *source, size_t at, const char *sentence) {
    int line, column;
    text_place(source->text, at, source->first_line, &line, &column);
    char path[64];
    snprintf(path, sizeof path, "line %d, column %d", line, column);
    return status_at(STATUS_INVALID, source->file, path, "%s", sentence);
}

static Status lines_error(const Source *source) {
    char sentence[64];
    snprintf(sentence, sizeof sentence, "more than %d documents", JSON_MAX_LINES);
    return text_error(source, 0, sentence);
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

// Refuses what the parser would take for text: bad UTF-8, NUL bytes.
static Status text_check(const Source *source) {
    const char *text = source->text;
    for (size_t i = 0, n; i < source->size; i += n) {
        n = utf8_length((const unsigned char *)text + i, source->size - i);
        if (n == 0) return text_error(source, i, "not valid UTF-8");
        if (text[i] == '\0') return text_error(source, i, "syntax error: a NUL byte");
    }
    return status_ok();
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

// Whether a document is YAML: by its name; without such a name (standard input) by how it begins.
static bool source_is_yaml(const Source *source) {
    static const char *const ENDS[] = {".yaml", ".yml", ".json", ".jsonl"};
    size_t length = strlen(source->file);
    for (size_t i = 0; i < 4; i++) {
        size_t n = strlen(ENDS[i]);
        if (length > n && strcmp(source->file + length - n, ENDS[i]) == 0) return i < 2;
    }
    const char *begin = source->text + strspn(source->text, " \t\r\n");
    return *begin == '#' || (strncmp(begin, "---", 3) == 0 && strchr(" \r\n", begin[3])) ||
           (strspn(begin, "abcdefghijklmnopqrstuvwxyz_") > 0 &&
            begin[strspn(begin, "abcdefghijklmnopqrstuvwxyz_")] == ':');
}

static Status yaml_tree(const Source *source, cJSON **tree) {
    char message[400];
    const YamlOptions options = {.strict = true};
    *tree = yaml_parse_text(source->text, source->size, options, message, sizeof message);
    if (*tree) return status_ok();
    bool memory = strcmp(message, "out of memory") == 0;
    return status_at(memory ? STATUS_MACHINE : STATUS_INVALID, source->file, "", "%s", message);
}

static Status json_tree(const Source *source, cJSON **tree) {
    JsonMistake mistake;
    *tree = json_parse_tree(source->text, source->size, source->num_values, &mistake);
    if (*tree) return status_ok();
    if (mistake.out_of_memory)
        return status_at(STATUS_MACHINE, source->file, "", "out of memory while reading");
    return text_error(source, mistake.at, mistake.sentence);
}

// The tree of a document; its nodes say that they stand in node_file.
static Status source_parse(const Source *source, const char *node_file, Arena *arena,
                           JsonNode *root) {
    TRY(text_check(source));
    cJSON *tree = NULL;
    TRY(source_is_yaml(source) ? yaml_tree(source, &tree) : json_tree(source, &tree));
    json_own(arena, tree);
    *root = (JsonNode){.file = arena_strdup(arena, node_file), .item = tree};
    Arena scratch = {0};
    Status status = tree_check(root, &scratch);
    arena_free(&scratch);
    return status;
}

// Takes off the byte order mark; refuses what is too large or empty.
static Status source_begin(Source *source, const char *expected) {
    if (source->size > JSON_MAX_BYTES)
        return status_at(STATUS_INVALID, source->file, "", "larger than %zu MiB; expected %s",
                         JSON_MAX_BYTES >> 20, expected);
    if (source->size >= 3 && memcmp(source->text, "\xEF\xBB\xBF", 3) == 0)
        source->text += 3, source->size -= 3;
    bool unclosed = false; // a comment, which the parser refuses
    const char *begin = json_space_end(source->text, &unclosed);
    if (!unclosed && (size_t)(begin - source->text) >= source->size)
        return status_at(STATUS_INVALID, source->file, "", "empty; expected %s", expected);
    return status_ok();
}

Status json_parse(const char *text, size_t size, const char *file, Arena *arena, JsonNode *root) {
    size_t num_values = 0;
    Source source = {
        .text = text, .size = size, .file = file, .first_line = 1, .num_values = &num_values};
    TRY(source_begin(&source, "one JSON document"));
    return source_parse(&source, file, arena, root);
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

// The whole file; text[size] is NUL.
static Status file_read(const char *path, Arena *arena, Source *out, char **text) {
    bool standard_input = strcmp(path, "-") == 0;
    const char *file = standard_input ? "standard input" : path;
    FILE *stream = standard_input ? stdin : fopen(path, "rb");
    if (!stream) return status_at(STATUS_INVALID, file, "", "cannot be read: %s", strerror(errno));
    *out = (Source){.file = file, .first_line = 1};
    Status status = stream_read(stream, file, arena, text, &out->size);
    if (!standard_input) fclose(stream);
    out->text = *text;
    return status;
}

Status json_read_file(const char *path, Arena *arena, JsonNode *root) {
    static const char *const NONE[] = {NULL};
    return json_load_without(path, NONE, arena, root);
}

Status json_load(const char *path, Arena *arena, JsonNode *root) {
    Status status;
    return json_shelf_take(path, &status, root) ? status : json_read_file(path, arena, root);
}

Status json_load_named(const JsonNode *value, const char *path, Arena *arena, JsonNode *root) {
    if (value->file && access(path, R_OK) != 0)
        return json_error(value, "%.200s cannot be read: %s", path, strerror(errno));
    return json_load(path, arena, root);
}

Status json_load_without(const char *path, const char *const *names, Arena *arena, JsonNode *root) {
    Arena scratch = {0}; // of the text, which the tree does not need
    char *text = NULL;
    Source source;
    Status status = file_read(path, &scratch, &source, &text);
    if (status.code == STATUS_OK) {
        if (names[0] && !source_is_yaml(&source)) json_blank_members(text, names);
        status = json_parse(text, source.size, source.file, arena, root);
    }
    arena_free(&scratch);
    return status;
}

Status json_load_stream(FILE *stream, const char *file, Arena *arena, JsonNode *root) {
    Arena scratch = {0};
    char *text = NULL;
    size_t size = 0;
    Status status = stream_read(stream, file, &scratch, &text, &size);
    if (status.code == STATUS_OK) status = json_parse(text, size, file, arena, root);
    arena_free(&scratch);
    return status;
}

Status json_load_lines(const char *path, Arena *arena, JsonNode **roots, int *num_roots) {
    char *text = NULL;
    Source whole;
    TRY(file_read(path, arena, &whole, &text));
    TRY(source_begin(&whole, "one JSON document per line"));
    int num_lines = 1, capacity = 0;
    for (size_t i = 0; i < whole.size; i++) num_lines += whole.text[i] == '\n';
    size_t num_values = 0;
    *roots = NULL;
    *num_roots = 0;
    char *line = text + (whole.text - text);
    for (int number = 1; number <= num_lines; number++) {
        size_t left = whole.size - (size_t)(line - whole.text);
        char *end = memchr(line, '\n', left);
        size_t length = end ? (size_t)(end - line) : left;
        line[length] = '\0';
        Source source = {line, length, whole.file, number, &num_values};
        line += length + 1;
        if (strspn(source.text, " \t\r") >= length) continue;
        if (*num_roots == JSON_MAX_LINES) return lines_error(&source);
        if (*num_roots == capacity)
            *roots =
                arena_grow(arena, *roots, (size_t)(capacity = 2 * capacity + 64) * sizeof **roots);
        char *place = arena_printf(arena, "%s:%d", whole.file, number);
        TRY(source_parse(&source, place, arena, &(*roots)[(*num_roots)++]));
    }
    return status_ok();
}
