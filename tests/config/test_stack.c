#include "base/data_dir.h"
#include "config/machine/gpu.h"
#include "config/software/stack.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

// The stacks of the contract, and the ZeRO stage that absence means on each.
static const struct {
    const char *name;
    int zero_stage;
} STACKS[] = {
    {"hf-fsdp2", 3},      {"internevo", 1},     {"llm.c", 1},    {"megatron-2021", 1},
    {"megatron-2022", 1}, {"megatron-core", 1}, {"nanotron", 1}, {"pytorch-fsdp", 3},
    {"runtime", 1},       {"torchtitan", 3},
};
enum { NUM_STACKS = sizeof STACKS / sizeof *STACKS };

static void all_stacks_of_the_contract_load(void) {
    Arena arena = {0};
    const char *const *names;
    CU_ASSERT_EQUAL_FATAL(stack_names(&arena, &names).code, STATUS_OK);
    for (int i = 0; i < NUM_STACKS; i++) {
        Stack stack;
        CU_ASSERT_STRING_EQUAL(names[i], STACKS[i].name);
        Status status = stack_load_named(STACKS[i].name, &arena, &stack);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        if (status.code) fprintf(stderr, "%s\n", status.text);
        CU_ASSERT_STRING_EQUAL(stack.name, STACKS[i].name);
        CU_ASSERT_EQUAL(stack.defaults.default_zero_stage, STACKS[i].zero_stage);
        CU_ASSERT_EQUAL(stack.defaults.sequence_parallel,
                        strcmp(STACKS[i].name, "megatron-2021") != 0);
    }
    CU_ASSERT_PTR_NULL(names[NUM_STACKS]);
    arena_free(&arena);
}

// Weights in fp32 need no copy; 16-bit weights need one of 4 bytes.
static void masters_complement_weights(void) {
    Arena arena = {0};
    for (int i = 0; i < NUM_STACKS; i++) {
        Stack stack;
        CU_ASSERT_EQUAL_FATAL(stack_load_named(STACKS[i].name, &arena, &stack).code, STATUS_OK);
        double expected = stack.training.weight_bytes_per_param == 4 ? 0 : 4;
        CU_ASSERT_EQUAL(stack.training.master_bytes_per_param, expected);
    }
    arena_free(&arena);
}

static void unknown_name_lists_the_known(void) {
    Arena arena = {0};
    JsonNode root;
    Stack stack;
    const char *name;
    const char *text = "{\"stack\": \"megatrn\"}";
    CU_ASSERT_EQUAL(json_parse(text, strlen(text), "a.json", &arena, &root).code, STATUS_OK);
    JsonNode value = json_get(&root, "stack");
    ASSERT_REFUSED(
        stack_read_name(&value, &arena, &name),
        "a.json: stack: \"megatrn\" is unknown; expected one of hf-fsdp2, internevo, llm.c, "
        "megatron-2021, megatron-2022, megatron-core, nanotron, pytorch-fsdp, runtime, torchtitan");
    ASSERT_REFUSED(stack_load_named("../models/gpt2-124m", &arena, &stack),
                   "stack \"../models/gpt2-124m\" is unknown");
    arena_free(&arena);
}

// Reads megatron-core with one value replaced, or one key removed where value is NULL.
static Status stack_changed(Arena *arena, const char *object, const char *key, cJSON *value) {
    JsonNode root;
    Stack stack;
    TRY(json_load(data_path(arena, "stacks", "megatron-core"), arena, &root));
    cJSON *tree = (cJSON *)root.item; // this test's own copy
    if (object) tree = cJSON_GetObjectItemCaseSensitive(tree, object);
    cJSON_DeleteItemFromObjectCaseSensitive(tree, key);
    if (value) cJSON_AddItemToObject(tree, key, value);
    root.file = "s.json";
    return stack_read(&root, arena, &stack);
}

static void facts_without_a_source_are_refused(void) {
    Arena arena = {0};
    ASSERT_REFUSED(stack_changed(&arena, "sources", "host_step_s", NULL),
                   "s.json: sources.host_step_s: missing; expected a string");
    ASSERT_REFUSED(stack_changed(&arena, "sources", "host_step_s", cJSON_CreateString("")),
                   "s.json: sources.host_step_s: expected a string that is not empty");
    ASSERT_REFUSED(stack_changed(&arena, "sources", "host_steps", cJSON_CreateString("x")),
                   "s.json: sources.host_steps: unknown key; the nearest known one is "
                   "\"host_step_s\"");
    arena_free(&arena);
}

static void bad_facts_are_refused(void) {
    Arena arena = {0};
    ASSERT_REFUSED(stack_changed(&arena, "launch", "host_step_s", NULL),
                   "s.json: launch.host_step_s: missing");
    ASSERT_REFUSED(stack_changed(&arena, "launch", "host_step_s", cJSON_CreateNumber(-1)),
                   "s.json: launch.host_step_s: -1 is out of range; expected 0 to 10");
    ASSERT_REFUSED(stack_changed(&arena, NULL, "schema", cJSON_CreateNumber(2)),
                   "s.json: schema: 2 is out of range; expected 1 to 1");
    ASSERT_REFUSED(
        stack_changed(&arena, "defaults", "grad_reduce_precision", cJSON_CreateString("fp8")),
        "s.json: defaults.grad_reduce_precision: \"fp8\" is unknown; expected one of fp32, bf16");
    ASSERT_REFUSED(stack_changed(&arena, "defaults", "grad_reduce", cJSON_CreateString("never")),
                   "s.json: defaults.grad_reduce: \"never\" is unknown; expected one of step, "
                   "micro_batch, pipeline_step");
    ASSERT_REFUSED(
        stack_changed(&arena, "launch", "fused_rop", cJSON_CreateTrue()),
        "s.json: launch.fused_rop: unknown key; the nearest known one is \"fused_rope\"");
    arena_free(&arena);
}

// An inference engine's file: without the sections of training, nor their sources.
static void what_serves_need_not_train(void) {
    Arena arena = {0};
    JsonNode root;
    Stack stack;
    CU_ASSERT_EQUAL_FATAL(json_load(data_path(&arena, "stacks", "runtime"), &arena, &root).code,
                          STATUS_OK);
    cJSON *tree = (cJSON *)root.item; // this test's own copy
    cJSON *sources = cJSON_GetObjectItemCaseSensitive(tree, "sources");
    root.file = "s.json";
    static const char *const SECTIONS[] = {"training", "defaults"};
    CU_ASSERT_EQUAL(stack_read(&root, &arena, &stack).code, STATUS_OK);
    CU_ASSERT_TRUE(stack.trains);
    for (int i = 0; i < 2; i++) {
        cJSON *section = cJSON_DetachItemFromObjectCaseSensitive(tree, SECTIONS[i]);
        for (cJSON *fact = section->child; fact; fact = fact->next)
            cJSON_DeleteItemFromObjectCaseSensitive(sources, fact->string);
        cJSON_Delete(section);
        if (i == 0)
            ASSERT_REFUSED(stack_read(&root, &arena, &stack),
                           "s.json: training: missing; expected an object");
    }
    const Status status = stack_read(&root, &arena, &stack);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code) fprintf(stderr, "%s\n", status.text);
    CU_ASSERT_FALSE(stack.trains);
    CU_ASSERT_TRUE(stack.launch.host_launch_s > 0);
    arena_free(&arena);
}

// A bundled stack with other releases.
static Status stack_with_releases(const char *releases, Arena *arena, Stack *out) {
    JsonNode root;
    TRY(json_load(data_path(arena, "stacks", "runtime"), arena, &root));
    cJSON *copy = cJSON_Duplicate(root.item, true);
    cJSON_AddRawToObject(copy, "releases", releases);
    char *text = cJSON_PrintUnformatted(copy);
    Status status = json_parse(text, strlen(text), "s.json", arena, &root);
    cJSON_free(text);
    cJSON_Delete(copy);
    return status.code == STATUS_OK ? stack_read(&root, arena, out) : status;
}

// {"v": VERSION} of job.json.
static Status version_check(const Stack *stack, const char *version, Arena *arena) {
    JsonNode root;
    const char *text = arena_printf(arena, "{\"v\": \"%s\"}", version);
    TRY(json_parse(text, strlen(text), "job.json", arena, &root));
    JsonNode value = json_get(&root, "v");
    return stack_check_version(&value, stack, version);
}

// Where a stack has releases; the names of others are not known.
static void what_is_no_release_is_refused(void) {
    static const char *const BAD[] = {"banana", "v0.2", "25.", ".25", "25..07", "25.06-rc1", " 25"};
    static const char *const GOOD[] = {"1", "25.07", "26.02.01", "0.2"};
    Arena arena = {0};
    Stack stack, without;
    Status status = stack_with_releases("[{\"from\": \"0.2\", \"source\": \"a\"}]", &arena, &stack);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(stack_load_named("runtime", &arena, &without).code, STATUS_OK);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        ASSERT_REFUSED(version_check(&stack, BAD[i], &arena),
                       arena_printf(&arena,
                                    "job.json: v: \"%s\" is no release of runtime; expected "
                                    "numbers with dots, such as 0.2",
                                    BAD[i]));
        CU_ASSERT_EQUAL(version_check(&without, BAD[i], &arena).code, STATUS_OK);
    }
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        CU_ASSERT_EQUAL(version_check(&stack, GOOD[i], &arena).code, STATUS_OK);
    arena_free(&arena);
}

// Two entries; 25.9 is before 25.10, and 25.07.01 after 25.07.
static void the_earliest_later_release_applies(void) {
    static const struct {
        const char *version;
        double eager_overhead_frac;
    } ROWS[] = {{NULL, 0},    {"24.05", 2},    {"25.06.02", 2}, {"25.07", 1},
                {"25.7", 1},  {"25.07.01", 1}, {"25.9", 1},     {"25.10", 0},
                {"26.02", 0}, {"main", 0},     {"25.06-rc1", 0}};
    Arena arena = {0};
    Stack newest, stack;
    Status status = stack_with_releases(
        "[{\"before\": \"25.10\", \"eager_overhead_frac\": 1, \"source\": \"a\"},"
        " {\"before\": \"25.07\", \"eager_overhead_frac\": 2, \"dropout\": true,"
        " \"source\": \"b\"}]",
        &arena, &newest);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        CU_ASSERT_EQUAL(stack_at_release(&newest, ROWS[i].version, &arena, &stack).code, STATUS_OK);
        CU_ASSERT_EQUAL(stack.launch.eager_overhead_frac, ROWS[i].eager_overhead_frac);
        CU_ASSERT_EQUAL(stack.training.dropout, ROWS[i].eager_overhead_frac == 2);
    }
    arena_free(&arena);
}

// From 0.10 on, and from 0.2 on: 0.9 is between the two.
static void the_latest_earlier_release_applies(void) {
    static const struct {
        const char *version;
        double eager_overhead_frac;
    } ROWS[] = {{NULL, 0}, {"0.1.9", 0}, {"0.2", 1}, {"0.9", 1}, {"0.10", 2}, {"1", 2}, {"new", 0}};
    Arena arena = {0};
    Stack usual, stack;
    Status status =
        stack_with_releases("[{\"from\": \"0.10\", \"eager_overhead_frac\": 2, \"source\": \"a\"},"
                            " {\"from\": \"0.2\", \"eager_overhead_frac\": 1, \"source\": \"b\"}]",
                            &arena, &usual);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        CU_ASSERT_EQUAL(stack_at_release(&usual, ROWS[i].version, &arena, &stack).code, STATUS_OK);
        CU_ASSERT_EQUAL(stack.launch.eager_overhead_frac, ROWS[i].eager_overhead_frac);
    }
    arena_free(&arena);
}

static void bad_releases_are_refused(void) {
    static const struct {
        const char *releases, *sentence;
    } ROWS[] = {
        {"{}", "s.json: releases: expected a list, found an object"},
        {"[{\"before\": \"new\", \"source\": \"a\"}]",
         "s.json: releases[0].before: \"new\"; expected numbers with dots"},
        {"[{\"before\": \"25.07\"}]", "s.json: releases[0].source: missing"},
        {"[{\"before\": \"25.07\", \"source\": \"a\", \"dropuot\": true}]",
         "s.json: releases[0].dropuot: unknown key; the nearest known one is \"dropout\""},
        {"[{\"source\": \"a\"}]", "s.json: releases[0]: has neither; expected before or from"},
        {"[{\"before\": \"1\", \"from\": \"1\", \"source\": \"a\"}]",
         "s.json: releases[0]: has both; expected before or from"},
        {"[{\"before\": \"1\", \"source\": \"a\"}, {\"from\": \"2\", \"source\": \"a\"}]",
         "s.json: releases[1]: all entries say before, or all say from"},
    };
    Arena arena = {0};
    Stack stack;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        ASSERT_REFUSED(stack_with_releases(ROWS[i].releases, &arena, &stack), ROWS[i].sentence);
    arena_free(&arena);
}

CU_TestInfo stack_tests[] = {
    {"all_stacks_of_the_contract_load", all_stacks_of_the_contract_load},
    {"masters_complement_weights", masters_complement_weights},
    {"unknown_name_lists_the_known", unknown_name_lists_the_known},
    {"facts_without_a_source_are_refused", facts_without_a_source_are_refused},
    {"bad_facts_are_refused", bad_facts_are_refused},
    {"what_serves_need_not_train", what_serves_need_not_train},
    {"the_earliest_later_release_applies", the_earliest_later_release_applies},
    {"the_latest_earlier_release_applies", the_latest_earlier_release_applies},
    {"what_is_no_release_is_refused", what_is_no_release_is_refused},
    {"bad_releases_are_refused", bad_releases_are_refused},
    CU_TEST_INFO_NULL,
};
