#include "base/yaml.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const YamlOptions STRICT = {.strict = true};

static const char *read(const char *text, char *out, size_t size) {
    char message[400];
    cJSON *tree = yaml_parse_text(text, strlen(text), STRICT, message, sizeof message);
    char *printed = tree ? cJSON_PrintUnformatted(tree) : NULL;
    snprintf(out, size, "%s", printed ? printed : message);
    cJSON_free(printed);
    cJSON_Delete(tree);
    return out;
}

#define READS(text, expected)                                                                      \
    do {                                                                                           \
        char out_[600];                                                                            \
        CU_ASSERT_STRING_EQUAL(read(text, out_, sizeof out_), expected);                           \
        if (strcmp(out_, expected) != 0) printf("%s\n  not %s\n", out_, expected);                 \
    } while (0)

static void a_document_becomes_a_tree(void) {
    READS("# a job\nschema: 1\ntraining:\n  seq_len: 8192\n  lr: 1e-4\nlist: [a, 2, true]\n",
          "{\"schema\":1,\"training\":{\"seq_len\":8192,\"lr\":0.0001},\"list\":[\"a\",2,true]}");
    READS("a: null\nb: ~\nc:\nd: \"1\"\ne: .inf\nf: -.inf\ng: 70GB\n",
          "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"1\",\"e\":Infinity,\"f\":-Infinity,\"g\":"
          "\"70GB\"}");
}

// Norway's country code is a text in YAML 1.2, and so are yes, on and off.
static void words_of_yaml_1_1_stay_texts(void) {
    READS("[no, yes, on, off, True, FALSE]", "[\"no\",\"yes\",\"on\",\"off\",true,false]");
    READS("[1:30, 2024-01-01, !!str 5]", "[\"1:30\",\"2024-01-01\",\"5\"]");
}

static void numbers_that_have_two_readings_are_refused(void) {
    READS("a: 010\n", "line 1, column 4: 010 is 8 in YAML 1.1 (octal) and 10 in YAML 1.2; write "
                      "which is meant");
    READS("a: 1_000\n", "line 1, column 4: 1_000 is a number in YAML 1.1 and a text in YAML 1.2; "
                        "write it without \"_\"");
    READS("[0, 0.5, 08, \"010\"]", "[0,0.5,8,\"010\"]");
}

static void aliases_are_copies_and_merges_give_way(void) {
    READS("a: &x {p: 1, q: [2]}\nb: *x\n", "{\"a\":{\"p\":1,\"q\":[2]},\"b\":{\"p\":1,\"q\":[2]}}");
    READS("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  p: 3\n",
          "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":3,\"q\":2}}");
    READS("a: &x {p: 1}\nb: &y {p: 2, r: 2}\nc: {<<: [*x, *y]}\n",
          "{\"a\":{\"p\":1},\"b\":{\"p\":2,\"r\":2},\"c\":{\"p\":1,\"r\":2}}");
    READS("b: {<<: &x {p: 1}}\nc: *x\n", "{\"b\":{\"p\":1},\"c\":{\"p\":1}}");
    READS("a: *x\n", "line 1, column 4: no anchor &x stands before this alias");
    READS("a: &x [*x]\n", "line 1, column 8: *x stands inside its own anchor");
    READS("b: {<<: 1}\n",
          "line 1, column 5: << merges mappings; expected an alias of one or a list");
}

// Nine anchors of nine aliases each would write out 9^9 values.
static void aliases_cannot_explode(void) {
    char text[2000] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n", out[600];
    for (int i = 1; i < 9; i++) {
        char line[200];
        snprintf(line, sizeof line, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
                 i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(text, line);
    }
    read(text, out, sizeof out);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "aliases write out more than 200000 values"));
}

// Each anchor nests the one before: 100,000 levels in a text of 2 MB.
// What is said of so many aliases of 1 MiB each; alias writes one with its number.
static void text_of_a_megabyte(int num, const char *alias, char *out, size_t size) {
    enum { TEXT_BYTES = 1 << 20 };
    char *text = malloc(TEXT_BYTES + 64 + 20 * (size_t)num), *end = text;
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    end = stpcpy(end, "a: &a {k: ");
    memset(end, 'x', TEXT_BYTES - 2); // with both keys 1 MiB
    end = stpcpy(end + TEXT_BYTES - 2, "}\n");
    for (int i = 0; i < num; i++) end += sprintf(end, alias, i);
    char message[400] = "";
    cJSON *tree = yaml_parse_text(text, strlen(text), STRICT, message, sizeof message);
    snprintf(out, size, "%s", tree ? "read" : message);
    cJSON_Delete(tree);
    free(text);
}

static void aliases_of_long_texts_cannot_explode(void) {
    char out[400];
    text_of_a_megabyte(16, "b%d: *a\n", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out, "read");
    text_of_a_megabyte(17, "b%d: *a\n", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(out,
                           "line 18, column 6: with *a aliases write out more than 16 MiB of text");
    text_of_a_megabyte(17, "b%d: {<<: *a}\n", out, sizeof out);
    CU_ASSERT_STRING_EQUAL(
        out, "line 18, column 11: with *a aliases write out more than 16 MiB of text");
}

static void a_nul_is_refused(void) {
    READS("a: \"b\\0c\"\n", "line 1, column 4: a text with a NUL byte (\\0)");
    READS("\"a\\0b\": 1\n", "line 1, column 1: a text with a NUL byte (\\0)");
    READS("a: \"b\\e\"\n", "{\"a\":\"b\\u001b\"}");
}

static void anchors_cannot_nest_without_end(void) {
    enum { NUM = 9000, LINE = 40 };
    char *text = malloc((size_t)NUM * LINE), *at = text, out[600];
    at += sprintf(at, "a0: &a0 [x]\n");
    for (int i = 1; i < NUM; i++) at += sprintf(at, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    read(text, out, sizeof out);
    CU_ASSERT_PTR_NOT_NULL(strstr(out, "nests deeper than 100 levels"));
    memset(text, '[', 5000);
    text[5000] = '\0';
    CU_ASSERT_STRING_EQUAL(read(text, out, sizeof out),
                           "line 1, column 102: nested deeper than 100 levels");
    free(text);
}

static void refusals_name_line_and_column(void) {
    READS("a: 1\n\tb: 2\n", "line 2, column 1: syntax error: a tab; YAML indents by spaces");
    READS("a: 1\na: 2\n", "line 2, column 1: the key a stands here twice");
    READS("a: [1, 2\n", "line 2, column 1: syntax error: did not find expected ',' or ']' while "
                        "parsing a flow sequence that begins in line 1");
    READS("[a, b]: 1\n", "line 1, column 1: a key that is no scalar");
    READS("a: 1\n---\nb: 2\n", "line 2, column 1: a second document begins here; expected one");
    READS("", "line 1, column 1: has no document");
}

CU_TestInfo yaml_tests[] = {
    {"a_document_becomes_a_tree", a_document_becomes_a_tree},
    {"words_of_yaml_1_1_stay_texts", words_of_yaml_1_1_stay_texts},
    {"numbers_that_have_two_readings_are_refused", numbers_that_have_two_readings_are_refused},
    {"aliases_are_copies_and_merges_give_way", aliases_are_copies_and_merges_give_way},
    {"aliases_cannot_explode", aliases_cannot_explode},
    {"aliases_of_long_texts_cannot_explode", aliases_of_long_texts_cannot_explode},
    {"a_nul_is_refused", a_nul_is_refused},
    {"anchors_cannot_nest_without_end", anchors_cannot_nest_without_end},
    {"refusals_name_line_and_column", refusals_name_line_and_column},
    CU_TEST_INFO_NULL,
};
