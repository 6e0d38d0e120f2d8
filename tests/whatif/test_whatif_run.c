#include "whatif/whatif.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define TRAINING "{\"seq_len\": 4096, \"global_batch\": 64}"
#define PARALLEL "{\"tp\": 4, \"pp\": 2, \"dp\": 2, \"micro_batch\": 1, \"recompute\": \"full\"}"

static Scenario opened(const char *parallel, Arena *arena) {
    Scenario scenario = {0};
    Status status =
        scenario_of(scenario_text(arena, "\"llama-3.1-8b\"", "\"dgx-h100:2\"", TRAINING, parallel),
                    arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return scenario;
}

// Runs up to two axes.
static Status run(const char *parallel, const char *first, const char *second, bool replan,
                  Arena *arena, WhatifResult *out) {
    Scenario *scenario = ARENA_NEW(arena, Scenario);
    *scenario = opened(parallel, arena);
    WhatifAxis *axes = ARENA_ARRAY(arena, 2, WhatifAxis);
    TRY(whatif_parse_axis(first, arena, &axes[0]));
    if (second) TRY(whatif_parse_axis(second, arena, &axes[1]));
    WhatifOptions options = {.replan = replan, .num_threads = 2};
    return whatif_run(scenario, axes, second ? 2 : 1, &options, arena, out);
}

static WhatifResult ran(const char *parallel, const char *first, const char *second, bool replan,
                        Arena *arena) {
    WhatifResult result = {0};
    Status status = run(parallel, first, second, replan, arena, &result);
    if (status.code != STATUS_OK) fprintf(stderr, "%s\n", status.text);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return result;
}

static double value(const WhatifResult *result, int64_t point, int axis) {
    return whatif_value(result->axes, result->num_axes, point, axis)->valuedouble;
}

// A degree of a point's plan.
static double degree(const WhatifPoint *point, const char *name) {
    cJSON *answer = cJSON_Parse(point->answer);
    const cJSON *parallel = cJSON_GetObjectItemCaseSensitive(answer, "parallel");
    const double number = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(parallel, name));
    cJSON_Delete(answer);
    return number;
}

static void the_unchanged_point_is_the_estimate(void) {
    Arena arena = {0};
    Scenario scenario = opened(PARALLEL, &arena);
    Plan plan;
    Estimate estimate;
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(estimate_plan(&scenario, &plan, &arena, &estimate, NULL).code, STATUS_OK);
    static const char *const SAME[] = {"cluster.num_gpus=16", "training.seq_len=4096",
                                       "parallel.tp=4",       "model.num_hidden_layers=32",
                                       "model=llama-3.1-8b",  "cluster=dgx-h100:2"};
    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++) {
        WhatifResult result = ran(PARALLEL, SAME[i], NULL, false, &arena);
        CU_ASSERT_EQUAL(result.points[0].code, STATUS_OK);
        CU_ASSERT_EQUAL(result.points[0].figures.step_time_s, estimate.step_time_s);
    }
    arena_free(&arena);
}

static void the_last_axis_varies_fastest(void) {
    Arena arena = {0};
    WhatifResult result =
        ran(PARALLEL, "cluster.num_gpus=16,32", "training.seq_len=2048,4096,8192", false, &arena);
    CU_ASSERT_EQUAL(result.num_points, 6);
    CU_ASSERT_EQUAL(value(&result, 1, 0), 16);
    CU_ASSERT_EQUAL(value(&result, 1, 1), 4096);
    CU_ASSERT_EQUAL(value(&result, 3, 0), 32);
    CU_ASSERT_EQUAL(value(&result, 3, 1), 2048);
    // Derived: 32 / (4 x 2), though the scenario has 2.
    CU_ASSERT_EQUAL(degree(&result.points[3], "dp"), 4);
    for (int i = 0; i < 6; i++) CU_ASSERT_EQUAL(result.points[i].code, STATUS_OK);
    // Twice the GPUs: faster. Twice the tokens: slower.
    CU_ASSERT(result.points[3].figures.step_time_s < result.points[0].figures.step_time_s);
    CU_ASSERT(result.points[1].figures.step_time_s > result.points[0].figures.step_time_s);
    arena_free(&arena);
}

static void a_refused_point_is_an_entry(void) {
    Arena arena = {0};
    WhatifResult result = ran(PARALLEL, "parallel.tp=4,3,x", NULL, false, &arena);
    CU_ASSERT_EQUAL(result.points[0].code, STATUS_OK);
    CU_ASSERT_EQUAL(result.points[1].code, STATUS_INVALID);
    CU_ASSERT_PTR_NULL(result.points[1].answer);
    CU_ASSERT_STRING_EQUAL(result.points[1].message,
                           "job.json: parallel: tp 3 x cp 1 x pp 2 = 6 does not divide num_gpus "
                           "16; num_gpus 12 would be filled, or idle_gpus 4");
    CU_ASSERT_EQUAL(result.points[2].code, STATUS_INVALID);
    arena_free(&arena);
}

static void a_point_that_does_not_fit_still_has_an_answer(void) {
    Arena arena = {0};
    WhatifResult result =
        ran("{\"tp\": 8, \"micro_batch\": 1}", "model=llama-3.1-405b", NULL, false, &arena);
    CU_ASSERT_EQUAL(result.points[0].code, STATUS_NO);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.points[0].answer);
    CU_ASSERT_PTR_NOT_NULL(strstr(result.points[0].answer, "\"fits\":false"));
    CU_ASSERT_EQUAL(strncmp(result.points[0].message, "does not fit: needs ", 20), 0);
    arena_free(&arena);
}

static void replanning_is_never_slower_than_keeping(void) {
    Arena arena = {0};
    WhatifResult kept = ran(PARALLEL, "cluster.num_gpus=16,32", NULL, false, &arena);
    WhatifResult planned = ran(NULL, "cluster.num_gpus=16,32", NULL, true, &arena);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(planned.points[i].code, STATUS_OK);
        CU_ASSERT(planned.points[i].figures.step_time_s <= kept.points[i].figures.step_time_s);
    }
    arena_free(&arena);
}

static void replanning_a_plan_frees_it(void) {
    Arena arena = {0};
    Scenario scenario = opened(PARALLEL, &arena), plan_scenario;
    cJSON *provenance = cJSON_CreateObject();
    Plan plan;
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
    cJSON *document = plan_document(&scenario, &plan, provenance);
    char *text = cJSON_PrintUnformatted(document);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &plan_scenario).code, STATUS_OK);
    WhatifAxis axis;
    WhatifResult kept, planned,
        unconstrained = ran(NULL, "cluster.num_gpus=32", NULL, true, &arena);
    CU_ASSERT_EQUAL(whatif_parse_axis("cluster.num_gpus=32", &arena, &axis).code, STATUS_OK);
    Status status =
        whatif_run(&plan_scenario, &axis, 1, &(WhatifOptions){.replan = true}, &arena, &planned);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(planned.points[0].figures.step_time_s,
                    unconstrained.points[0].figures.step_time_s);
    // Kept, it takes the new GPUs as replicas.
    status = whatif_run(&plan_scenario, &axis, 1, &(WhatifOptions){0}, &arena, &kept);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL(kept.points[0].code, STATUS_OK);
    CU_ASSERT_EQUAL(degree(&kept.points[0], "tp"), 4);
    CU_ASSERT_EQUAL(degree(&kept.points[0], "dp"), 4);
    cJSON_Delete(provenance);
    cJSON_Delete(document);
    cJSON_free(text);
    arena_free(&arena);
}

static void bad_grids_are_refused_before_anything_is_priced(void) {
    Arena arena = {0};
    WhatifResult result;
    ASSERT_REFUSED(run(PARALLEL, "parallel.tp=1", "parallel.tp=2", false, &arena, &result),
                   "--vary parallel.tp is given twice");
    ASSERT_REFUSED(run(PARALLEL, "training.seq_len=512", "training={}", false, &arena, &result),
                   "--vary training.seq_len is part of --vary training: vary one of them");
    ASSERT_REFUSED(run(PARALLEL, "training={}", "training.seq_len=512", false, &arena, &result),
                   "--vary training.seq_len is part of --vary training: vary one of them");
    ASSERT_REFUSED(run(PARALLEL, "training.seq_len=1..2000", "training.global_batch=1..2000", false,
                       &arena, &result),
                   "the grid has 4000000 points; expected at most 1000000");
    ASSERT_REFUSED(run(PARALLEL, "parallel.tpp=1", NULL, false, &arena, &result),
                   "job.json: parallel.tpp: unknown key; the nearest known one is \"tp\"");
    Scenario scenario = opened(PARALLEL, &arena);
    ASSERT_REFUSED(whatif_run(&scenario, NULL, 0, &(WhatifOptions){0}, &arena, &result),
                   "whatif needs at least one --vary PATH=v1,v2,...");
    arena_free(&arena);
}

static void the_document_has_an_entry_for_each_point(void) {
    Arena arena = {0};
    WhatifResult result =
        ran(PARALLEL, "parallel.tp=4,3", "training.compile=true,false", false, &arena);
    cJSON *json = whatif_to_json(&result);
    const cJSON *vary = cJSON_GetObjectItemCaseSensitive(json, "vary");
    const cJSON *points = cJSON_GetObjectItemCaseSensitive(json, "points");
    CU_ASSERT_EQUAL(cJSON_GetArraySize(vary), 2);
    CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(points), 4);
    const cJSON *good = cJSON_GetArrayItem(points, 1), *bad = cJSON_GetArrayItem(points, 2);
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(good, "values");
    CU_ASSERT_EQUAL(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(values, "parallel.tp")),
                    4);
    CU_ASSERT_TRUE(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(values, "training.compile")));
    CU_ASSERT_PTR_NOT_NULL(cJSON_GetObjectItemCaseSensitive(good, "answer"));
    CU_ASSERT_PTR_NULL(cJSON_GetObjectItemCaseSensitive(good, "error"));
    CU_ASSERT_PTR_NULL(cJSON_GetObjectItemCaseSensitive(bad, "answer"));
    CU_ASSERT_PTR_NOT_NULL(cJSON_GetObjectItemCaseSensitive(bad, "error"));
    cJSON_Delete(json);
    arena_free(&arena);
}

// Whoever takes a point, and whatever was found before it.
static void threads_do_not_change_the_answer(void) {
    Arena arena = {0};
    const Scenario scenario = opened(NULL, &arena);
    static const char *const VARY[] = {"cluster.num_gpus=16,24,32",
                                       "cluster.scale_out.nic_bytes_per_s=5e9,5e10,2e11",
                                       "parallel.recompute=none,full"};
    WhatifAxis axes[3];
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(whatif_parse_axis(VARY[i], &arena, &axes[i]).code, STATUS_OK);
    for (int num_axes = 2; num_axes <= 3; num_axes++) {
        WhatifResult one, many;
        const WhatifOptions alone = {.replan = true}, four = {.replan = true, .num_threads = 4};
        CU_ASSERT_EQUAL(whatif_run(&scenario, axes, num_axes, &alone, &arena, &one).code,
                        STATUS_OK);
        CU_ASSERT_EQUAL(whatif_run(&scenario, axes, num_axes, &four, &arena, &many).code,
                        STATUS_OK);
        for (int64_t i = 0; i < one.num_points; i++)
            CU_ASSERT_STRING_EQUAL(one.points[i].answer, many.points[i].answer);
    }
    arena_free(&arena);
}

// The plan of one point hurries the search at the next; searched alone each has the same answer.
static void a_point_does_not_depend_on_the_others(void) {
    Arena arena = {0};
    const WhatifResult all =
        ran(NULL, "training.global_batch=16,32,64", "cluster.num_gpus=8,16,32", true, &arena);
    for (int64_t i = 0; i < all.num_points; i++) {
        const char *batch = arena_printf(&arena, "training.global_batch=%g", value(&all, i, 0));
        const char *gpus = arena_printf(&arena, "cluster.num_gpus=%g", value(&all, i, 1));
        const WhatifResult one = ran(NULL, batch, gpus, true, &arena);
        CU_ASSERT_EQUAL_FATAL(one.points[0].code, all.points[i].code);
        if (one.points[0].answer)
            CU_ASSERT_STRING_EQUAL(one.points[0].answer, all.points[i].answer);
    }
    arena_free(&arena);
}

// Points that differ in the speed of their NICs share lists (whatif/rays.h), on any of the axes.
static void a_point_of_a_ray_does_not_depend_on_the_others(void) {
    static const char NICS[] = "cluster.scale_out.nic_bytes_per_s=1e10,2e10,2.1e10,400Gb/s,"
                               "2.2e10,2.3e10,2.4e10,2.5e10,5.1e10";
    static const char BATCHES[] = "training.global_batch=32,64";
    for (int first = 0; first < 2; first++) {
        Arena arena = {0};
        const WhatifResult all =
            ran(NULL, first ? NICS : BATCHES, first ? BATCHES : NICS, true, &arena);
        for (int64_t i = 0; i < all.num_points; i++) {
            const cJSON *nic = whatif_value(all.axes, 2, i, first ? 0 : 1);
            const char *nics =
                arena_printf(&arena,
                             cJSON_IsString(nic) ? "cluster.scale_out.nic_bytes_per_s=%s"
                                                 : "cluster.scale_out.nic_bytes_per_s=%s%g",
                             cJSON_IsString(nic) ? nic->valuestring : "", nic->valuedouble);
            const char *batch =
                arena_printf(&arena, "training.global_batch=%g", value(&all, i, first ? 1 : 0));
            const WhatifResult one = ran(NULL, nics, batch, true, &arena);
            CU_ASSERT_EQUAL_FATAL(one.points[0].code, all.points[i].code);
            CU_ASSERT_STRING_EQUAL(one.points[0].answer, all.points[i].answer);
        }
        arena_free(&arena);
    }
}

static void a_question_is_known_by_all_that_it_asks(void) {
    Arena arena = {0};
    const Scenario scenario = opened(PARALLEL, &arena), other = opened(NULL, &arena);
    WhatifAxis axis, longer;
    CU_ASSERT_EQUAL(whatif_parse_axis("training.seq_len=1024,2048", &arena, &axis).code, STATUS_OK);
    CU_ASSERT_EQUAL(whatif_parse_axis("training.seq_len=1024,4096", &arena, &longer).code,
                    STATUS_OK);
    const uint64_t question = whatif_question(&scenario, &axis, 1, false, 0);
    CU_ASSERT_EQUAL(question, whatif_question(&scenario, &axis, 1, false, 0));
    CU_ASSERT_NOT_EQUAL(question, whatif_question(&scenario, &axis, 1, true, 0));
    CU_ASSERT_NOT_EQUAL(question, whatif_question(&scenario, &axis, 1, false, 1));
    CU_ASSERT_NOT_EQUAL(question, whatif_question(&scenario, &longer, 1, false, 0));
    CU_ASSERT_NOT_EQUAL(question, whatif_question(&other, &axis, 1, false, 0));
    arena_free(&arena);
}

CU_TestInfo whatif_run_tests[] = {
    {"the_unchanged_point_is_the_estimate", the_unchanged_point_is_the_estimate},
    {"the_last_axis_varies_fastest", the_last_axis_varies_fastest},
    {"a_refused_point_is_an_entry", a_refused_point_is_an_entry},
    {"a_point_that_does_not_fit_still_has_an_answer",
     a_point_that_does_not_fit_still_has_an_answer},
    {"replanning_is_never_slower_than_keeping", replanning_is_never_slower_than_keeping},
    {"replanning_a_plan_frees_it", replanning_a_plan_frees_it},
    {"bad_grids_are_refused_before_anything_is_priced",
     bad_grids_are_refused_before_anything_is_priced},
    {"threads_do_not_change_the_answer", threads_do_not_change_the_answer},
    {"a_point_does_not_depend_on_the_others", a_point_does_not_depend_on_the_others},
    {"a_point_of_a_ray_does_not_depend_on_the_others",
     a_point_of_a_ray_does_not_depend_on_the_others},
    {"a_question_is_known_by_all_that_it_asks", a_question_is_known_by_all_that_it_asks},
    {"the_document_has_an_entry_for_each_point", the_document_has_an_entry_for_each_point},
    CU_TEST_INFO_NULL,
};
