#include "base/json.h"
#include "base/json_parse.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

// The document printed without white space, or the refusal.
static const char *read(const char *text, char *out, size_t size) {
    Arena arena = {0};
    JsonNode root;
    Status status = json_parse(text, strlen(text), "a.json", &arena, &root);
    if (status.code != STATUS_OK) {
        snprintf(out, size, "%s", status.text);
    } else {
        char *printed = cJSON_PrintUnformatted(root.item);
        snprintf(out, size, "%s", printed);
        cJSON_free(printed);
    }
    arena_free(&arena);
    return out;
}

#define READS(text, expected)                                                                      \
    do {                                                                                           \
        char out_[600];                                                                            \
        CU_ASSERT_STRING_EQUAL(read(text, out_, sizeof out_), expected);                           \
        if (strcmp(out_, expected) != 0) printf("%s\n  not %s\n", out_, expected);                 \
    } while (0)

static void comments_and_a_last_comma_are_read(void) {
    READS("// a job\n{\"a\": 1, // one\n \"b\": [1, 2,], /* two\n lines */ \"c\": {},}\n// end",
          "{\"a\":1,\"b\":[1,2],\"c\":{}}");
    READS("/**/[/*}*/]/*]*/", "[]");
    READS("{\"url\": \"http://a/*b*/\"}", "{\"url\":\"http://a/*b*/\"}");
    READS("[1] /* \n", "a.json: line 1, column 5: syntax error: the comment that begins here is "
                       "not closed; expected */");
    READS("[,]", "a.json: line 1, column 2: syntax error: expected a value, found \",\"");
    READS("[1,,2]", "a.json: line 1, column 4: syntax error: expected a value, found \",\"");
    READS("[1 / 2]",
          "a.json: line 1, column 4: syntax error: expected \",\" or \"]\", found \"/\"");
    READS("{\"a\": 1},", "a.json: line 1, column 9: syntax error: text after the document");
}

static void a_refusal_says_what_could_have_stood_there(void) {
    READS("{\n  \"a\": 1,\n  \"b\": ]\n}",
          "a.json: line 3, column 8: syntax error: expected a value, found \"]\"");
    READS("{\n  a: 1}",
          "a.json: line 2, column 3: syntax error: expected a key in double quotes or "
          "\"}\", found \"a\"");
    READS("{'a': 1}", "a.json: line 1, column 2: syntax error: expected a key in double quotes or "
                      "\"}\", found \"'a'\"");
    READS("{\"a\" 1}", "a.json: line 1, column 6: syntax error: expected \":\" and a value after "
                       "the key, found \"1\"");
    READS("{\"a\": 1 \"b\": 2}",
          "a.json: line 1, column 9: syntax error: expected \",\" or \"}\", found '\"'");
    READS("{\"a\": True}", "a.json: line 1, column 7: syntax error: expected a value, found "
                           "\"True\", which JSON spells true");
    READS("[-]", "a.json: line 1, column 2: syntax error: expected a number, found \"-\"");
    READS("[1, 2x]",
          "a.json: line 1, column 6: syntax error: expected \",\" or \"]\", found \"x\"");
}

static void a_text_that_is_cut_off_says_what_is_open(void) {
    READS("{\"a\": [1,\n 2", "a.json: line 2, column 3: syntax error: the text ends here; expected "
                             "\",\" or \"]\", which closes the list that begins in line 1");
    READS("{\n\"a\":",
          "a.json: line 2, column 5: syntax error: the text ends here; expected a value");
    READS("{\"a\"",
          "a.json: line 1, column 5: syntax error: the text ends here; expected \":\" and "
          "a value after the key");
    READS("{",
          "a.json: line 1, column 2: syntax error: the text ends here; expected a key in double "
          "quotes or \"}\"");
    READS("{\"a\": \"b\\",
          "a.json: line 1, column 7: syntax error: the text ends inside the string "
          "that begins here; expected its closing quote");
}

static void strings_are_read_with_their_escapes(void) {
    READS("[\"\\u00e4\\ud83d\\ude00\\n\\\"\\/\"]", "[\"\xC3\xA4\xF0\x9F\x98\x80\\n\\\"/\"]");
    READS("[\"\\q\"]", "a.json: line 1, column 3: syntax error: expected one of \\\" \\\\ \\/ \\b "
                       "\\f \\n \\r \\t \\u (a backslash itself is \\\\)");
    READS("[\"\\ud83d\"]",
          "a.json: line 1, column 3: syntax error: expected both halves of a surrogate pair");
    READS("[\"\\u0000\"]", "a.json: line 1, column 3: syntax error: expected four hexadecimal "
                           "digits (not 0000) after \\u");
}

// Python's json module writes these words; they are no numbers for whoever reads the key.
static void infinity_is_only_legal_where_nobody_reads_it(void) {
    Arena arena = {0};
    JsonNode root;
    const char *text = "{\"a\": [0.0, Infinity, -Infinity, NaN], \"b\": NaN, \"c\": 1}";
    CU_ASSERT_EQUAL_FATAL(json_parse(text, strlen(text), "a.json", &arena, &root).code, STATUS_OK);
    JsonNode list = json_get(&root, "a"), first = json_at(&list, 1), b = json_get(&root, "b");
    double value;
    int whole;
    ASSERT_REFUSED(json_read_double(&first, 0, 1e300, &value),
                   "a.json: a[1]: expected a number, found Infinity");
    ASSERT_REFUSED(json_read_int(&b, 0, 1, &whole),
                   "a.json: b: expected a whole number, found NaN");
    CU_ASSERT_FALSE(cJSON_IsNumber(b.item));
    READS("[Infinityx]",
          "a.json: line 1, column 2: syntax error: expected a value, found \"Infinityx\"");
    arena_free(&arena);
}

static void numbers_are_read_as_the_c_library_reads_them(void) {
    READS("[-1.5e3, 0, 1E+2, 123456789012]", "[-1500,0,100,123456789012]");
    READS("{\"a\": [0, 1e999]}", "a.json: a[1]: the number is beyond what a double holds");
}

// Octal in JavaScript, decimal elsewhere.
static void a_leading_zero_is_refused(void) {
    READS("[010]", "a.json: line 1, column 2: syntax error: expected a number that does not begin "
                   "with 0, found \"010\"");
    READS("{\"a\": -00.5}", "a.json: line 1, column 7: syntax error: expected a number that does "
                            "not begin with 0, found \"-00.5\"");
    READS("[0, -0.5, 0e1, 100]", "[0,-0.5,0,100]");
}

CU_TestInfo json_parse_tests[] = {
    {"comments_and_a_last_comma_are_read", comments_and_a_last_comma_are_read},
    {"a_refusal_says_what_could_have_stood_there", a_refusal_says_what_could_have_stood_there},
    {"a_text_that_is_cut_off_says_what_is_open", a_text_that_is_cut_off_says_what_is_open},
    {"strings_are_read_with_their_escapes", strings_are_read_with_their_escapes},
    {"infinity_is_only_legal_where_nobody_reads_it", infinity_is_only_legal_where_nobody_reads_it},
    {"numbers_are_read_as_the_c_library_reads_them", numbers_are_read_as_the_c_library_reads_them},
    {"a_leading_zero_is_refused", a_leading_zero_is_refused},
    CU_TEST_INFO_NULL,
};
