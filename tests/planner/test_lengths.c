#include "planner/lengths/lengths.h"

#include "costmodel/pass/price.h"
#include "tests/planner/lengths_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#define MODEL "\"llama-3.1-8b\""
#define CLUSTER "\"dgx-h100:1\""
#define LENGTHS                                                                                    \
    "[{\"length\": 4096, \"frac\": 0.7}, {\"length\": 65536, \"frac\": 0.04}, {\"length\": "       \
    "16384, \"frac\": 0.26}]"

static Status plan_of(const char *lengths, const char *parallel, Arena *arena, Scenario *scenario,
                      LengthsResult *out) {
    const char *training = arena_printf(
        arena, "{\"seq_len\": 8388608, \"global_batch\": 64, \"sequence_lengths\": %s}", lengths);
    const Status status =
        scenario_of(scenario_text(arena, MODEL, CLUSTER, training, parallel), arena, scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return lengths_search(scenario, &(LengthsOptions){.num_threads = 1}, arena, out);
}

// 0.7 x 64 = 44.8, 0.04 x 64 = 2.56, 0.26 x 64 = 16.64: rounded down 44 + 2 + 16 = 62, and the
// largest remainders, 0.8 and 0.64, are rounded up.
static void the_batch_is_shared_out_by_largest_remainders(void) {
    Arena arena = {0};
    Scenario scenario;
    LengthsResult result;
    CU_ASSERT_EQUAL_FATAL(plan_of(LENGTHS,
                                  "{\"tp\": 1, \"zero_stage\": 3, \"recompute\": \"full\"}", &arena,
                                  &scenario, &result)
                              .code,
                          STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(result.num_buckets, 3);
    static const LengthBucket EXPECTED[] = {{65536, 2}, {16384, 17}, {4096, 45}};
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(result.buckets[i].length, EXPECTED[i].length);
        CU_ASSERT_EQUAL(result.buckets[i].num_sequences, EXPECTED[i].num_sequences);
    }
    CU_ASSERT_EQUAL(result.num_tokens, 2 * 65536 + 17 * 16384 + 45 * 4096);
    arena_free(&arena);
}

// Of 64 sequences 0.004 are 0.256: less than what 0.996, 63.744, is short of the next.
static void lengths_without_a_sequence_are_named(void) {
    Arena arena = {0};
    Scenario scenario;
    LengthsResult r;
    CU_ASSERT_EQUAL_FATAL(plan_of("[{\"length\": 65536, \"frac\": 0.004}, {\"length\": 4096, "
                                  "\"frac\": 0.996}, {\"length\": 2048, \"frac\": 0}]",
                                  "{\"tp\": 1, \"zero_stage\": 3}", &arena, &scenario, &r)
                              .code,
                          STATUS_OK);
    CU_ASSERT_EQUAL(r.num_buckets, 1);
    CU_ASSERT_EQUAL(r.buckets[0].num_sequences, 64);
    CU_ASSERT_EQUAL_FATAL(r.num_left_out, 1);
    CU_ASSERT_EQUAL(r.left_out[0], 65536);
    arena_free(&arena);
}

static void the_answer_is_sound(void) {
    Arena arena = {0};
    Scenario scenario;
    LengthsResult r;
    CU_ASSERT_EQUAL_FATAL(plan_of(LENGTHS, NULL, &arena, &scenario, &r).code, STATUS_OK);
    CU_ASSERT_TRUE_FATAL(lengths_fits(&r));
    CU_ASSERT_TRUE(r.num_shapes >= r.num_bounded && r.num_bounded >= r.num_scheduled);
    CU_ASSERT_TRUE(r.num_scheduled > 0);
    lengths_case_check(&r.one_size.problem, &r.one_size.schedule);
    lengths_case_check(&r.many_sizes.problem, &r.many_sizes.schedule);
    const double one_s = r.one_size.schedule.step_time_s,
                 many_s = r.many_sizes.schedule.step_time_s;
    CU_ASSERT_TRUE(r.bound_s > 0 && r.bound_s <= many_s && many_s <= one_s);
    CU_ASSERT_DOUBLE_EQUAL(r.gap_frac, many_s / r.bound_s - 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(lengths_gain_frac(&r), one_s / many_s - 1, 1e-12);
    CU_ASSERT_TRUE(lengths_gain_frac(&r) > 0.005);
    const int first = r.one_size.schedule.rounds[0].groups[0].size;
    for (int m = 0; m < r.one_size.schedule.num_rounds; m++)
        for (int g = 0; g < r.one_size.schedule.rounds[m].num_groups; g++)
            CU_ASSERT_EQUAL(r.one_size.schedule.rounds[m].groups[g].size, first);
    arena_free(&arena);
}

static void sequences_of_one_length_gain_nothing(void) {
    Arena arena = {0};
    Scenario scenario;
    LengthsResult r;
    CU_ASSERT_EQUAL_FATAL(
        plan_of("[{\"length\": 16384, \"frac\": 1}]", NULL, &arena, &scenario, &r).code, STATUS_OK);
    CU_ASSERT_TRUE(lengths_gain_frac(&r) < 0.005);
    arena_free(&arena);
}

static void memory_decides_which_groups_hold_a_length(void) {
    Arena arena = {0};
    Scenario scenario;
    LengthsResult r;
    CU_ASSERT_EQUAL_FATAL(plan_of(LENGTHS, NULL, &arena, &scenario, &r).code, STATUS_OK);
    const LengthsProblem *p = &r.many_sizes.problem;
    CU_ASSERT_EQUAL(p->num_places, 8 / r.many_sizes.plans[0]->tp);
    for (int d = 0; d < p->num_sizes; d++) {
        const LengthsSize *size = &p->sizes[d];
        CU_ASSERT_EQUAL(size->size, r.many_sizes.plans[d]->cp);
        if (d > 0) CU_ASSERT_TRUE(size->capacity_tokens > p->sizes[d - 1].capacity_tokens);
        for (int i = 0; i < p->num_buckets; i++) {
            CU_ASSERT_TRUE(size->tokens[i] >= (double)p->buckets[i].length);
            CU_ASSERT_EQUAL(isfinite(size->sequence_s[i]),
                            size->tokens[i] <= size->capacity_tokens);
        }
    }
    arena_free(&arena);
}

// One micro-batch of `count` sequences, as estimate would price it.
static double priced_s(const Scenario *scenario, const Plan *plan, int64_t length, int count) {
    Arena arena = {0};
    Scenario job = *scenario;
    Plan pack = *plan;
    job.training.seq_len = length;
    pack.micro_batch = count;
    const Workload workload = workload_build(&job, &pack, &arena);
    const Prices prices = chunks_price(&job, &pack, &workload, &arena);
    const double time_s = prices.forward[0].time_s + prices.backward[0].time_s;
    arena_free(&arena);
    return time_s;
}

// The model of a pack is linear above a floor: what its line leaves out is small.
static void packs_that_fill_the_memory_cost_what_the_cost_model_says(void) {
    Arena arena = {0};
    Scenario scenario;
    LengthsResult r;
    int num_packs = 0;
    CU_ASSERT_EQUAL_FATAL(plan_of(LENGTHS, NULL, &arena, &scenario, &r).code, STATUS_OK);
    const LengthsProblem *p = &r.many_sizes.problem;
    for (int d = 0; d < p->num_sizes; d++)
        for (int i = 0; i < p->num_buckets; i++) {
            const LengthsSize *size = &p->sizes[d];
            const int most = (int)(size->capacity_tokens / size->tokens[i]);
            for (int count = 1; count <= most; count *= 2) {
                const double model_s =
                    fmax(size->floor_s, size->fixed_s + count * size->sequence_s[i]);
                const double exact_s =
                    priced_s(&scenario, r.many_sizes.plans[d], (int64_t)size->tokens[i], count);
                CU_ASSERT_DOUBLE_EQUAL(model_s / exact_s, 1, 0.05);
                num_packs++;
            }
        }
    CU_ASSERT_TRUE(num_packs >= 10);
    arena_free(&arena);
}

static char *answer_text(int num_threads, Arena *arena) {
    Scenario scenario;
    LengthsResult r;
    CU_ASSERT_EQUAL_FATAL(plan_of(LENGTHS, "{\"tp\": 1}", arena, &scenario, &r).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(
        lengths_search(&scenario, &(LengthsOptions){.num_threads = num_threads}, arena, &r).code,
        STATUS_OK);
    cJSON *tree = lengths_to_json(&r);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, "timing");
    char *text = cJSON_Print(tree);
    cJSON_Delete(tree);
    return text;
}

static void threads_change_nothing(void) {
    Arena arena = {0};
    char *one = answer_text(1, &arena), *four = answer_text(4, &arena);
    CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(one, "\"many_sizes\""));
    CU_ASSERT_STRING_EQUAL(one, four);
    cJSON_free(one);
    cJSON_free(four);
    arena_free(&arena);
}

static void a_length_that_fits_on_no_group_is_named(void) {
    Arena arena = {0};
    Scenario scenario;
    LengthsResult r;
    CU_ASSERT_EQUAL_FATAL(plan_of("[{\"length\": 4096, \"frac\": 0.5}, {\"length\": 8388608, "
                                  "\"frac\": 0.5}]",
                                  NULL, &arena, &scenario, &r)
                              .code,
                          STATUS_OK);
    CU_ASSERT_FALSE(lengths_fits(&r));
    CU_ASSERT_TRUE(r.longest_tokens > 4096 && r.longest_tokens < 8388608);
    const Status status = lengths_refuse(&scenario, &r);
    CU_ASSERT_EQUAL(status.code, STATUS_NO);
    CU_ASSERT_STRING_EQUAL(
        status.text,
        arena_printf(&arena,
                     "job.json: training.sequence_lengths: length 8388608 fits on no group of up "
                     "to 8 GPUs that megatron-core can run; at most %.0f tokens do",
                     r.longest_tokens));
    arena_free(&arena);
}

static void what_is_not_planned_for_is_refused(void) {
    static const struct {
        const char *parallel, *sentence;
    } CASES[] = {
        {"{\"pp\": 2}", "parallel.pp: more than 1 with training.sequence_lengths is legal, but not "
                        "supported yet"},
        {"{\"vpp\": 2}", "parallel.vpp: more than 1 with training.sequence_lengths is legal, but "
                         "not supported yet"},
        {"{\"micro_batch\": 1}", "parallel.micro_batch: a number of sequences with "
                                 "training.sequence_lengths is legal, but not supported yet"},
        {"{\"tp\": 3}", "parallel: leaves no legal plan for training.sequence_lengths on 8 GPUs "
                        "without a pipeline; expected fewer constraints"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        LengthsResult r;
        ASSERT_REFUSED(plan_of(LENGTHS, CASES[i].parallel, &arena, &scenario, &r),
                       arena_printf(&arena, "job.json: %s", CASES[i].sentence));
        arena_free(&arena);
    }
}

CU_TestInfo lengths_tests[] = {
    {"the_batch_is_shared_out_by_largest_remainders",
     the_batch_is_shared_out_by_largest_remainders},
    {"lengths_without_a_sequence_are_named", lengths_without_a_sequence_are_named},
    {"the_answer_is_sound", the_answer_is_sound},
    {"sequences_of_one_length_gain_nothing", sequences_of_one_length_gain_nothing},
    {"memory_decides_which_groups_hold_a_length", memory_decides_which_groups_hold_a_length},
    {"packs_that_fill_the_memory_cost_what_the_cost_model_says",
     packs_that_fill_the_memory_cost_what_the_cost_model_says},
    {"threads_change_nothing", threads_change_nothing},
    {"a_length_that_fits_on_no_group_is_named", a_length_that_fits_on_no_group_is_named},
    {"what_is_not_planned_for_is_refused", what_is_not_planned_for_is_refused},
    CU_TEST_INFO_NULL,
};
