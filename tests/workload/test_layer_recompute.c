// Plans that say of each layer how it is recomputed.
#include "costmodel/step/estimate.h"
#include "tests/costmodel/made_up.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define TRAINING "{\"seq_len\": 1024, \"global_batch\": 32}"
#define LLAMA "\"llama-3.2-1b\"" // 16 layers

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-9)

static Estimate priced(const char *model, const char *parallel) {
    Case c;
    Estimate estimate = {0};
    if (case_make(&c, model, 8, TRAINING, parallel))
        CU_ASSERT_EQUAL(estimate_plan(&c.scenario, &c.plan, &c.arena, &estimate, NULL).code,
                        STATUS_OK);
    case_free(&c);
    return estimate;
}

// All layers the same way is what `recompute` says of all.
static void one_way_for_all_layers_is_recompute(void) {
    static const char *const PAIRS[][2] = {
        {"{\"pp\": 2, \"recompute\": \"full\"}",
         "{\"pp\": 2, \"layers\": [{\"from\": 0, \"to\": 15, \"recompute\": \"full\"}]}"},
        {"{\"recompute\": \"selective\"}",
         "{\"recompute\": \"full\", \"layers\": [{\"from\": 0, \"to\": 7, \"recompute\": "
         "\"selective\"}, {\"from\": 8, \"to\": 15, \"recompute\": \"selective\"}]}"},
        {"{\"tp\": 2}", "{\"tp\": 2, \"recompute\": \"full\", \"layers\": [{\"from\": 0, \"to\": "
                        "15, \"recompute\": \"none\"}]}"},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        const Estimate a = priced(LLAMA, PAIRS[i][0]), b = priced(LLAMA, PAIRS[i][1]);
        CU_ASSERT(a.step_time_s > 0);
        ASSERT_CLOSE(b.step_time_s, a.step_time_s);
        ASSERT_CLOSE(b.memory.peak_bytes, a.memory.peak_bytes);
    }
}

// "0x4 1x4 | 0x8": the runs of each chunk's layers, by strategy.
static const char *runs_text(const Plan *plan, Arena *arena) {
    const char *text = "";
    for (int c = 0; c < plan->num_chunks; c++) {
        if (c > 0) text = arena_printf(arena, "%s |", text);
        for (int l = 0, num; l < plan->chunks[c].num_layers; l += num) {
            num = plan_layer_run(plan, c, l);
            text = arena_printf(arena, "%s %dx%d", text, plan_layer_strategy(plan, c, l), num);
        }
    }
    return text;
}

// A plan has as many strategies as its layers differ in, and at least its own; runs end where the
// strategy or the chunk does. In dual pipelines the copy of a layer is on another rank, behind
// others. Layers that differ in recomputation alone have one sharding.
static void strategies_are_what_layers_differ_in(void) {
    static const struct {
        const char *parallel;
        int num_strategies, num_shardings;
        const char *runs;
    } CASES[] = {
        {"{}", 1, 1, " 0x16"},
        {"{\"recompute\": \"full\"}", 1, 1, " 0x16"},
        {"{\"recompute_layers\": 3, \"recompute\": \"none\"}", 1, 1, " 0x16"},
        {"{\"recompute\": \"full\", \"recompute_layers\": 5, \"pp\": 2}", 2, 1,
         " 0x5 1x3 | 0x5 1x3"},
        {"{\"recompute\": \"full\", \"recompute_layers\": 3, \"pp\": 2, \"vpp\": 4}", 2, 1,
         " 0x2 | 0x2 | 0x1 1x1 | 0x1 1x1 | 1x2 | 1x2 | 1x2 | 1x2"},
        {"{\"recompute\": \"full\", \"recompute_layers\": 9, \"pp\": 2, \"schedule\": "
         "\"dualpipe\"}",
         2, 1, " 0x8 | 0x8 | 0x1 1x7 | 0x1 1x7"},
        {"{\"pp\": 2, \"layers\": [{\"from\": 2, \"to\": 9, \"recompute\": \"full\"}, {\"from\": "
         "12, \"to\": 12, \"recompute\": \"selective\"}]}",
         3, 1, " 0x2 1x6 | 1x2 0x2 2x1 0x3"},
        {"{\"tp\": 2, \"layers\": [{\"from\": 0, \"to\": 1, \"tp\": 4}, {\"from\": 2, \"to\": 3, "
         "\"tp\": 4, \"recompute\": \"full\"}, {\"from\": 4, \"to\": 5, \"recompute\": "
         "\"full\"}]}",
         4, 2, " 1x2 2x2 3x2 0x10"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Case c;
        if (case_make(&c, LLAMA, 8, TRAINING, CASES[i].parallel)) {
            CU_ASSERT_EQUAL(plan_num_strategies(&c.plan), CASES[i].num_strategies);
            CU_ASSERT_EQUAL(plan_num_shardings(&c.plan), CASES[i].num_shardings);
            CU_ASSERT_STRING_EQUAL(runs_text(&c.plan, &c.arena), CASES[i].runs);
            CU_ASSERT_EQUAL(plan_mixes_recompute(&c.plan),
                            CASES[i].num_shardings == 1 && c.plan.layers);
        }
        case_free(&c);
    }
}

// The first k of each stage, said both ways.
static void the_first_layers_are_recompute_layers(void) {
    const Estimate a = priced(LLAMA, "{\"recompute\": \"full\", \"recompute_layers\": 5}");
    const Estimate b =
        priced(LLAMA, "{\"layers\": [{\"from\": 0, \"to\": 4, \"recompute\": \"full\"}]}");
    ASSERT_CLOSE(b.step_time_s, a.step_time_s);
    ASSERT_CLOSE(b.memory.peak_bytes, a.memory.peak_bytes);
}

// Layers 0-3 full, 4-7 selective, the rest not at all: each adds its own time and what it keeps.
static void each_layer_adds_its_own(void) {
    double time_s[NUM_RECOMPUTES], saved[NUM_RECOMPUTES];
    for (int r = 0; r < NUM_RECOMPUTES; r++) {
        Case c;
        Arena arena = {0};
        const char *parallel = arena_printf(&arena, "{\"recompute\": \"%s\"}", RECOMPUTE_NAMES[r]);
        if (case_make(&c, LLAMA, 8, TRAINING, parallel)) {
            const Prices prices = chunks_price(&c.scenario, &c.plan, &c.workload, &c.arena);
            time_s[r] = prices.backward[0].time_s;
            saved[r] = c.workload.chunks[0].saved_bytes;
        }
        case_free(&c);
        arena_free(&arena);
    }
    Case c;
    if (case_make(&c, LLAMA, 8, TRAINING,
                  "{\"layers\": [{\"from\": 0, \"to\": 3, \"recompute\": \"full\"}, {\"from\": 4, "
                  "\"to\": 7, \"recompute\": \"selective\"}]}")) {
        const Prices prices = chunks_price(&c.scenario, &c.plan, &c.workload, &c.arena);
        ASSERT_CLOSE(prices.backward[0].time_s, 0.25 * time_s[RECOMPUTE_FULL] +
                                                    0.25 * time_s[RECOMPUTE_SELECTIVE] +
                                                    0.5 * time_s[RECOMPUTE_NONE]);
        ASSERT_CLOSE(c.workload.chunks[0].saved_bytes, 0.25 * saved[RECOMPUTE_FULL] +
                                                           0.25 * saved[RECOMPUTE_SELECTIVE] +
                                                           0.5 * saved[RECOMPUTE_NONE]);
    }
    case_free(&c);
}

// Of a layer of a plan with one chunk.
static Recompute recompute_of(const Plan *plan, int layer) {
    return plan_strategy(plan, plan_layer_strategy(plan, 0, layer)).recompute;
}

// The answer's `parallel` states the same plan: it is read back to the same layers.
static void the_answer_reads_back(void) {
    Case c;
    if (case_make(&c, LLAMA, 8, TRAINING,
                  "{\"recompute\": \"full\", \"layers\": [{\"from\": 2, \"to\": 3, \"recompute\": "
                  "\"none\"}, {\"from\": 9, \"to\": 15, \"recompute\": \"selective\"}]}")) {
        cJSON *json = plan_to_json(&c.plan);
        char *text = cJSON_PrintUnformatted(json);
        Case again;
        if (case_make(&again, LLAMA, 8, TRAINING, text)) {
            const Plan copy = plan_copy(&c.plan, &c.arena);
            for (int l = 0; l < 16; l++) {
                CU_ASSERT_EQUAL(recompute_of(&again.plan, l), recompute_of(&c.plan, l));
                CU_ASSERT_EQUAL(recompute_of(&copy, l), recompute_of(&c.plan, l));
            }
            CU_ASSERT_EQUAL(recompute_of(&again.plan, 3), RECOMPUTE_NONE);
            CU_ASSERT_EQUAL(recompute_of(&again.plan, 4), RECOMPUTE_FULL);
            CU_ASSERT_PTR_NOT_NULL(
                strstr(plan_describe(&c.plan, &c.arena), " full x7 selective x7 "));
        }
        case_free(&again);
        cJSON_free(text);
        cJSON_Delete(json);
    }
    case_free(&c);
}

// The layer that is recomputed so, of a model with one kind.
static const Block *layer_of(const Case *c, Recompute recompute) {
    int strategy = 0;
    while (plan_strategy(&c->plan, strategy).recompute != recompute) strategy++;
    return workload_layer_block(&c->workload, 0, strategy);
}

// The first stage of two, 8 layers without a head: a recomputed layer needs its activations once
// more in its backward, beside what was kept before it, so that it needs less where it comes first.
static void the_order_of_layers_counts(void) {
    static const char *const LAYERS[] = {
        "{\"pp\": 2, \"layers\": [{\"from\": 0, \"to\": 3, \"recompute\": \"full\"}]}",
        "{\"pp\": 2, \"layers\": [{\"from\": 4, \"to\": 7, \"recompute\": \"full\"}]}"};
    double peak[2] = {0}, saved[2] = {0};
    for (int i = 0; i < 2; i++) {
        Case c;
        if (case_make(&c, LLAMA, 8, TRAINING, LAYERS[i])) {
            const Chunk *chunk = &c.workload.chunks[0];
            const Block *full = layer_of(&c, RECOMPUTE_FULL);
            const Block *none = layer_of(&c, RECOMPUTE_NONE);
            double before = c.workload.blocks[BLOCK_EMBEDDING].saved_bytes;
            for (int l = 0; l < 8; l++) {
                const Block *b = (l < 4) == (i == 0) ? full : none;
                before += b->saved_bytes;
                peak[i] = fmax(peak[i], before - chunk->saved_bytes + b->backward_peak_bytes);
            }
            ASSERT_CLOSE(chunk->backward_peak_bytes, peak[i]);
            saved[i] = chunk->saved_bytes;
        }
        case_free(&c);
    }
    ASSERT_CLOSE(saved[0], saved[1]);
    CU_ASSERT(peak[1] > peak[0] + 1e6);
}

static void other_differences_are_refused(void) {
    static const struct {
        const char *parallel, *sentence;
    } CASES[] = {
        {"{\"recompute_layers\": 2, \"layers\": [{\"from\": 0, \"to\": 1, \"recompute\": "
         "\"full\"}]}",
         "job.json: parallel.recompute_layers: 2 beside parallel.layers is legal, but not "
         "supported "
         "yet"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        const char *text =
            scenario_text(&arena, LLAMA, "\"dgx-h100:1\"", TRAINING, CASES[i].parallel);
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
        CU_ASSERT_STRING_EQUAL(scenario_refuse_unsupported(&scenario).text, CASES[i].sentence);
        arena_free(&arena);
    }
}

CU_TestInfo layer_recompute_tests[] = {
    {"one_way_for_all_layers_is_recompute", one_way_for_all_layers_is_recompute},
    {"strategies_are_what_layers_differ_in", strategies_are_what_layers_differ_in},
    {"the_first_layers_are_recompute_layers", the_first_layers_are_recompute_layers},
    {"each_layer_adds_its_own", each_layer_adds_its_own},
    {"the_answer_reads_back", the_answer_reads_back},
    {"the_order_of_layers_counts", the_order_of_layers_counts},
    {"other_differences_are_refused", other_differences_are_refused},
    CU_TEST_INFO_NULL,
};
