#include "config/job/evidence.h"

#include "config/job/scenario.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

static Status evidence_of(const char *text, Arena *arena, Scenario *out) {
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    TRY(json_parse(text, strlen(text), "job.json", arena, root));
    return scenario_read(root, arena, out);
}

#define JOB(model, cluster, stack)                                                                 \
    "{\"schema\": 1, \"model\": \"" model "\", \"cluster\": \"" cluster "\","                      \
    " \"training\": {\"seq_len\": 4096, \"global_batch\": 64, \"stack\": \"" stack "\"}}"

static bool says(const Evidence *evidence, Ingredients plan, const char *reason, Arena *arena) {
    int num;
    const char *const *reasons = evidence_reasons(evidence, plan, arena, &num);
    for (int i = 0; i < num; i++)
        if (strcmp(reasons[i], reason) == 0) return true;
    return false;
}

// What the larger part of published steps is: Llama on Hopper with Megatron's splits.
static void what_was_published_is_covered(void) {
    Arena arena = {0};
    Scenario s;
    CU_ASSERT_EQUAL_FATAL(
        evidence_of(JOB("llama-3.1-70b", "dgx-h100:16", "megatron-core"), &arena, &s).code,
        STATUS_OK);
    int num;
    const Ingredients plan = evidence_ingredients(1, 8, 4, 2, 1);
    CU_ASSERT_TRUE(evidence_covers(s.evidence, plan));
    evidence_reasons(s.evidence, plan, &arena, &num);
    CU_ASSERT_EQUAL(num, 0);
    CU_ASSERT(s.evidence->memory_spread < s.evidence->other_memory_spread);
    arena_free(&arena);
}

static void what_was_never_published_is_named(void) {
    Arena arena = {0};
    Scenario amd, experts;
    CU_ASSERT_EQUAL_FATAL(
        evidence_of(JOB("llama-3.1-70b", "hgx-mi300x:4", "megatron-core"), &arena, &amd).code,
        STATUS_OK);
    const Ingredients plain = evidence_ingredients(1, 8, 1, 1, 1);
    CU_ASSERT_FALSE(evidence_covers(amd.evidence, plain));
    CU_ASSERT_TRUE(says(amd.evidence, plain, "no published step of cdna3 GPUs", &arena));
    // Mixers that no step has, whatever its experts and splits are.
    CU_ASSERT_EQUAL_FATAL(
        evidence_of(JOB("qwen3.5-122b-a10b", "dgx-h100:4", "pytorch-fsdp"), &arena, &experts).code,
        STATUS_OK);
    CU_ASSERT_FALSE(evidence_covers(experts.evidence, plain));
    CU_ASSERT_TRUE(
        says(experts.evidence, plain, "no published step of the gated delta rule", &arena));
    // Each of these was published, not together.
    CU_ASSERT_EQUAL_FATAL(
        evidence_of(JOB("qwen3-30b-a3b", "dgx-h100:2", "torchtitan"), &arena, &experts).code,
        STATUS_OK);
    const Ingredients sharded = evidence_ingredients(3, 1, 1, 1, 8);
    CU_ASSERT_FALSE(evidence_covers(experts.evidence, sharded));
    CU_ASSERT_TRUE(
        says(experts.evidence, sharded, "no published step of torchtitan with experts", &arena));
    CU_ASSERT_TRUE(
        says(experts.evidence, sharded, "no published step of experts with ZeRO-3", &arena));
    CU_ASSERT_FALSE(
        says(experts.evidence, sharded, "no published step of torchtitan with ZeRO-3", &arena));
    arena_free(&arena);
}

// A law: a plan that adds less is covered where one that adds more is.
static void a_part_of_what_is_covered_is_covered(void) {
    static const char *const JOBS[] = {
        JOB("llama-3.1-70b", "dgx-h100:16", "megatron-core"),
        JOB("qwen3-30b-a3b", "dgx-b200:16", "megatron-core"),
        JOB("llama-3.1-8b", "dgx-h100:16", "torchtitan"),
        JOB("mixtral-8x7b", "dgx-a100-80g:16", "pytorch-fsdp"),
    };
    int num_covered = 0, num_not = 0;
    for (size_t j = 0; j < sizeof JOBS / sizeof *JOBS; j++) {
        Arena arena = {0};
        Scenario s;
        CU_ASSERT_EQUAL_FATAL(evidence_of(JOBS[j], &arena, &s).code, STATUS_OK);
        for (int ways = 0; ways < 16; ways++)
            for (int zero = 0; zero < 4; zero++) {
                const int tp = 1 + (ways & 1), pp = 1 + (ways >> 1 & 1), cp = 1 + (ways >> 2 & 1),
                          ep = 1 + (ways >> 3);
                const bool covered =
                    evidence_covers(s.evidence, evidence_ingredients(zero, tp, pp, cp, ep));
                int num;
                evidence_reasons(s.evidence, evidence_ingredients(zero, tp, pp, cp, ep), &arena,
                                 &num);
                CU_ASSERT_EQUAL(covered, num == 0);
                if (covered)
                    CU_ASSERT_TRUE(
                        evidence_covers(s.evidence, evidence_ingredients(zero, 1, pp, cp, 1)));
                num_covered += covered;
                num_not += !covered;
            }
        arena_free(&arena);
    }
    CU_ASSERT(num_covered > 10 && num_not > 10);
}

// One group of two that is not covered suffices.
static void every_group_of_machines_counts(void) {
    Arena arena = {0};
    Scenario s;
    const char *job =
        "{\"schema\": 1, \"model\": \"llama-3.1-8b\", \"cluster\": {\"groups\": ["
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": "
        "{\"link\": "
        "\"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}},"
        "{\"gpu\": \"mi300x-192g\", \"num_gpus\": 8, \"gpus_per_node\": 8, \"scale_up\": "
        "{\"link\": "
        "\"xgmi\"}, \"scale_out\": {\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}}],"
        " \"between\": {\"bytes_per_s\": 1e10, \"latency_s\": 2e-5}},"
        " \"training\": {\"seq_len\": 4096, \"global_batch\": 64}}";
    CU_ASSERT_EQUAL_FATAL(evidence_of(job, &arena, &s).code, STATUS_OK);
    CU_ASSERT_EQUAL(s.evidence->num_groups, 2);
    const Ingredients plan = evidence_ingredients(1, 8, 2, 1, 1);
    CU_ASSERT_FALSE(evidence_covers(s.evidence, plan));
    CU_ASSERT_TRUE(says(s.evidence, plan, "no published step of xgmi links", &arena));
    arena_free(&arena);
}

static void without_evidence_all_is_covered(void) {
    Arena arena = {0};
    int num;
    CU_ASSERT_TRUE(evidence_covers(NULL, evidence_ingredients(3, 8, 2, 2, 8)));
    evidence_reasons(NULL, evidence_ingredients(3, 8, 2, 2, 8), &arena, &num);
    CU_ASSERT_EQUAL(num, 0);
    arena_free(&arena);
}

CU_TestInfo evidence_tests[] = {
    {"what_was_published_is_covered", what_was_published_is_covered},
    {"what_was_never_published_is_named", what_was_never_published_is_named},
    {"a_part_of_what_is_covered_is_covered", a_part_of_what_is_covered_is_covered},
    {"every_group_of_machines_counts", every_group_of_machines_counts},
    {"without_evidence_all_is_covered", without_evidence_all_is_covered},
    CU_TEST_INFO_NULL,
};
