// The largest text that is read, and the first that is refused.
#include "base/json.h"
#include "base/json_parse.h"
#include "base/yaml.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A text of `num` times a piece between two others; the caller frees it.
static char *repeated(const char *head, const char *piece, int num, const char *tail) {
    const size_t length = strlen(piece);
    char *text = malloc(strlen(head) + length * (size_t)num + strlen(tail) + 1), *at = text;
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    at = stpcpy(at, head);
    for (int i = 0; i < num; i++) at = stpcpy(at, piece);
    strcpy(at, tail);
    return text;
}

static void json_ends(int num, StatusCode code) {
    Arena arena = {0};
    JsonNode root;
    char *text = repeated("[", "0,", num, "0]");
    const Status status = json_parse(text, strlen(text), "t.json", &arena, &root);
    CU_ASSERT_EQUAL(status.code, code);
    if (code != STATUS_OK) CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "more than 1000000 values"));
    arena_free(&arena);
    free(text);
}

// The list itself is a value, and so is the last 0.
static void json_has_a_million_values(void) {
    json_ends(JSON_MAX_VALUES - 2, STATUS_OK);
    json_ends(JSON_MAX_VALUES - 1, STATUS_INVALID);
}

static void lines_end(int num, StatusCode code, const char *sentence) {
    Arena arena = {0};
    JsonNode *roots;
    int num_roots = 0;
    char path[] = "/tmp/meshwright-lines-XXXXXX", *text = repeated("", "1\n\n", num, "");
    const int file = mkstemp(path);
    CU_ASSERT_FATAL(file >= 0);
    CU_ASSERT_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    const Status status = json_load_lines(path, &arena, &roots, &num_roots);
    unlink(path);
    CU_ASSERT_EQUAL(status.code, code);
    if (code == STATUS_OK) CU_ASSERT_EQUAL(num_roots, num);
    if (code != STATUS_OK) CU_ASSERT_PTR_NOT_NULL(strstr(status.text, sentence));
    arena_free(&arena);
    free(text);
}

static void json_lines_have_so_many_documents(void) {
    lines_end(JSON_MAX_LINES, STATUS_OK, "");
    lines_end(JSON_MAX_LINES + 1, STATUS_INVALID,
              "line 200001, column 1: more than 100000 documents");
}

// What YAML says of `num` lines, each with its number in place of %d; "" where it reads them.
static void yaml_ends(const char *head, const char *line, int num, const char *expected) {
    char *text = malloc(strlen(head) + (size_t)num * 40 + 1), *at = stpcpy(text, head);
    char message[400] = "";
    for (int i = 0; i < num; i++) {
        const char *place = strchr(line, '%');
        at += sprintf(at, "%.*s%d%s", (int)(place - line), line, i, place + 1);
    }
    cJSON_Delete(yaml_parse_text(text, strlen(text), (YamlOptions){0}, message, sizeof message));
    CU_ASSERT_STRING_EQUAL(message, expected);
    free(text);
}

static void yaml_has_so_many_keys_anchors_and_values(void) {
    yaml_ends("", "k%: 1\n", YAML_MAX_KEYS, "");
    yaml_ends("", "k%: 1\n", YAML_MAX_KEYS + 1, "line 2001, column 1: more than 2000 keys");
    yaml_ends("", "- &a% 1\n", YAML_MAX_ANCHORS, "");
    yaml_ends("", "- &a% 1\n", YAML_MAX_ANCHORS + 1, "line 1001, column 3: more than 1000 anchors");
    yaml_ends("", "- %\n", YAML_MAX_VALUES - 1, "");
    yaml_ends("", "- %\n", YAML_MAX_VALUES, "line 200000, column 3: more than 200000 values");
}

CU_TestInfo text_limits_tests[] = {
    {"json_has_a_million_values", json_has_a_million_values},
    {"json_lines_have_so_many_documents", json_lines_have_so_many_documents},
    {"yaml_has_so_many_keys_anchors_and_values", yaml_has_so_many_keys_anchors_and_values},
    CU_TEST_INFO_NULL,
};
