#include "whatif/goodput.h"

#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

static Goodput goodput(const char *model, const char *cluster, const char *training,
                       const char *parallel, GoodputOptions options, Arena *arena) {
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    Goodput *out = ARENA_NEW(arena, Goodput);
    CU_ASSERT_EQUAL_FATAL(
        scenario_of(scenario_text(arena, model, cluster, training, parallel), arena, &scenario)
            .code,
        STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(estimate_plan(&scenario, &plan, arena, &estimate, NULL).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(goodput_run(&scenario, &estimate, &options, out).code, STATUS_OK);
    return *out;
}

#define LLAMA_405B                                                                                 \
    "\"llama-3.1-405b\"", "\"grand-teton-h100:2048\"",                                             \
        "{\"seq_len\": 8192, \"global_batch\": 2048}", "{\"tp\": 8, \"pp\": 16, \"dp\": 128}"

// The Llama 3 paper, section 3.3.4: 419 failures in 54 days, and over 90 % effective training time.
static void llama_3_is_told_as_it_was(void) {
    Arena arena = {0};
    const Goodput g = goodput(LLAMA_405B, goodput_defaults(), &arena);
    CU_ASSERT_DOUBLE_EQUAL(54 * 86400 / g.mtbf_s, 419, 1e-6);
    CU_ASSERT(g.goodput_frac > 0.90 && g.goodput_frac < 0.97);
    CU_ASSERT_DOUBLE_EQUAL(g.whole.goodput_frac, g.goodput_frac, 0.01);
    // 405.9 G parameters: 2 bytes of weights, 4 of master weights, 8 of Adam's moments.
    CU_ASSERT_DOUBLE_EQUAL(g.checkpoint_bytes, 14 * 405.85e9, 14 * 0.5e9);
    CU_ASSERT(g.best_spares > 0);
    CU_ASSERT(g.available_frac > 0.99 && g.without_spares_frac < 0.2);
    arena_free(&arena);
}

static void played_and_calculated_intervals_agree(void) {
    Arena arena = {0};
    const Goodput g = goodput(LLAMA_405B, goodput_defaults(), &arena);
    const GoodputInterval *best = &g.intervals[g.best];
    for (int i = 0; i < g.num_intervals; i++) {
        const GoodputInterval *interval = &g.intervals[i];
        CU_ASSERT_DOUBLE_EQUAL(interval->runs.goodput_frac, interval->formula_frac, 0.005);
        CU_ASSERT(interval->runs.goodput_frac <= best->runs.goodput_frac);
        if (i > 0) CU_ASSERT(interval->num_steps > g.intervals[i - 1].num_steps);
    }
    CU_ASSERT(best->interval_s > g.daly_s / 2 && best->interval_s < g.daly_s * 2);
    arena_free(&arena);
}

// How it is split does not change what has to be written; experts are written once, too.
static void a_checkpoint_is_the_model_once(void) {
    static const char *const PARALLEL[] = {"{\"tp\": 1}", "{\"tp\": 4, \"pp\": 2}",
                                           "{\"tp\": 2, \"ep\": 4}"};
    double bytes[3];
    for (int i = 0; i < 3; i++) {
        Arena arena = {0};
        GoodputOptions options = goodput_defaults();
        options.num_runs = 2;
        bytes[i] =
            goodput("\"mixtral-8x7b\"", "\"dgx-h100:4\"",
                    "{\"seq_len\": 4096, \"global_batch\": 256}", PARALLEL[i], options, &arena)
                .checkpoint_bytes;
        arena_free(&arena);
    }
    CU_ASSERT_DOUBLE_EQUAL(bytes[0], 14 * 46.7e9, 14 * 0.1e9);
    CU_ASSERT_EQUAL(bytes[1], bytes[0]);
    CU_ASSERT_EQUAL(bytes[2], bytes[0]);
}

static void better_machines_have_better_goodput(void) {
    Arena arena = {0};
    GoodputOptions options = goodput_defaults();
    const double base = goodput(LLAMA_405B, options, &arena).goodput_frac;
    options.failures_per_gpu_hour = GOODPUT_FAILURES_PER_GPU_HOUR / 2;
    CU_ASSERT(goodput(LLAMA_405B, options, &arena).goodput_frac > base);
    options = goodput_defaults();
    options.storage_bytes_per_s = 8e12;
    CU_ASSERT(goodput(LLAMA_405B, options, &arena).goodput_frac > base);
    options = goodput_defaults();
    options.restart_s = 300;
    CU_ASSERT(goodput(LLAMA_405B, options, &arena).goodput_frac > base);
    arena_free(&arena);
}

static void a_run_has_the_steps_of_its_tokens(void) {
    Arena arena = {0};
    GoodputOptions options = goodput_defaults();
    options.num_tokens = 1.5e12;
    options.num_runs = 3;
    const Goodput g = goodput(LLAMA_405B, options, &arena);
    CU_ASSERT_EQUAL(g.num_steps, ceil(1.5e12 / (8192.0 * 2048)));
    CU_ASSERT_EQUAL(g.whole.num_runs, 3);
    CU_ASSERT_EQUAL(g.whole.mean.num_steps, 3 * (int64_t)g.num_steps);
    cJSON *json = goodput_to_json(&g);
    CU_ASSERT_PTR_NOT_NULL(cJSON_GetObjectItemCaseSensitive(json, "spares"));
    cJSON_Delete(json);
    arena_free(&arena);
}

CU_TestInfo goodput_tests[] = {
    {"llama_3_is_told_as_it_was", llama_3_is_told_as_it_was},
    {"played_and_calculated_intervals_agree", played_and_calculated_intervals_agree},
    {"a_checkpoint_is_the_model_once", a_checkpoint_is_the_model_once},
    {"better_machines_have_better_goodput", better_machines_have_better_goodput},
    {"a_run_has_the_steps_of_its_tokens", a_run_has_the_steps_of_its_tokens},
    CU_TEST_INFO_NULL,
};
