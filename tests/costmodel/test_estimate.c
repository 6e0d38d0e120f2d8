#include "costmodel/step/estimate.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

// --- By hand

// 64 micro-batches one after the other, then the optimizer; 3600 s of one GPU cost a dollar, and a
// GPU that never waits draws 1000 W.
static void one_gpu_does_all_work_in_turn(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 1, TRAINING, NULL)) {
        stack_bare(&c.scenario.execution.stack);
        c.scenario.execution.stack.launch.host_step_s = 0;
        EstimateParts parts;
        const Estimate e = case_estimate(&c, &parts);
        const double tokens = 64 * 2048, step_s = e.step_time_s;
        ASSERT_CLOSE(step_s,
                     64 * (parts.prices.forward[0].time_s + parts.prices.backward[0].time_s) +
                         parts.prices.optimizer_s[0]);
        ASSERT_CLOSE(e.tokens_per_s, tokens / step_s);
        ASSERT_CLOSE(e.usd_per_1e9_tokens, step_s / 3600 / tokens * 1e9);
        ASSERT_CLOSE(e.joules_per_token, 1000 * step_s / tokens);
        ASSERT_CLOSE(e.mfu_frac, c.workload.model_flops / step_s / 1e14);
        ASSERT_CLOSE(estimate_lower_bound_s(&c.scenario, &c.plan, &c.workload, &parts.prices),
                     step_s);
    }
    case_free(&c);
}

// Of a step of which half is spent waiting: (1000 + 100) / 2 W.
static void waiting_gpus_draw_less(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 1, TRAINING, NULL)) {
        stack_bare(&c.scenario.execution.stack);
        const double busy_s = case_estimate(&c, NULL).step_time_s;
        c.scenario.execution.stack.launch.host_step_s = busy_s;
        const Estimate e = case_estimate(&c, NULL);
        ASSERT_CLOSE(e.step_time_s, 2 * busy_s);
        ASSERT_CLOSE(e.joules_per_token, 550 / e.tokens_per_s);
    }
    case_free(&c);
}

// One micro-batch on two stages: there and back, with a message each way, then an optimizer.
static void one_micro_batch_meets_the_bound(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 2, "{\"seq_len\": 2048, \"global_batch\": 1}", "{\"pp\": 2}")) {
        c.scenario.model.tie_word_embeddings = false;
        stack_bare(&c.scenario.execution.stack);
        EstimateParts parts;
        const Estimate e = case_estimate(&c, &parts);
        const Prices *p = &parts.prices;
        double work_s = 2 * p->message_s[0];
        for (int i = 0; i < 2; i++) work_s += p->forward[i].time_s + p->backward[i].time_s;
        ASSERT_CLOSE(e.step_time_s, work_s + p->optimizer_s[0]);
        ASSERT_CLOSE(estimate_lower_bound_s(&c.scenario, &c.plan, &parts.workload, p),
                     work_s + fmin(p->optimizer_s[0], p->optimizer_s[1]));
    }
    case_free(&c);
}

// It fits where the device has just the bytes it needs, and misses by one where it has one less
// (nothing is cached that could be given back).
static void fits_to_the_byte(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, NULL)) {
        Gpu *gpu = &test_pool(&c.scenario.cluster)->gpu;
        double missing;
        c.scenario.execution.stack.residency.allocator_slack_frac = 0;
        gpu->memory_available_bytes = ceil(case_estimate(&c, NULL).memory.device_bytes);
        CU_ASSERT_TRUE(case_estimate(&c, NULL).fits);
        estimate_memory(&c.scenario, &c.plan, &c.workload, &missing);
        CU_ASSERT_EQUAL(missing, 0);
        gpu->memory_available_bytes -= 1;
        const Estimate e = case_estimate(&c, NULL);
        CU_ASSERT_FALSE(e.fits);
        const RankMemory m = estimate_memory(&c.scenario, &c.plan, &c.workload, &missing);
        CU_ASSERT_TRUE(missing > 0 && missing <= 1);
        CU_ASSERT_EQUAL(m.peak_bytes, e.memory.peak_bytes);
    }
    case_free(&c);
}

// --- Laws over made-up scenarios

enum { NUM_RANDOM = 400, NUM_GPUS = 32 };

// A linear congruential generator (Knuth, TAOCP volume 2, section 3.3.4, MMIX).
static int pick(uint64_t *state, int count) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)(*state >> 33) % count;
}

static bool random_case(Case *c, int seed, int global_batch) {
    static const char *const STACKS[] = {"megatron-core", "megatron-2022", "torchtitan",
                                         "internevo"};
    static const char *const RECOMPUTES[] = {"none", "selective", "full"};
    static const char *const METHODS[] = {"ring", "all-gather", "ulysses"};
    static const char *const SWITCHES[] = {"", ", \"tp_comm_overlap\": true, \"ep_overlap\": true",
                                           ", \"overlap_grad_reduce\": false",
                                           ", \"compile\": true"};
    uint64_t state = (uint64_t)seed * 1000003u + 17;
    for (int i = 0; i < 4; i++) pick(&state, 2);
    Arena arena = {0};
    const int model = pick(&state, 3), pp = 1 << pick(&state, model == 0 ? 2 : 3);
    const char *training =
        arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": %d, \"stack\": \"%s\"%s}",
                     global_batch, STACKS[pick(&state, 4)], SWITCHES[pick(&state, 4)]);
    const char *parallel = arena_printf(
        &arena,
        "{\"tp\": %d, \"pp\": %d, \"vpp\": %d, \"cp\": %d, \"cp_method\": \"%s\", \"ep\": %d, "
        "\"micro_batch\": %d, \"recompute\": \"%s\", \"sequence_parallel\": %s}",
        1 << pick(&state, 3), pp, model && pp == 2 ? 1 + pick(&state, 2) : 1, 1 << pick(&state, 2),
        METHODS[pick(&state, 3)], model ? 1 << pick(&state, 3) : 1, 1 + pick(&state, 2),
        RECOMPUTES[pick(&state, 3)], pick(&state, 2) ? "true" : "false");
    const bool made = case_make(c,
                                model == 0   ? MADE_UP_GPT
                                : model == 1 ? MADE_UP_MOE
                                             : MADE_UP_MLA,
                                NUM_GPUS, training, parallel);
    arena_free(&arena);
    return made;
}

static void answers_are_consistent(void) {
    for (int seed = 0; seed < NUM_RANDOM; seed++) {
        Case c;
        if (random_case(&c, seed, 256)) {
            EstimateParts parts;
            const Estimate e = case_estimate(&c, &parts);
            double sum = 0;
            for (int t = 0; t < NUM_TERMS; t++) {
                CU_ASSERT_TRUE(e.term_s[t] >= 0);
                sum += e.term_s[t];
            }
            ASSERT_CLOSE(sum, e.step_time_s);
            CU_ASSERT_TRUE(e.step_time_low_s < e.step_time_s);
            CU_ASSERT_TRUE(e.step_time_s < e.step_time_high_s);
            CU_ASSERT_TRUE(e.step_time_high_s < 2 * e.step_time_s);
            ASSERT_CLOSE(e.step_time_low_s * e.step_time_high_s, e.step_time_s * e.step_time_s);
            CU_ASSERT_TRUE(e.mfu_frac > 0 && e.mfu_frac <= 1);
            ASSERT_CLOSE(e.tokens_per_s_per_gpu * NUM_GPUS, e.tokens_per_s);
            CU_ASSERT_TRUE(estimate_lower_bound_s(&c.scenario, &c.plan, &c.workload,
                                                  &parts.prices) <= e.step_time_s * (1 + 1e-9));
        }
        case_free(&c);
    }
}

static void better_machine(Cluster *cluster, int what) {
    Pool *pool = test_pool(cluster);
    if (what == 0) pool->gpu.memory_bandwidth_bytes_per_s *= 2;
    if (what == 1)
        for (int p = 0; p < NUM_PRECISIONS; p++) pool->gpu.peak_flops_per_s[p] *= 2;
    if (what == 2) pool->nic_bytes_per_s = pool->scale_out.bandwidth_bytes_per_s = 2e10;
    if (what == 3) pool->scale_up.bandwidth_bytes_per_s *= 2;
    if (what == 4) pool->scale_up.latency_s = pool->scale_out.latency_s = 0;
    if (what == 5) pool->scale_out.p2p_latency_s = pool->scale_up.p2p_latency_s = 0;
}

static void better_machines_are_never_slower(void) {
    for (int seed = 0; seed < NUM_RANDOM; seed++) {
        Case c;
        if (random_case(&c, seed, 128)) {
            const Cluster cluster = c.scenario.cluster;
            const double step_s = case_estimate(&c, NULL).step_time_s;
            for (int what = 0; what < 6; what++) {
                c.scenario.cluster = cluster;
                better_machine(&c.scenario.cluster, what);
                const double better_s = case_estimate(&c, NULL).step_time_s;
                if (better_s > step_s * (1 + 1e-9))
                    fprintf(stderr, "\nseed %d, change %d: %.9g s after %.9g s\n", seed, what,
                            better_s, step_s);
                CU_ASSERT_TRUE(better_s <= step_s * (1 + 1e-9));
            }
        }
        case_free(&c);
    }
}

// More sequences take longer, and twice as many at most twice as long. Where micro-batches are many
// (here at least 16 a rank) little is paid only once.
static void twice_the_batch_nearly_doubles(void) {
    for (int seed = 0; seed < NUM_RANDOM; seed += 4) {
        Case once, twice;
        const bool made = random_case(&once, seed, 1024);
        if (random_case(&twice, seed, 2048) && made) {
            once.scenario.execution.stack.launch.host_step_s = 0;
            twice.scenario.execution.stack.launch.host_step_s = 0;
            const double ratio =
                case_estimate(&twice, NULL).step_time_s / case_estimate(&once, NULL).step_time_s;
            CU_ASSERT_TRUE(ratio > 1.6 && ratio < 2 + 1e-9);
        }
        case_free(&once);
        case_free(&twice);
    }
}

// The same question gives the same bytes of answer.
static void answers_repeat(void) {
    for (int seed = 0; seed < 20; seed++) {
        Case c;
        if (random_case(&c, seed, 128)) {
            const double step_s = case_estimate(&c, NULL).step_time_s;
            CU_ASSERT_EQUAL(case_estimate(&c, NULL).step_time_s, step_s);
        }
        case_free(&c);
    }
}

// --- Presets

// Every bundled preset, sharded over 1024 GPUs of 180e9 bytes.
static void every_preset_has_an_answer(void) {
    Arena arena = {0};
    ModelSummary *models = NULL;
    int num_models = 0;
    CU_ASSERT_EQUAL_FATAL(model_list(&arena, &models, &num_models).code, STATUS_OK);
    for (int i = 0; i < num_models; i++) {
        Case c;
        Model model = {0};
        CU_ASSERT_EQUAL(model_load_preset(models[i].name, &arena, &model).code, STATUS_OK);
        int ep = 64;
        while (model_ffn(&model)->num_experts % ep != 0) ep /= 2;
        if (model_ffn(&model)->num_experts == 0) ep = 1;
        const char *parallel =
            arena_printf(&arena, "{\"zero_stage\": 3, \"recompute\": \"full\", \"ep\": %d}", ep);
        if (case_make(&c, arena_printf(&arena, "\"%s\"", models[i].name), 1024,
                      "{\"seq_len\": 1024, \"global_batch\": 1024}", parallel)) {
            test_pool(&c.scenario.cluster)->gpu.memory_available_bytes = 180e9;
            const Estimate e = case_estimate(&c, NULL);
            CU_ASSERT_TRUE(e.fits);
            if (!e.fits) fprintf(stderr, "\n%s needs %g\n", models[i].name, e.memory.device_bytes);
            CU_ASSERT_TRUE(e.step_time_s > 0 && isfinite(e.step_time_s));
            CU_ASSERT_TRUE(e.mfu_frac > 0 && e.mfu_frac <= 1);
        }
        case_free(&c);
    }
    arena_free(&arena);
}

// --- The document

static double number_at(const cJSON *json, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    CU_ASSERT_TRUE(cJSON_IsNumber(item));
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

// The keys of the contract; parts of memory and breakdown add up.
static void answer_has_the_keys_of_the_contract(void) {
    static const char *const NUMBERS[] = {"schema",
                                          "step_time_s",
                                          "step_time_low_s",
                                          "step_time_high_s",
                                          "tokens_per_s",
                                          "tokens_per_s_per_gpu",
                                          "model_flops_per_s_per_gpu",
                                          "mfu_frac",
                                          "usd_per_1e9_tokens",
                                          "joules_per_token",
                                          "memory_peak_bytes",
                                          "memory_reserved_bytes",
                                          "memory_device_bytes",
                                          "memory_available_bytes"};
    static const char *const PARTS[] = {"weights", "gradients", "optimizer", "activations",
                                        "buffers"};
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, TRAINING, "{\"tp\": 2, \"pp\": 2, \"ep\": 2}")) {
        const Estimate e = case_estimate(&c, NULL);
        cJSON *json = estimate_to_json(&e, &c.plan);
        for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) number_at(json, NUMBERS[i]);
        const cJSON *memory = cJSON_GetObjectItemCaseSensitive(json, "memory_bytes");
        const cJSON *terms = cJSON_GetObjectItemCaseSensitive(json, "breakdown_s");
        double bytes = 0, time_s = 0;
        for (int i = 0; i < 5; i++) bytes += number_at(memory, PARTS[i]);
        for (int t = 0; t < NUM_TERMS; t++) time_s += number_at(terms, TERM_NAMES[t]);
        ASSERT_CLOSE(bytes, number_at(json, "memory_peak_bytes"));
        ASSERT_CLOSE(time_s, number_at(json, "step_time_s"));
        CU_ASSERT_EQUAL(cJSON_GetArraySize(memory), 5);
        CU_ASSERT_EQUAL(cJSON_GetArraySize(terms), NUM_TERMS);
        CU_ASSERT_TRUE(cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(json, "fits")));
        CU_ASSERT_TRUE(cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(json, "parallel")));
        cJSON_Delete(json);
    }
    case_free(&c);
}

CU_TestInfo estimate_tests[] = {
    {"one_gpu_does_all_work_in_turn", one_gpu_does_all_work_in_turn},
    {"waiting_gpus_draw_less", waiting_gpus_draw_less},
    {"one_micro_batch_meets_the_bound", one_micro_batch_meets_the_bound},
    {"fits_to_the_byte", fits_to_the_byte},
    {"answers_are_consistent", answers_are_consistent},
    {"better_machines_are_never_slower", better_machines_are_never_slower},
    {"twice_the_batch_nearly_doubles", twice_the_batch_nearly_doubles},
    {"answers_repeat", answers_repeat},
    {"every_preset_has_an_answer", every_preset_has_an_answer},
    {"answer_has_the_keys_of_the_contract", answer_has_the_keys_of_the_contract},
    CU_TEST_INFO_NULL,
};
