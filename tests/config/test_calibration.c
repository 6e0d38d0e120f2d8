#include "config/job/calibration.h"
#include "config/job/scenario.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FACTORS                                                                                    \
    "{\"products\": 1.1, \"attention\": 1, \"memory\": 1, \"host\": 2, \"inside\": 1, "            \
    "\"across\": "                                                                                 \
    "1, \"optimizer\": 1}"
#define SPREADS                                                                                    \
    "{\"products\": 0.1, \"attention\": 0.2, \"memory\": 0, \"host\": 0.3, \"inside\": 0.2, "      \
    "\"across\": 0.4, \"optimizer\": 0.2}"
#define REST                                                                                       \
    "\"step_spread\": 0.05, \"inherited_spread\": 0.04, \"foreign_spread\": 0.08, "                \
    "\"octave_spread\": 0.3, \"num_nodes\": 64"
#define DOCUMENT(factors, more)                                                                    \
    "{\"schema\": 1, \"title\": \"t\", \"factor\": " factors ", \"spread\": " SPREADS              \
    ", \"run_spread\": " SPREADS ", " REST more "}"
#define MEASURED(gpu, stack) ", \"measured\": {}, \"gpu\": \"" gpu "\", \"stack\": \"" stack "\""
#define SOURCES ", \"sources\": {\"spread\": \"made up\"}"
#define JOB                                                                                        \
    "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": \"dgx-h100:4\", \"training\": "     \
    "{\"seq_len\": 8192, \"global_batch\": 128}, \"calibration\": \"%s\"}"

// A scenario whose key `calibration` names a file with this text; the file's name is replaced by
// FILE in a refusal.
static Status scenario_with(const char *text, Arena *arena, Scenario *out) {
    char path[] = "/tmp/meshwright_calibration_XXXXXX";
    int descriptor = mkstemp(path);
    CU_ASSERT_FATAL(descriptor >= 0);
    CU_ASSERT_EQUAL(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    Status status = scenario_of(arena_printf(arena, JOB, path), arena, out);
    unlink(path);
    if (strncmp(status.text, path, strlen(path)) == 0)
        memmove(status.text, status.text + strlen(path), strlen(status.text + strlen(path)) + 1);
    return status;
}

static void factors_and_spreads_are_read(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = scenario_with(DOCUMENT(FACTORS, SOURCES), &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const Calibration *c = scenario.calibration;
    CU_ASSERT_EQUAL(c->factor[PART_PRODUCTS], 1.1);
    CU_ASSERT_EQUAL(c->factor[PART_HOST], 2);
    CU_ASSERT_DOUBLE_EQUAL(c->covariance[PART_ACROSS][PART_ACROSS], 0.16, 1e-15);
    CU_ASSERT_EQUAL(c->covariance[PART_PRODUCTS][PART_ACROSS], 0);
    CU_ASSERT_EQUAL(c->step_spread, 0.05);
    CU_ASSERT_EQUAL(c->num_nodes, 64);
    arena_free(&arena);
}

#define ROW0 "[1, 0.5, 0, 0, 0, 0, 0]"
#define ROW1 "[0.5, 1, 0, 0, 0, 0, 0]"
#define ROWS                                                                                       \
    "[0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1, 0], " \
    "[0, 0, 0, 0, 0, 0, 1]"
#define CORRELATED(row0, row1) SOURCES ", \"correlation\": [" row0 ", " row1 ", " ROWS "]"

// 0.5 x 0.1 x 0.2.
static void correlations_join_the_spreads(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = scenario_with(DOCUMENT(FACTORS, CORRELATED(ROW0, ROW1)), &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_DOUBLE_EQUAL(scenario.calibration->covariance[0][1], 0.01, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(scenario.calibration->covariance[1][0], 0.01, 1e-15);
    arena_free(&arena);
}

static void a_document_reads_what_it_wrote(void) {
    Arena arena = {0};
    Scenario first, second;
    Status status = scenario_with(DOCUMENT(FACTORS, CORRELATED(ROW0, ROW1)), &arena, &first);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    cJSON *tree = calibration_to_json(first.calibration);
    cJSON_AddObjectToObject(tree, "measured");
    cJSON_AddStringToObject(tree, "gpu", "h100-sxm-80g");
    cJSON_AddStringToObject(tree, "stack", "megatron-core");
    char *text = cJSON_PrintUnformatted(tree);
    CU_ASSERT_EQUAL_FATAL(scenario_with(text, &arena, &second).code, STATUS_OK);
    for (int i = 0; i < NUM_PARTS * NUM_PARTS; i++)
        CU_ASSERT_DOUBLE_EQUAL(first.calibration->covariance[i / NUM_PARTS][i % NUM_PARTS],
                               second.calibration->covariance[i / NUM_PARTS][i % NUM_PARTS], 1e-9);
    CU_ASSERT_EQUAL(second.calibration->factor[PART_HOST], 2);
    cJSON_free(text);
    cJSON_Delete(tree);
    arena_free(&arena);
}

static void bad_documents_are_refused(void) {
    static const char *const CASES[][2] = {
        {DOCUMENT(FACTORS, ""),
         ": has neither measured nor sources; expected where its numbers are from"},
        {DOCUMENT(FACTORS, ", \"measured\": {}, \"stack\": \"megatron-core\""),
         ": gpu: missing; expected the name of the GPU that was measured"},
        {DOCUMENT(FACTORS, ", \"measured\": {}, \"gpu\": \"h100-sxm-80g\""),
         ": stack: missing; expected the stack that was measured"},
        {DOCUMENT("{\"products\": 1}", SOURCES), ": factor.attention: missing"},
        {DOCUMENT(FACTORS, SOURCES ", \"sprad\": 1"),
         ": sprad: unknown key; the nearest known one is \"spread\""},
        {DOCUMENT("{\"products\": 0}", SOURCES),
         ": factor.products: 0 is out of range; expected 0.01 to 100"},
        {DOCUMENT(FACTORS, SOURCES ", \"correlation\": []"),
         ": correlation: 0 rows; expected 7, one for each part"},
        {DOCUMENT(FACTORS, CORRELATED("[1, 0.5]", ROW1)),
         ": correlation[0]: 2 entries; expected 7, one for each part"},
        {DOCUMENT(FACTORS, CORRELATED("[1, 0.4, 0, 0, 0, 0, 0]", ROW1)),
         ": correlation[1][0]: differs from [0][1]; expected a symmetric matrix"},
        {DOCUMENT(FACTORS, CORRELATED("[0.9, 0.5, 0, 0, 0, 0, 0]", ROW1)),
         ": correlation[0][0]: expected 1 on the diagonal"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        ASSERT_REFUSED(scenario_with(CASES[i][0], &arena, &scenario), CASES[i][1]);
        arena_free(&arena);
    }
}

static Status check_of(const char *text, const char *gpu, const char *stack, const char *version,
                       Arena *arena) {
    Scenario scenario;
    JsonNode root;
    TRY(scenario_with(text, arena, &scenario));
    Calibration calibration = *scenario.calibration;
    calibration.path = "run.json";
    static const char JOB_TEXT[] = "{\"calibration\": \"run.json\"}";
    TRY(json_parse(JOB_TEXT, strlen(JOB_TEXT), "job.json", arena, &root));
    JsonNode value = json_get(&root, "calibration");
    return calibration_check(&value, &calibration, gpu, stack, version);
}

// The scenario's GPU, stack and release are the run's, or the document is of no run.
static void a_calibration_holds_for_its_machine_and_stack(void) {
    static const char RUN[] = DOCUMENT(FACTORS, MEASURED("h100-sxm-80g", "megatron-core"));
    static const char ANY[] = DOCUMENT(FACTORS, SOURCES);
    static const char *const CASES[][4] = {
        {"a100-sxm-80g", "megatron-core", NULL,
         "a100-sxm-80g with megatron-core of no stated version"},
        {"h100-sxm-80g", "torchtitan", NULL, "h100-sxm-80g with torchtitan of no stated version"},
        {"h100-sxm-80g", "megatron-core", "26.02", "h100-sxm-80g with megatron-core 26.02"},
    };
    Arena arena = {0};
    for (int i = 0; i < 3; i++) {
        const char *const *c = CASES[i];
        ASSERT_REFUSED(check_of(RUN, c[0], c[1], c[2], &arena),
                       arena_printf(&arena,
                                    "job.json: calibration: run.json was measured on h100-sxm-80g "
                                    "with megatron-core of no stated version, but this scenario "
                                    "has %s; expected a run of the same GPU and stack",
                                    c[3]));
        CU_ASSERT_EQUAL(check_of(ANY, c[0], c[1], c[2], &arena).code, STATUS_OK);
    }
    CU_ASSERT_EQUAL(check_of(RUN, "h100-sxm-80g", "megatron-core", NULL, &arena).code, STATUS_OK);
    arena_free(&arena);
}

// Of three numbers two cannot each differ from the third and agree: 1, -0.9, -0.9; -0.9.
static void an_impossible_correlation_is_refused(void) {
    Arena arena = {0};
    Scenario scenario;
    const char *text = DOCUMENT(
        FACTORS, SOURCES ", \"correlation\": [[1, -0.9, -0.9, 0, 0, 0, 0], [-0.9, 1, -0.9, 0, 0, "
                         "0, 0], [-0.9, -0.9, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, "
                         "1, 0, 0], [0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 1]]");
    ASSERT_REFUSED(scenario_with(text, &arena, &scenario),
                   ": correlation: is not a correlation: it has a negative eigenvalue");
    arena_free(&arena);
}

static void a_missing_file_is_refused(void) {
    Arena arena = {0};
    Scenario scenario;
    ASSERT_REFUSED(scenario_of(arena_printf(&arena, JOB, "no/such.json"), &arena, &scenario),
                   "job.json: calibration: no/such.json cannot be read: No such file or directory");
    arena_free(&arena);
}

static void the_bundled_one_changes_no_prediction(void) {
    Arena arena = {0};
    const Calibration *c;
    CU_ASSERT_EQUAL_FATAL(calibration_load_default(&arena, &c).code, STATUS_OK);
    for (int k = 0; k < NUM_PARTS; k++) CU_ASSERT_EQUAL(c->factor[k], 1);
    arena_free(&arena);
}

CU_TestInfo calibration_tests[] = {
    {"factors_and_spreads_are_read", factors_and_spreads_are_read},
    {"correlations_join_the_spreads", correlations_join_the_spreads},
    {"a_document_reads_what_it_wrote", a_document_reads_what_it_wrote},
    {"a_calibration_holds_for_its_machine_and_stack",
     a_calibration_holds_for_its_machine_and_stack},
    {"bad_documents_are_refused", bad_documents_are_refused},
    {"an_impossible_correlation_is_refused", an_impossible_correlation_is_refused},
    {"a_missing_file_is_refused", a_missing_file_is_refused},
    {"the_bundled_one_changes_no_prediction", the_bundled_one_changes_no_prediction},
    CU_TEST_INFO_NULL,
};
