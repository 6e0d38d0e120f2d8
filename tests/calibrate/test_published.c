#include "calibrate/published.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Reads rows; messages name the file t.jsonl.
static Status rows_of(const char *text, Arena *arena, PublishedCase **out, int *num_cases) {
    char path[] = "/tmp/meshwright-rows-XXXXXX";
    int file = mkstemp(path);
    CU_ASSERT_FATAL(file >= 0);
    CU_ASSERT_EQUAL(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    Status status = published_load(path, arena, out, num_cases);
    unlink(path);
    if (status.code == STATUS_OK || strncmp(status.text, path, strlen(path)) != 0) return status;
    return status_error(status.code, "t.jsonl%s", status.text + strlen(path));
}

static void assert_row_refused(const char *row, const char *sentence) {
    Arena arena = {0};
    PublishedCase *cases;
    int num_cases;
    ASSERT_REFUSED(rows_of(row, &arena, &cases, &num_cases), sentence);
    arena_free(&arena);
}

static void a_row_says_what_ran_and_what_it_took(void) {
    Arena arena = {0};
    PublishedCase *cases;
    int num_cases;
    Status status =
        rows_of("{\"id\": \"a\", \"family\": \"f\", \"source\": \"table 1\", \"gate\": false, "
                "\"scenario\": {\"schema\": 1}, "
                "\"truth\": {\"step_time_s\": 3.5, \"memory_peak_bytes\": 7e10}}\n"
                "\n"
                "{\"id\": \"b\", \"family\": \"f\", \"scenario\": {}, "
                "\"truth\": {\"mfu_frac\": 0.4}}\n",
                &arena, &cases, &num_cases);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(num_cases, 2);
    CU_ASSERT_STRING_EQUAL(cases[0].id, "a");
    CU_ASSERT_STRING_EQUAL(cases[0].source, "table 1");
    CU_ASSERT_FALSE(cases[0].stated);
    CU_ASSERT_EQUAL(cases[0].truth.step_time_s, 3.5);
    CU_ASSERT_EQUAL(cases[0].truth.memory_peak_bytes, 7e10);
    CU_ASSERT_EQUAL(cases[0].truth.memory_reserved_bytes, 0);
    CU_ASSERT_TRUE(cases[1].stated); // unless it says otherwise
    CU_ASSERT_PTR_NULL(cases[1].source);
    CU_ASSERT_EQUAL(cases[1].truth.mfu_frac, 0.4);
    CU_ASSERT_STRING_EQUAL(strchr(cases[1].scenario.file, ':'), ":3: scenario");
    arena_free(&arena);
}

#define GOOD                                                                                       \
    "{\"id\": \"a\", \"family\": \"f\", \"scenario\": {}, \"truth\": {\"step_time_s\": 1}}\n"
#define ROW(truth) "{\"id\": \"a\", \"family\": \"f\", \"scenario\": {}, \"truth\": " truth "}\n"

static void a_bad_row_is_refused_with_its_place(void) {
    assert_row_refused("", "t.jsonl: empty; expected one JSON document per line");
    assert_row_refused(GOOD "{\"id\": }\n",
                       "t.jsonl: line 2, column 8: syntax error: expected a value, "
                       "found \"}\"");
    assert_row_refused(GOOD "\n[1]\n", "t.jsonl:3: expected an object, found a list");
    assert_row_refused(GOOD "{\"family\": \"f\", \"scenario\": {}, \"truth\": {}}\n",
                       "t.jsonl:2: id: missing");
    assert_row_refused("{\"id\": \"a\", \"scenario\": {}, \"truth\": {}}\n",
                       "t.jsonl:1: family: missing");
    assert_row_refused("{\"id\": \"a\", \"family\": 7, \"scenario\": {}, \"truth\": {}}\n",
                       "t.jsonl:1: family: expected a string, found a number");
    assert_row_refused("{\"id\": \"a\", \"family\": \"f\", \"truth\": {\"step_time_s\": 1}}\n",
                       "t.jsonl:1: scenario: missing");
    assert_row_refused(
        "{\"id\": \"a\", \"family\": \"f\", \"scenario\": 1, \"truth\": {\"step_time_s\": 1}}\n",
        "t.jsonl:1: scenario: expected an object, found a number");
    assert_row_refused("{\"id\": \"a\", \"famly\": \"f\", \"scenario\": {}, \"truth\": {}}\n",
                       "t.jsonl:1: famly: unknown key; the nearest known one is \"family\"");
    assert_row_refused("{\"id\": \"a\", \"family\": \"f\", \"gate\": 1, \"scenario\": {}, "
                       "\"truth\": {\"step_time_s\": 1}}\n",
                       "t.jsonl:1: gate: expected true or false, found a number");
}

static void a_measurement_is_a_sane_number(void) {
    assert_row_refused(ROW("{}"), "t.jsonl:1: truth: has neither step_time_s nor mfu_frac");
    assert_row_refused(ROW("{\"memory_peak_bytes\": 1e10}"),
                       "t.jsonl:1: truth: has neither step_time_s nor mfu_frac");
    assert_row_refused(ROW("{\"step_time_s\": \"long\"}"),
                       "t.jsonl:1: truth.step_time_s: expected a number, found a string");
    assert_row_refused(ROW("{\"step_time_s\": 0}"),
                       "t.jsonl:1: truth.step_time_s: 0 is out of range; expected 1e-06 to 100000");
    assert_row_refused(ROW("{\"mfu_frac\": 41}"),
                       "t.jsonl:1: truth.mfu_frac: 41 is out of range; expected 1e-06 to 1");
    assert_row_refused(ROW("{\"step_time_s\": 1, \"memory_peak_bytes\": 66.5}"),
                       "t.jsonl:1: truth.memory_peak_bytes: 66.5 is out of range; expected 1000000 "
                       "to 10000000000000");
    assert_row_refused(ROW("{\"step_time_ms\": 3500}"),
                       "t.jsonl:1: truth.step_time_ms: unknown key; the nearest known one is "
                       "\"step_time_s\"");
}

static void bundled_cases_are_cited_and_listed_once(void) {
    Arena arena = {0};
    PublishedCase *cases;
    int num_cases;
    CU_ASSERT_EQUAL_FATAL(published_load_bundled(&arena, &cases, &num_cases).code, STATUS_OK);
    CU_ASSERT(num_cases >= 140 && num_cases <= 160);
    for (int i = 0; i < num_cases; i++) {
        CU_ASSERT_PTR_NOT_NULL(cases[i].source);
        CU_ASSERT_TRUE(cases[i].stated);
        for (int j = 0; j < i; j++) CU_ASSERT_STRING_NOT_EQUAL(cases[i].id, cases[j].id);
    }
    arena_free(&arena);
}

CU_TestInfo published_tests[] = {
    {"a_row_says_what_ran_and_what_it_took", a_row_says_what_ran_and_what_it_took},
    {"a_bad_row_is_refused_with_its_place", a_bad_row_is_refused_with_its_place},
    {"a_measurement_is_a_sane_number", a_measurement_is_a_sane_number},
    {"bundled_cases_are_cited_and_listed_once", bundled_cases_are_cited_and_listed_once},
    CU_TEST_INFO_NULL,
};
