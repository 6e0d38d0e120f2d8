// What of the space each software is asked for.
#include "tests/planner/space_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

static void a_stack_is_asked_for_nothing_it_has_no_flag_for(void) {
    Arena arena = {0};
    const SpaceWalk *walk = space_walk_given(NULL, &arena);
    CU_ASSERT_FALSE(space_walk_has(walk, "gpipe") || space_walk_has(walk, "breadth-first"));
    CU_ASSERT_FALSE(space_walk_has(walk, "zb-h"));
    CU_ASSERT_TRUE(space_walk_has(walk, "pp 1 dp 16 mb 1 zero2"));
    CU_ASSERT_TRUE(space_walk_has(walk, "pp 1 dp 16 mb 1 zero3"));
    walk = space_walk_given("{\"pp\": 2}", &arena); // Megatron-FSDP has no pipelines
    CU_ASSERT_FALSE(space_walk_has(walk, "zero2") || space_walk_has(walk, "zero3"));
    Scenario scenario;
    Status status = scenario_of(
        scenario_text(&arena, "\"gpt2-124m\"", "\"dgx-h100:1\"",
                      "{\"seq_len\": 1024, \"global_batch\": 64, \"stack\": \"llm.c\"}", NULL),
        &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    Space space;
    space_build(&scenario, &arena, &space);
    CU_ASSERT_EQUAL(space.num_splits, 1); // dp 8
    arena_free(&arena);
}

// Whether the text of some configuration of a stack holds `text`.
static bool stack_has(const char *stack, const char *parallel, const char *text) {
    Arena arena = {0};
    Scenario scenario;
    const char *training =
        arena_printf(&arena, "{\"seq_len\": 4096, \"global_batch\": 64, \"stack\": \"%s\"}", stack);
    Status status =
        scenario_of(scenario_text(&arena, "\"llama-3.1-8b\"", "\"dgx-h100:2\"", training, parallel),
                    &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const bool found = space_walk_has(space_walk(&scenario, &arena), text);
    arena_free(&arena);
    return found;
}

static void a_stack_numbers_ranks_as_it_can(void) {
    CU_ASSERT_TRUE(stack_has("megatron-core", "{\"tp\": 2}", " pp-dp") &&
                   stack_has("megatron-core", "{\"tp\": 2}", "1f1b cp_method"));
    CU_ASSERT_FALSE(stack_has("megatron-core", "{\"tp\": 8}", " pp-dp") ||
                    stack_has("megatron-core", "{\"cp\": 2}", " pp-dp"));
    CU_ASSERT_FALSE(stack_has("torchtitan", "{\"tp\": 2}", " pp-dp") ||
                    stack_has("megatron-2022", "{\"tp\": 2}", " pp-dp"));
    const char *stated = "{\"tp\": 2, \"order\": \"tp-cp-ep-pp-dp\"}";
    CU_ASSERT_TRUE(stack_has("torchtitan", stated, " pp-dp"));
}

static void a_stack_shards_over_the_groups_it_can(void) {
    CU_ASSERT_TRUE(stack_has("megatron-core", NULL, "pp 1 dp 16 mb 1 zero1:4"));
    CU_ASSERT_FALSE(stack_has("megatron-core", NULL, "zero2:") ||
                    stack_has("megatron-core", NULL, "zero3:"));
    CU_ASSERT_FALSE(stack_has("megatron-core", NULL, "zero0:") ||
                    stack_has("megatron-core", NULL, "zero1:1 "));
    CU_ASSERT_FALSE(stack_has("megatron-2022", NULL, "zero1:"));
    CU_ASSERT_FALSE(stack_has("llm.c", NULL, "zero1:"));
    CU_ASSERT_TRUE(stack_has("pytorch-fsdp", NULL, "zero3:8") &&
                   stack_has("pytorch-fsdp", NULL, "zero2:8"));
    // Never across a cp group, nor dp ranks of them, which there means all (plan_zero_group).
    const char *cp = "{\"tp\": 1, \"pp\": 1, \"cp\": 4}";
    CU_ASSERT_TRUE(stack_has("torchtitan", cp, "zero3:8"));
    CU_ASSERT_FALSE(stack_has("torchtitan", cp, "zero3:2") ||
                    stack_has("torchtitan", cp, "zero3:4"));
    // What is stated is the only one.
    CU_ASSERT_TRUE(stack_has("megatron-2022", "{\"zero_group\": 2}", "zero1:2"));
    CU_ASSERT_FALSE(stack_has("megatron-core", "{\"zero_group\": 2}", "zero1:4"));
}

static void a_stack_keeps_gathered_weights_where_it_can(void) {
    const char *open = "{\"tp\": 1, \"pp\": 1}";
    const char *second = "{\"tp\": 1, \"pp\": 1, \"zero_stage\": 2}";
    const char *kept = "{\"tp\": 1, \"pp\": 1, \"reshard_after_forward\": false}";
    const char *resharded = "{\"tp\": 1, \"pp\": 1, \"reshard_after_forward\": true}";
    CU_ASSERT_TRUE(stack_has("torchtitan", open, "zero3 kept") &&
                   stack_has("torchtitan", open, "zero3:8 kept") &&
                   stack_has("torchtitan", open, "zero3 1f1b"));
    CU_ASSERT_TRUE(stack_has("torchtitan", kept, "zero3 kept") &&
                   !stack_has("torchtitan", kept, "zero3 1f1b"));
    CU_ASSERT_TRUE(stack_has("torchtitan", resharded, "zero3 1f1b") &&
                   !stack_has("torchtitan", resharded, "kept"));
    CU_ASSERT_TRUE(!stack_has("torchtitan", second, "zero3 1f1b") &&
                   stack_has("torchtitan", second, "zero3 kept"));
    CU_ASSERT_TRUE(stack_has("pytorch-fsdp", open, "zero3 kept") &&
                   stack_has("pytorch-fsdp", open, "zero3 1f1b"));
    CU_ASSERT_FALSE(stack_has("megatron-core", open, "kept") || stack_has("runtime", open, "kept"));
}

static void a_stack_recomputes_the_first_layers_where_it_can(void) {
    const char *plain = "{\"pp\": 4, \"vpp\": 1}", *chunks = "{\"pp\": 4, \"vpp\": 2}";
    CU_ASSERT_TRUE(stack_has("megatron-core", plain, "full:1 ") &&
                   stack_has("megatron-core", plain, "full:7 "));
    // All of a stage's 8, or of a balanced stage's 9, are what `full` says.
    CU_ASSERT_FALSE(stack_has("megatron-core", plain, "full:9 "));
    CU_ASSERT_FALSE(stack_has("megatron-core", chunks, "full:"));
    CU_ASSERT_FALSE(stack_has("megatron-core", plain, "selective:"));
    CU_ASSERT_TRUE(stack_has("runtime", chunks, "full:3 ") &&
                   stack_has("runtime", chunks, "selective:3 "));
    CU_ASSERT_FALSE(stack_has("torchtitan", plain, "full:") || stack_has("llm.c", NULL, "full:"));
    CU_ASSERT_TRUE(stack_has("pytorch-fsdp", NULL, "full:31 "));
    CU_ASSERT_FALSE(stack_has("pytorch-fsdp", NULL, "full:32 "));
    // What is stated is the only one.
    const char *given = "{\"pp\": 4, \"recompute\": \"full\", \"recompute_layers\": 3}";
    CU_ASSERT_TRUE(stack_has("megatron-core", given, "full:3 "));
    CU_ASSERT_FALSE(stack_has("megatron-core", given, "full:2 ") ||
                    stack_has("megatron-core", given, "full "));
}

// Bit m: some configuration with cp > 1 has CpMethod m.
static unsigned methods_of(const char *model, const char *stack, const char *parallel) {
    Arena arena = {0};
    Scenario scenario;
    const char *training =
        arena_printf(&arena, "{\"seq_len\": 4096, \"global_batch\": 16, \"stack\": \"%s\"}", stack);
    Status status = scenario_of(scenario_text(&arena, arena_printf(&arena, "\"%s\"", model),
                                              "\"dgx-h100:1\"", training, parallel),
                                &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const SpaceWalk *walk = space_walk(&scenario, &arena);
    unsigned methods = 0;
    for (int i = 0; i < walk->num_keys; i++) {
        int method;
        const char *key = walk->keys[i];
        if (strstr(key, " cp ") && sscanf(strstr(key, "cp_method"), "cp_method %d", &method) == 1)
            methods |= 1u << method;
    }
    arena_free(&arena);
    return methods;
}

static void a_stack_splits_sequences_only_in_the_ways_it_can(void) {
    enum { RING = 1 << CP_RING, ULYSSES = 1 << CP_ULYSSES, GATHER = 1 << CP_ALL_GATHER };
    const char *given = "{\"cp\": 2, \"cp_method\": \"ring\"}";
    CU_ASSERT_EQUAL(methods_of("llama-3.1-8b", "megatron-core", NULL), RING | ULYSSES | GATHER);
    CU_ASSERT_EQUAL(methods_of("mistral-7b-v0.1", "megatron-core", NULL), ULYSSES | GATHER);
    CU_ASSERT_EQUAL(methods_of("deepseek-v2-lite", "megatron-core", NULL), RING);
    CU_ASSERT_EQUAL(methods_of("llama-3.1-8b", "torchtitan", NULL), RING | GATHER);
    CU_ASSERT_EQUAL(methods_of("llama-3.1-8b", "megatron-2022", NULL), 0);
    // What the software lacks is searched where it is given, what would stop it is not.
    CU_ASSERT_EQUAL(methods_of("mistral-7b-v0.1", "megatron-core", given), 0);
    CU_ASSERT_EQUAL(methods_of("llama-3.1-8b", "megatron-2022", given), RING);
}

static bool searches_dualpipe(const char *stack) {
    Arena arena = {0};
    Scenario scenario;
    const char *training =
        arena_printf(&arena, "{\"seq_len\": 1024, \"global_batch\": 64, \"stack\": \"%s\"}", stack);
    Status status = scenario_of(
        scenario_text(&arena, "\"gpt2-124m\"", "\"dgx-h100:1\"", training, "{\"pp\": 4}"), &arena,
        &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const bool found = space_walk_has(space_walk(&scenario, &arena), "dualpipe");
    arena_free(&arena);
    return found;
}

static void dualpipe_is_searched_where_the_stack_has_it(void) {
    CU_ASSERT_TRUE(searches_dualpipe("runtime"));
    CU_ASSERT_FALSE(searches_dualpipe("megatron-core"));
    CU_ASSERT_FALSE(searches_dualpipe("internevo"));
    CU_ASSERT_FALSE(searches_dualpipe("torchtitan"));
    // What is given is searched all the same: both copies of the given stages.
    Arena arena = {0};
    const SpaceWalk *walk =
        space_walk_given("{\"schedule\": \"dualpipe\", \"stages\": " SPACE_CASE_STAGES "}", &arena);
    CU_ASSERT(walk->num_keys > 0);
    for (int i = 0; i < walk->num_keys; i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(walk->keys[i], "chunks 15 17 15 17"));
    arena_free(&arena);
}

CU_TestInfo space_stacks_tests[] = {
    {"a_stack_is_asked_for_nothing_it_has_no_flag_for",
     a_stack_is_asked_for_nothing_it_has_no_flag_for},
    {"a_stack_numbers_ranks_as_it_can", a_stack_numbers_ranks_as_it_can},
    {"a_stack_shards_over_the_groups_it_can", a_stack_shards_over_the_groups_it_can},
    {"a_stack_keeps_gathered_weights_where_it_can", a_stack_keeps_gathered_weights_where_it_can},
    {"a_stack_recomputes_the_first_layers_where_it_can",
     a_stack_recomputes_the_first_layers_where_it_can},
    {"a_stack_splits_sequences_only_in_the_ways_it_can",
     a_stack_splits_sequences_only_in_the_ways_it_can},
    {"dualpipe_is_searched_where_the_stack_has_it", dualpipe_is_searched_where_the_stack_has_it},
    CU_TEST_INFO_NULL,
};
