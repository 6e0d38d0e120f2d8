// libyaml's events, put together.
#include "import/yaml.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { MAX_DEPTH = 100, MAX_KEYS = 5000 };

typedef struct {
    yaml_parser_t parser;
    char *message;
    size_t message_size;
    bool failed;
} Reader;

static void reader_fail(Reader *reader, yaml_mark_t mark, const char *what) {
    if (!reader->failed)
        snprintf(reader->message, reader->message_size, "line %zu, column %zu: %s", mark.line + 1,
                 mark.column + 1, what);
    reader->failed = true;
}

static bool event_next(Reader *reader, yaml_event_t *event) {
    if (!reader->failed && yaml_parser_parse(&reader->parser, event)) return true;
    const char *problem = reader->parser.problem ? reader->parser.problem : "is no YAML";
    reader_fail(reader, reader->parser.problem_mark, problem);
    return false;
}

static bool word_in(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcmp(text, *words) == 0) return true;
    return false;
}

static cJSON *plain_scalar(const char *text) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    if (word_in(text, nulls)) return cJSON_CreateNull();
    if (word_in(text, yes)) return cJSON_CreateTrue();
    if (word_in(text, no)) return cJSON_CreateFalse();
    char *end;
    double number = strtod(text, &end);
    bool digits = strspn(text, "+-.0123456789eE_") == strlen(text) && strpbrk(text, "0123456789");
    if (digits && *end == '\0' && isfinite(number)) return cJSON_CreateNumber(number);
    return cJSON_CreateString(text);
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

static cJSON *table_read(Reader *reader, int depth) {
    cJSON *table = cJSON_CreateObject();
    yaml_event_t key, value;
    int num_keys = 0;
    while (event_next(reader, &key)) {
        bool last = key.type == YAML_MAPPING_END_EVENT;
        if (num_keys++ > MAX_KEYS) reader_fail(reader, key.start_mark, "too many keys");
        if (!last && key.type != YAML_SCALAR_EVENT)
            reader_fail(reader, key.start_mark, "a key that is no scalar");
        if (!last && event_next(reader, &value)) {
            const char *name = (const char *)key.data.scalar.value;
            if (cJSON_GetObjectItemCaseSensitive(table, name))
                reader_fail(reader, key.start_mark, "a key that stands there twice");
            cJSON_AddItemToObject(table, name, node_read(reader, &value, depth));
            yaml_event_delete(&value);
        }
        yaml_event_delete(&key);
        if (last) break;
    }
    return table;
}

static cJSON *node_read(Reader *reader, const yaml_event_t *event, int depth) {
    if (depth > MAX_DEPTH) reader_fail(reader, event->start_mark, "is nested too deep");
    if (reader->failed) return cJSON_CreateNull();
    switch (event->type) {
    case YAML_SCALAR_EVENT: {
        const char *text = (const char *)event->data.scalar.value;
        bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        return plain ? plain_scalar(text) : cJSON_CreateString(text);
    }
    case YAML_SEQUENCE_START_EVENT:
        return list_read(reader, depth + 1);
    case YAML_MAPPING_START_EVENT:
        return table_read(reader, depth + 1);
    case YAML_ALIAS_EVENT:
        reader_fail(reader, event->start_mark, "an alias (*NAME) is not supported");
        return cJSON_CreateNull();
    default:
        reader_fail(reader, event->start_mark, "expected a value");
        return cJSON_CreateNull();
    }
}

cJSON *yaml_parse_text(const char *text, char *message, size_t message_size) {
    Reader reader = {.message = message, .message_size = message_size};
    cJSON *tree = NULL;
    yaml_event_t event;
    if (!yaml_parser_initialize(&reader.parser)) {
        snprintf(message, message_size, "line 1, column 1: out of memory");
        return NULL;
    }
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, strlen(text));
    while (!tree && event_next(&reader, &event)) {
        bool start =
            event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT;
        if (event.type == YAML_STREAM_END_EVENT)
            reader_fail(&reader, event.start_mark, "has no document");
        else if (!start)
            tree = node_read(&reader, &event, 0);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&reader.parser);
    if (!reader.failed) return tree;
    cJSON_Delete(tree);
    return NULL;
}
