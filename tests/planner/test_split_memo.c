// Splits that configurations share which differ in their shards alone, beside searches of each.
#include "planner/harvest/split_memo.h"

#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

static const double NEAR_FRAC = 0.005; // of a split that another's search found

typedef struct {
    Scenario scenario;
    Plan plan; // interleaved, with ZeRO 1 over all replicas
    Arena arena;
} Job;

// Sixteen GPUs, of whose memory less and less is there.
static Status job_open(int number, Job *job) {
    *job = (Job){.arena = {0}};
    const char *model = arena_printf(
        &job->arena,
        "{\"model_type\": \"generic\", \"hidden_size\": 4096, \"intermediate_size\": 11008, "
        "\"num_hidden_layers\": %d, \"num_attention_heads\": 32, \"vocab_size\": 64000, "
        "\"gated_mlp\": true, \"norm\": \"rmsnorm\", \"position\": \"rope\", \"linear_bias\": "
        "false, "
        "\"tie_word_embeddings\": false}",
        16 + number % 7);
    const char *parallel =
        arena_printf(&job->arena,
                     "{\"tp\": 1, \"pp\": %d, \"vpp\": 2, \"micro_batch\": 1, \"zero_stage\": 1, "
                     "\"schedule\": \"interleaved\"}",
                     number % 2 ? 2 : 4);
    TRY(scenario_of(scenario_text(&job->arena, model, "\"dgx-h100:2\"",
                                  "{\"seq_len\": 4096, \"global_batch\": 128}", parallel),
                    &job->arena, &job->scenario));
    TRY(plan_resolve(&job->scenario, &job->arena, &job->plan));
    double missing_bytes;
    const Workload workload = workload_build(&job->scenario, &job->plan, &job->arena);
    const RankMemory memory =
        estimate_memory(&job->scenario, &job->plan, &workload, &missing_bytes);
    test_pool(&job->scenario.cluster)->gpu.memory_available_bytes =
        memory.counted_bytes * (1.4 - 0.05 * (number % 11));
    return status_ok();
}

typedef struct {
    int num_asked, num_known, num_without_room;
} Counts;

static void groups_ask(Job *job, GroupPricing *pricing, const SplitTask *task, Counts *counts) {
    SplitMemo memo = {0};
    for (int group = job->plan.zero_group; group >= 1; group /= 2) {
        Plan plan = job->plan;
        GroupSplit shared, own;
        plan.zero_group = group;
        if (group == 1) plan.zero_stage = 0;
        SplitMemoEntry *entry = split_memo_entry(&memo, &plan, 0, &job->arena);
        CU_ASSERT_PTR_NOT_NULL_FATAL(entry);
        const bool known = entry->known;
        CU_ASSERT_EQUAL(split_memo_search(entry, pricing, &plan, task, &job->arena, &shared).code,
                        STATUS_OK);
        CU_ASSERT_EQUAL(split_search(pricing, &plan, task, &job->arena, &own).code, STATUS_OK);
        CU_ASSERT_EQUAL(shared.verdict, own.verdict);
        counts->num_asked++;
        counts->num_known += known;
        counts->num_without_room += own.verdict == GROUP_NO_ROOM;
        if (own.verdict != GROUP_PRICED || shared.verdict != GROUP_PRICED) continue;
        CU_ASSERT(shared.step_time_s <= own.step_time_s * (1 + NEAR_FRAC));
        CU_ASSERT(shared.memory_bytes <= job->scenario.cluster.pools[0].gpu.memory_available_bytes);
        Estimate estimate;
        CU_ASSERT_EQUAL(
            estimate_plan(&job->scenario, &shared.plan, &job->arena, &estimate, NULL).code,
            STATUS_OK);
        CU_ASSERT_DOUBLE_EQUAL(shared.step_time_s, estimate.step_time_s,
                               1e-9 * estimate.step_time_s);
        CU_ASSERT_EQUAL(shared.plan.zero_group, group);
    }
}

static void what_is_shared_is_as_good_as_what_is_found(void) {
    Counts counts = {0};
    for (int number = 0; number < 66; number++) {
        Job job;
        Deadline none;
        deadline_start(&none, 0, NULL);
        const SplitTask task = {.limit_s = INFINITY, .deadline = &none};
        CU_ASSERT_EQUAL_FATAL(job_open(number, &job).code, STATUS_OK);
        GroupPricing pricing = group_pricing_start(&job.scenario);
        groups_ask(&job, &pricing, &task, &counts);
        group_pricing_free(&pricing);
        arena_free(&job.arena);
    }
    CU_ASSERT(counts.num_known > counts.num_asked / 2);
    CU_ASSERT(counts.num_without_room > 10);
    CU_ASSERT(counts.num_without_room < counts.num_asked - 50);
}

// What a plan with so many shards is found to take, by a memo that is asked for it.
static double asked_s(Job *job, GroupPricing *pricing, SplitMemo *memo, int group, double limit_s) {
    Deadline none;
    GroupSplit found;
    Plan plan = job->plan;
    plan.zero_group = group;
    if (group == 1) plan.zero_stage = 0;
    deadline_start(&none, 0, NULL);
    const SplitTask task = {.limit_s = limit_s, .deadline = &none};
    SplitMemoEntry *entry = split_memo_entry(memo, &plan, 0, &job->arena);
    const Status status = split_memo_search(entry, pricing, &plan, &task, &job->arena, &found);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    return found.step_time_s;
}

static void what_is_found_does_not_depend_on_who_asks_first(void) {
    int num_priced = 0;
    for (int number = 0; number < 33; number++) {
        Job job;
        SplitMemo up = {0}, down = {0};
        CU_ASSERT_EQUAL_FATAL(job_open(number, &job).code, STATUS_OK);
        GroupPricing pricing = group_pricing_start(&job.scenario);
        const int most = job.plan.zero_group;
        double up_s[32] = {0};
        int n = 0;
        asked_s(&job, &pricing, &up, 1, 1e-9); // nothing is so fast
        for (int group = 1; group <= most; group *= 2)
            up_s[n++] = asked_s(&job, &pricing, &up, group, INFINITY);
        for (int group = most; group >= 1; group /= 2) {
            CU_ASSERT_EQUAL(asked_s(&job, &pricing, &down, group, INFINITY), up_s[--n]);
            num_priced += isfinite(up_s[n]);
        }
        group_pricing_free(&pricing);
        arena_free(&job.arena);
    }
    CU_ASSERT(num_priced > 50);
}

// One chunk a rank has all its splits looked at; ZeRO 2 and 3 change what a chunk takes.
static void others_are_searched(void) {
    Job job;
    SplitMemo memo = {0};
    CU_ASSERT_EQUAL_FATAL(job_open(0, &job).code, STATUS_OK);
    Plan plan = job.plan;
    plan.zero_stage = 2;
    CU_ASSERT_PTR_NULL(split_memo_entry(&memo, &plan, 0, &job.arena));
    plan = job.plan;
    plan.vpp = 1;
    plan.schedule = SCHEDULE_1F1B;
    CU_ASSERT_PTR_NULL(split_memo_entry(&memo, &plan, 0, &job.arena));
    const SplitMemoEntry *entry = split_memo_entry(&memo, &job.plan, 0, &job.arena);
    CU_ASSERT_PTR_NOT_NULL(entry);
    CU_ASSERT_PTR_NOT_EQUAL(entry, split_memo_entry(&memo, &job.plan, 2, &job.arena));
    arena_free(&job.arena);
}

CU_TestInfo split_memo_tests[] = {
    {"what_is_shared_is_as_good_as_what_is_found", what_is_shared_is_as_good_as_what_is_found},
    {"what_is_found_does_not_depend_on_who_asks_first",
     what_is_found_does_not_depend_on_who_asks_first},
    {"others_are_searched", others_are_searched},
    CU_TEST_INFO_NULL,
};
