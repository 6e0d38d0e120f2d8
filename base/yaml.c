// libyaml's events, put together.
#include "base/yaml.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

// A node that aliases may name.
typedef struct {
    char *name;
    const cJSON *node; // NULL while it is being read
} Anchor;

typedef struct {
    yaml_parser_t parser;
    YamlOptions options;
    const char *text;
    size_t size;
    char *message;
    size_t message_size;
    bool failed;
    Anchor *anchors; // [num_anchors]; a later one of the same name hides an earlier
    size_t num_anchors;
    size_t num_values;
    size_t alias_bytes; // of keys and texts that aliases wrote out
    cJSON *merged_from; // a list of what << named: anchors may lie in it
} Reader;

static void reader_fail(Reader *reader, yaml_mark_t mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void reader_fail(Reader *reader, yaml_mark_t mark, const char *format, ...) {
    if (reader->failed) return;
    reader->failed = true;
    char what[300];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(reader->message, reader->message_size, "line %zu, column %zu: %s", mark.line + 1,
             mark.column + 1, what);
}

// What libyaml says, with what it was reading.
static void reader_fail_syntax(Reader *reader) {
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR) {
        reader->failed = true;
        snprintf(reader->message, reader->message_size, "out of memory");
        return;
    }
    yaml_mark_t mark = parser->problem_mark;
    const char *problem = parser->problem ? parser->problem : "this is no YAML";
    if (mark.index < reader->size && reader->text[mark.index] == '\t')
        reader_fail(reader, mark, "syntax error: a tab; YAML indents by spaces");
    else if (parser->context)
        reader_fail(reader, mark, "syntax error: %s %s that begins in line %zu", problem,
                    parser->context, parser->context_mark.line + 1);
    else
        reader_fail(reader, mark, "syntax error: %s", problem);
}

static bool event_next(Reader *reader, yaml_event_t *event) {
    if (reader->failed) return false;
    if (yaml_parser_parse(&reader->parser, event)) return true;
    reader_fail_syntax(reader);
    return false;
}

static bool word_in(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcmp(text, *words) == 0) return true;
    return false;
}

// Numbers that YAML 1.1 and 1.2 read differently.
static void refuse_ambiguous(Reader *reader, const yaml_event_t *event, const char *text) {
    const char *digits = text + strspn(text, "+-");
    size_t length = strlen(digits);
    if (length > 1 && digits[0] == '0' && strspn(digits, "01234567") == length)
        reader_fail(reader, event->start_mark,
                    "%s is %ld in YAML 1.1 (octal) and %ld in YAML 1.2; write which is meant", text,
                    strtol(text, NULL, 8), strtol(text, NULL, 10));
    if (strchr(digits, '_') && strspn(digits, "_0123456789.") == length && digits[0] != '_')
        reader_fail(reader, event->start_mark,
                    "%s is a number in YAML 1.1 and a text in YAML 1.2; write it without \"_\"",
                    text);
}

static cJSON *plain_scalar(Reader *reader, const yaml_event_t *event, const char *text) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    static const char *const inf[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};
    if (word_in(text, nulls)) return cJSON_CreateNull();
    if (word_in(text, yes)) return cJSON_CreateTrue();
    if (word_in(text, no)) return cJSON_CreateFalse();
    if (word_in(text + (text[0] == '-' || text[0] == '+'), inf))
        return cJSON_CreateRaw(text[0] == '-' ? "-Infinity" : "Infinity");
    if (word_in(text, nan)) return cJSON_CreateRaw("NaN");
    if (reader->options.strict) refuse_ambiguous(reader, event, text);
    char *end;
    double number = strtod(text, &end);
    bool digits = strspn(text, "+-.0123456789eE_") == strlen(text) && strpbrk(text, "0123456789");
    if (digits && *end == '\0' && isfinite(number)) return cJSON_CreateNumber(number);
    return cJSON_CreateString(text);
}

// Whether a text holds a NUL ("\0" in quotes): all behind it would be lost.
static bool refuse_nul(Reader *reader, const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) == event->data.scalar.length) return false;
    reader_fail(reader, event->start_mark, "a text with a NUL byte (\\0)");
    return true;
}

static cJSON *scalar_read(Reader *reader, const yaml_event_t *event) {
    const char *text = (const char *)event->data.scalar.value;
    if (refuse_nul(reader, event)) return cJSON_CreateNull();
    const char *tag = (const char *)event->data.scalar.tag;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!plain || (tag && strcmp(tag, YAML_STR_TAG) == 0)) return cJSON_CreateString(text);
    return plain_scalar(reader, event, text);
}

typedef struct {
    int levels;
    size_t num_values, text_bytes;
} TreeSize;

static TreeSize tree_measure(const cJSON *tree) {
    TreeSize size = {.num_values = 1};
    const cJSON *child;
    if (tree->string) size.text_bytes += strlen(tree->string);
    if (tree->valuestring) size.text_bytes += strlen(tree->valuestring);
    cJSON_ArrayForEach(child, tree) {
        const TreeSize below = tree_measure(child);
        if (below.levels > size.levels) size.levels = below.levels;
        size.num_values += below.num_values;
        size.text_bytes += below.text_bytes;
    }
    size.levels += cJSON_IsObject(tree) || cJSON_IsArray(tree);
    return size;
}

// Counts what an alias writes out.
//   returns  whether that is within the limits
static bool alias_fits(Reader *reader, const yaml_event_t *event, const cJSON *node, int depth) {
    const char *name = (const char *)event->data.alias.anchor;
    const TreeSize size = tree_measure(node);
    reader->num_values += size.num_values;
    reader->alias_bytes += size.text_bytes;
    if (depth + size.levels > YAML_MAX_DEPTH)
        reader_fail(reader, event->start_mark, "*%.60s nests deeper than %d levels", name,
                    YAML_MAX_DEPTH);
    else if (reader->num_values > YAML_MAX_VALUES)
        reader_fail(reader, event->start_mark, "with *%.60s aliases write out more than %d values",
                    name, YAML_MAX_VALUES);
    else if (reader->alias_bytes > YAML_MAX_ALIAS_BYTES)
        reader_fail(reader, event->start_mark,
                    "with *%.60s aliases write out more than %d MiB of text", name,
                    YAML_MAX_ALIAS_BYTES >> 20);
    return !reader->failed;
}

static Anchor *anchor_find(Reader *reader, const char *name) {
    for (size_t i = reader->num_anchors; i-- > 0;)
        if (strcmp(reader->anchors[i].name, name) == 0) return &reader->anchors[i];
    return NULL;
}

static cJSON *alias_read(Reader *reader, const yaml_event_t *event, int depth) {
    const char *name = (const char *)event->data.alias.anchor;
    const Anchor *anchor = anchor_find(reader, name);
    if (!anchor)
        reader_fail(reader, event->start_mark, "no anchor &%.60s stands before this alias", name);
    else if (!anchor->node)
        reader_fail(reader, event->start_mark, "*%.60s stands inside its own anchor", name);
    else if (alias_fits(reader, event, anchor->node, depth))
        return cJSON_Duplicate(anchor->node, true);
    return cJSON_CreateNull();
}

// Remembers the name; its node is known once it is read. Returns its index, or -1.
static long anchor_begin(Reader *reader, yaml_mark_t mark, const yaml_char_t *name) {
    if (!name || reader->failed) return -1;
    if (reader->num_anchors == YAML_MAX_ANCHORS) {
        reader_fail(reader, mark, "more than %d anchors", YAML_MAX_ANCHORS);
        return -1;
    }
    Anchor *larger = realloc(reader->anchors, (reader->num_anchors + 1) * sizeof *larger);
    if (!larger) return -1;
    reader->anchors = larger;
    larger[reader->num_anchors] = (Anchor){.name = strdup((const char *)name)};
    return larger[reader->num_anchors].name ? (long)reader->num_anchors++ : -1;
}

static cJSON *node_read(Reader *reader, const yaml_event_t *event, int depth);

static cJSON *list_read(Reader *reader, int depth) {
    cJSON *list = cJSON_CreateArray();
    yaml_event_t event;
    while (event_next(reader, &event)) {
        bool last = event.type == YAML_SEQUENCE_END_EVENT;
        if (!last) cJSON_AddItemToArray(list, node_read(reader, &event, depth));
        yaml_event_delete(&event);
        if (last) break;
    }
    return list;
}

// Adds the members of a mapping that the table lacks.
static bool table_merge(cJSON *table, const cJSON *from) {
    if (!cJSON_IsObject(from)) return false;
    const cJSON *member;
    cJSON_ArrayForEach(member, from) {
        if (cJSON_GetObjectItemCaseSensitive(table, member->string)) continue;
        cJSON_AddItemToObject(table, member->string, cJSON_Duplicate(member, true));
    }
    return true;
}

// The table's own keys win over merged ones, an earlier mapping of a list over a later.
static void merge_all(Reader *reader, yaml_mark_t mark, cJSON *table, cJSON *from) {
    bool good = true;
    const cJSON *one;
    if (cJSON_IsArray(from)) {
        cJSON_ArrayForEach(one, from) good = good && table_merge(table, one);
    } else {
        good = table_merge(table, from);
    }
    cJSON_AddItemToArray(reader->merged_from, from);
    if (!good) reader_fail(reader, mark, "<< merges mappings; expected an alias of one or a list");
}

// A key, which is read, and its value; what << names is added to *merged.
static void member_read(Reader *reader, const yaml_event_t *key, int depth, cJSON *table,
                        cJSON *merged) {
    yaml_event_t value;
    if (key->type != YAML_SCALAR_EVENT) {
        reader_fail(reader, key->start_mark, "a key that is no scalar");
        return;
    }
    if (refuse_nul(reader, key) || !event_next(reader, &value)) return;
    const char *name = (const char *)key->data.scalar.value;
    bool merge = strcmp(name, "<<") == 0 && key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!merge && cJSON_GetObjectItemCaseSensitive(table, name))
        reader_fail(reader, key->start_mark, "the key %.60s stands here twice", name);
    cJSON *node = node_read(reader, &value, depth);
    if (merge)
        merge_all(reader, key->start_mark, merged, node);
    else
        cJSON_AddItemToObject(table, name, node);
    yaml_event_delete(&value);
}

static cJSON *table_read(Reader *reader, int depth) {
    cJSON *table = cJSON_CreateObject(), *merged = cJSON_CreateObject();
    yaml_event_t key;
    int num_keys = 0;
    while (event_next(reader, &key)) {
        bool last = key.type == YAML_MAPPING_END_EVENT;
        if (!last && ++num_keys > YAML_MAX_KEYS)
            reader_fail(reader, key.start_mark, "more than %d keys", YAML_MAX_KEYS);
        if (!last && !reader->failed) member_read(reader, &key, depth, table, merged);
        yaml_event_delete(&key);
        if (last) break;
    }
    table_merge(table, merged);
    cJSON_Delete(merged);
    return table;
}

static const yaml_char_t *event_anchor(const yaml_event_t *event) {
    if (event->type == YAML_SCALAR_EVENT) return event->data.scalar.anchor;
    if (event->type == YAML_SEQUENCE_START_EVENT) return event->data.sequence_start.anchor;
    if (event->type == YAML_MAPPING_START_EVENT) return event->data.mapping_start.anchor;
    return NULL;
}

static cJSON *node_of_kind(Reader *reader, const yaml_event_t *event, int depth) {
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return scalar_read(reader, event);
    case YAML_SEQUENCE_START_EVENT:
        return list_read(reader, depth + 1);
    case YAML_MAPPING_START_EVENT:
        return table_read(reader, depth + 1);
    case YAML_ALIAS_EVENT:
        return alias_read(reader, event, depth);
    default:
        reader_fail(reader, event->start_mark, "expected a value");
        return cJSON_CreateNull();
    }
}

static cJSON *node_read(Reader *reader, const yaml_event_t *event, int depth) {
    if (depth > YAML_MAX_DEPTH)
        reader_fail(reader, event->start_mark, "nested deeper than %d levels", YAML_MAX_DEPTH);
    if (++reader->num_values > YAML_MAX_VALUES)
        reader_fail(reader, event->start_mark, "more than %d values", YAML_MAX_VALUES);
    if (reader->failed) return cJSON_CreateNull();
    long anchor = anchor_begin(reader, event->start_mark, event_anchor(event));
    cJSON *node = node_of_kind(reader, event, depth);
    if (anchor >= 0) reader->anchors[anchor].node = node;
    return node;
}

static void reader_free(Reader *reader) {
    for (size_t i = 0; i < reader->num_anchors; i++) free(reader->anchors[i].name);
    free(reader->anchors);
    cJSON_Delete(reader->merged_from);
    yaml_parser_delete(&reader->parser);
}

// What follows the first document.
static void end_check(Reader *reader) {
    yaml_event_t event;
    while (event_next(reader, &event)) {
        bool last = event.type == YAML_STREAM_END_EVENT;
        if (!last && event.type != YAML_DOCUMENT_END_EVENT)
            reader_fail(reader, event.start_mark, "a second document begins here; expected one");
        yaml_event_delete(&event);
        if (last) break;
    }
}

cJSON *yaml_parse_text(const char *text, size_t size, YamlOptions options, char *message,
                       size_t message_size) {
    Reader reader = {.options = options, .text = text, .size = size};
    reader.message = message;
    reader.message_size = message_size;
    reader.merged_from = cJSON_CreateArray();
    cJSON *tree = NULL;
    yaml_event_t event;
    if (!yaml_parser_initialize(&reader.parser)) {
        snprintf(message, message_size, "out of memory");
        cJSON_Delete(reader.merged_from);
        return NULL;
    }
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
    while (!tree && event_next(&reader, &event)) {
        bool start =
            event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT;
        if (event.type == YAML_STREAM_END_EVENT)
            reader_fail(&reader, event.start_mark, "has no document");
        else if (!start)
            tree = node_read(&reader, &event, 0);
        yaml_event_delete(&event);
    }
    if (options.strict && !reader.failed) end_check(&reader);
    bool failed = reader.failed;
    reader_free(&reader);
    if (!failed) return tree;
    cJSON_Delete(tree);
    return NULL;
}
