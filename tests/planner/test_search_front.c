// Searches of models with an encoder or a tower.
#include "planner/planner.h"

#include "plan/rule_values.h"
#include "planner/lengths/lengths.h"
#include "planner/stages/balance.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define TEXT                                                                                       \
    "\"hidden_size\": 512, \"intermediate_size\": 1536, \"num_hidden_layers\": 6, "                \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"vocab_size\": 8000"
static const struct {
    const char *model, *training;
} JOBS[] = {
    {"{\"model_type\": \"qwen2_5_vl\", " TEXT ", \"vision_config\": {\"depth\": 5, "
     "\"hidden_size\": 256, \"intermediate_size\": 600, \"num_heads\": 4, \"patch_size\": 14}}",
     "\"images_per_sequence\": 4, \"image_size\": 448"},
    {"{\"model_type\": \"gemma3\", " TEXT ", \"head_dim\": 64, \"vision_config\": "
     "{\"hidden_size\": 256, \"intermediate_size\": 1024, \"num_attention_heads\": 8, "
     "\"num_hidden_layers\": 3, \"image_size\": 448, \"patch_size\": 14}}",
     "\"images_per_sequence\": 2"},
    {"{\"model_type\": \"t5\", \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 2048, \"num_layers\": 6, "
     "\"num_heads\": 8}",
     "\"encoder_seq_len\": 512"},
};
enum { NUM_JOBS = sizeof JOBS / sizeof *JOBS };

static void job_read(int number, int num_gpus, Arena *arena, Scenario *out) {
    const char *cluster = arena_printf(
        arena,
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": %d, \"gpus_per_node\": %d, \"scale_up\": "
        "{\"link\": \"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 1, \"nic_bytes_per_s\": "
        "25e9}}",
        num_gpus, num_gpus % 4 == 0 ? 4 : num_gpus);
    const char *training =
        arena_printf(arena, "{\"seq_len\": 2048, \"global_batch\": 24, %s}", JOBS[number].training);
    Status status =
        scenario_of(scenario_text(arena, JOBS[number].model, cluster, training, NULL), arena, out);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
}

static bool same(const PlannerResult *a, const PlannerResult *b, Arena *arena) {
    if (a->num_entries != b->num_entries || a->stats.considered != b->stats.considered)
        return false;
    for (int i = 0; i < a->num_entries; i++)
        if (strcmp(case_key(&a->entries[i].plan, arena), case_key(&b->entries[i].plan, arena)) != 0)
            return false;
    return true;
}

// With all memory there is, and with so little that half of the configurations do not fit.
static void the_best_are_those_of_pricing_everything(void) {
    static const int NUM_GPUS[] = {2, 6, 8};
    int num_piped = 0;
    for (int i = 0; i < NUM_JOBS * 3 * 2; i++) {
        Arena arena = {0};
        Scenario scenario;
        job_read(i % NUM_JOBS, NUM_GPUS[i / NUM_JOBS % 3], &arena, &scenario);
        PlannerOptions options = {.top = 4, .brief = true};
        if (i >= NUM_JOBS * 3) options.max_memory_bytes = case_memory_bytes(i, &scenario);
        const PlannerResult found = case_search(&scenario, &options, &arena);
        options.exhaustive = true;
        const PlannerResult all = case_search(&scenario, &options, &arena);
        CU_ASSERT_TRUE(same(&found, &all, &arena));
        CU_ASSERT_TRUE(case_adds_up(&found.stats) && found.stats.optimal);
        for (int e = 0; e < all.num_entries; e++) {
            const Plan *plan = &all.entries[e].plan;
            num_piped += plan->pp > 1;
            CU_ASSERT(plan->chunks[0].num_layers >= scenario.model.num_front_layers);
            if (i % NUM_JOBS == 2) CU_ASSERT(plan->pp == 1 && plan->cp == 1);
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_piped > 0);
}

// Layers of the text on the first of two stages of Qwen2.5-VL-7B.
static int first_stage_layers(const char *images) {
    Arena arena = {0};
    Scenario scenario;
    const char *training =
        arena_printf(&arena, "{\"seq_len\": 8192, \"global_batch\": 32%s}", images);
    Status status = scenario_of(scenario_text(&arena, "\"qwen2.5-vl-7b\"", "\"dgx-h100:1\"",
                                              training, "{\"pp\": 2, \"vpp\": 1, \"tp\": 4}"),
                                &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const PlannerOptions options = {.top = 1, .brief = true};
    const PlannerResult found = case_search(&scenario, &options, &arena);
    const PlanChunk *chunks = found.entries[0].plan.chunks;
    const int own = chunks[0].num_layers - scenario.model.num_front_layers;
    CU_ASSERT_EQUAL(own + chunks[1].num_layers, 28);
    arena_free(&arena);
    return own;
}

// The more a tower has to do, the fewer layers of the text lie with it.
static void stages_are_balanced_around_the_tower(void) {
    const int none = first_stage_layers("");
    const int few = first_stage_layers(", \"images_per_sequence\": 2, \"image_size\": 896");
    const int many = first_stage_layers(", \"images_per_sequence\": 8, \"image_size\": 896");
    CU_ASSERT(none > few && few > many);
}

// A tower of one thin layer, and a word table of 1,000 rows: the layers of the text in equal parts
// are balanced, the tower's not counted.
static void an_even_split_behind_a_tower_is_left_alone(void) {
    Arena arena = {0}, scratch = {0};
    Scenario scenario;
    const char *model =
        "{\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 2048, \"intermediate_size\": 8192, "
        "\"num_hidden_layers\": 16, \"num_attention_heads\": 16, \"num_key_value_heads\": 16, "
        "\"vocab_size\": 1000, \"vision_config\": {\"depth\": 1, \"hidden_size\": 64, "
        "\"intermediate_size\": 64, \"num_heads\": 1, \"patch_size\": 14}}";
    const char *training = "{\"seq_len\": 8192, \"global_batch\": 24, \"images_per_sequence\": 1, "
                           "\"image_size\": 28}";
    const Status status = scenario_of(
        scenario_text(&arena, model, "\"dgx-h100:1\"", training, "{\"pp\": 4}"), &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    Plan plan;
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
    CU_ASSERT_EQUAL(plan.chunks[0].num_layers, 1 + 4);
    const BalanceCosts costs = balance_costs(&scenario, &plan, &arena);
    CU_ASSERT_PTR_NULL(balance_chunks(&costs, 4, 1, plan.chunks, &arena, &scratch));
    arena_free(&scratch);
    arena_free(&arena);
}

// Megatron-Core passes no windows round a ring (its table of rules); those of a tower are on none.
static void windows_of_a_tower_leave_the_text_its_ring(void) {
    Arena arena = {0};
    Scenario tower, text;
    job_read(0, 8, &arena, &tower);
    RuleValues values;
    rule_values_start(&tower, &values);
    CU_ASSERT_EQUAL(values.value[RULE_WINDOWS], 0);
    CU_ASSERT_TRUE(tower.model.kinds[tower.model.layer_kind[0]].mixer.window > 0);
    job_read(1, 8, &arena, &text); // Gemma's text has windows
    rule_values_start(&text, &values);
    CU_ASSERT_EQUAL(values.value[RULE_WINDOWS], 1);
    arena_free(&arena);
}

// How many images, or how long an input, a short sequence has is not said.
static void sequences_of_several_lengths_are_refused(void) {
    static const struct {
        const char *model, *training, *sentence;
    } ROWS[] = {
        {"\"gemma-3-4b\"", ", \"images_per_sequence\": 2",
         "job.json: training.images_per_sequence: 2: a tower is legal, but plan with "
         "training.sequence_lengths does not support it yet; without this key its text is taken "
         "alone"},
        {"\"t5-3b\"", "",
         "job.json: model: t5-3b: an encoder is legal, but plan with training.sequence_lengths "
         "does "
         "not support it yet"},
    };
    for (int i = 0; i < 2; i++) {
        Arena arena = {0};
        Scenario scenario;
        LengthsResult result;
        const char *training =
            arena_printf(&arena,
                         "{\"seq_len\": 8192, \"global_batch\": 32, \"sequence_lengths\": "
                         "[{\"length\": 512, \"frac\": 0.5}, {\"length\": 8192, \"frac\": 0.5}]%s}",
                         ROWS[i].training);
        const Status status =
            scenario_of(scenario_text(&arena, ROWS[i].model, "\"dgx-h100:1\"", training, NULL),
                        &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        ASSERT_REFUSED(
            lengths_search(&scenario, &(LengthsOptions){.num_threads = 1}, &arena, &result),
            ROWS[i].sentence);
        arena_free(&arena);
    }
}

#define TEST(name)                                                                                 \
    { #name, name }
CU_TestInfo search_front_tests[] = {
    TEST(the_best_are_those_of_pricing_everything),
    TEST(stages_are_balanced_around_the_tower),
    TEST(an_even_split_behind_a_tower_is_left_alone),
    TEST(windows_of_a_tower_leave_the_text_its_ring),
    TEST(sequences_of_several_lengths_are_refused),
    CU_TEST_INFO_NULL,
};
