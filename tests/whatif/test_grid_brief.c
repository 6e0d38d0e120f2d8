// A report of a long grid says the same of the document without what it does not show.
#include "report/answer_sections.h"
#include "report/summary.h"
#include "tests/support.h"
#include "whatif/whatif.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64}"

static char *report_text(const cJSON *tree, Arena *arena) {
    const Answer grid = {.kind = ANSWER_GRID, .root = {.file = "whatif", .item = tree}};
    Document document = document_new("grid");
    document_say(&document, summary_of_answer(&grid, false, arena));
    CU_ASSERT_EQUAL(grid_sections(&document, &grid, arena).code, STATUS_OK);
    char *text = cJSON_Print(document.root);
    cJSON_Delete(document.root);
    return text;
}

static WhatifResult ran(const char *first, const char *second, Arena *arena) {
    Scenario *scenario = ARENA_NEW(arena, Scenario);
    WhatifAxis *axes = ARENA_ARRAY(arena, 2, WhatifAxis);
    WhatifResult result;
    const char *job = scenario_text(arena, "\"llama-3.1-8b\"", "\"dgx-a100-40g:1\"", TRAINING,
                                    "{\"tp\": 4, \"micro_batch\": 1, \"recompute\": \"full\"}");
    CU_ASSERT_EQUAL_FATAL(scenario_of(job, arena, scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(whatif_parse_axis(first, arena, &axes[0]).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(whatif_parse_axis(second, arena, &axes[1]).code, STATUS_OK);
    const WhatifOptions options = {.num_threads = 2};
    CU_ASSERT_EQUAL_FATAL(whatif_run(scenario, axes, 2, &options, arena, &result).code, STATUS_OK);
    CU_ASSERT(result.num_points > SECTION_MAX_ROWS);
    return result;
}

// The report of a grid of two axes, which has `sentence`.
static void reported_alike(const char *first, const char *second, const char *sentence) {
    Arena arena = {0};
    const WhatifResult result = ran(first, second, &arena);
    cJSON *whole = whatif_to_json(&result);
    cJSON *brief = whatif_to_brief_json(&result, SECTION_MAX_ROWS);
    char *texts[2] = {report_text(whole, &arena), report_text(brief, &arena)};
    CU_ASSERT_STRING_EQUAL(texts[0], texts[1]);
    CU_ASSERT_PTR_NOT_NULL(strstr(texts[0], sentence));
    for (int i = 0; i < 2; i++) cJSON_free(texts[i]);
    cJSON_Delete(whole);
    cJSON_Delete(brief);
    arena_free(&arena);
}

static void figures_of_all_points_are_told(void) {
    // The best comes behind the rows that are shown; some points are no plan, some do not fit.
    reported_alike("training.seq_len=65536,32768,4096", "cluster.price_usd_per_gpu_hour=1..9:+0.01",
                   "with training.seq_len 4096");
    reported_alike("parallel.tp=3,1,4,8", "cluster.price_usd_per_gpu_hour=1..9:+0.02",
                   "with parallel.tp 4");
    // Of prices alone the step stays as it is, which no row behind the first thousand changes.
    reported_alike("cluster.price_usd_per_gpu_hour=1..9:+0.007", "training.compile=true",
                   "Cost over");
    reported_alike("parallel.recompute=full,none", "cluster.price_usd_per_gpu_hour=1..9:+0.007",
                   "Step time over");
}

static void none_fits(void) {
    reported_alike("training.seq_len=1048576", "cluster.price_usd_per_gpu_hour=1..9:+0.007",
                   "Of the changes that were asked none fits.");
}

// Written from its tree, and point by point from what memory does not hold.
static void a_long_document_is_that_of_its_tree(void) {
    Arena arena = {0};
    const WhatifResult result =
        ran("parallel.tp=2,3,4,8", "cluster.price_usd_per_gpu_hour=1..5:+1e-3", &arena);
    size_t num_bytes = 0;
    for (int64_t i = 0; i < result.num_points; i++)
        num_bytes += result.points[i].answer ? strlen(result.points[i].answer) : 0;
    CU_ASSERT(num_bytes > SPILL_MEMORY_BYTES * 10 / 9);
    FILE *streams[2] = {tmpfile(), tmpfile()};
    cJSON *whole = whatif_to_json(&result), *frame = whatif_to_frame(&result);
    const JsonDocument document = whatif_document(&result, frame);
    CU_ASSERT_EQUAL(json_write(whole, streams[0]).code, STATUS_OK);
    CU_ASSERT_EQUAL(json_document_write(&document, streams[1]).code, STATUS_OK);
    CU_ASSERT_EQUAL(ftell(streams[0]), ftell(streams[1]));
    for (int i = 0; i < 2; i++) rewind(streams[i]);
    int64_t num_same = 0;
    for (int c; (c = getc_unlocked(streams[0])) == getc_unlocked(streams[1]) && c != EOF;)
        num_same++;
    CU_ASSERT_EQUAL(num_same, ftell(streams[0]));
    CU_ASSERT(feof(streams[0]) && feof(streams[1]));
    for (int i = 0; i < 2; i++) fclose(streams[i]);
    cJSON_Delete(whole);
    cJSON_Delete(frame);
    arena_free(&arena);
}

CU_TestInfo grid_brief_tests[] = {
    {"figures_of_all_points_are_told", figures_of_all_points_are_told},
    {"none_fits", none_fits},
    {"a_long_document_is_that_of_its_tree", a_long_document_is_that_of_its_tree},
    CU_TEST_INFO_NULL,
};
