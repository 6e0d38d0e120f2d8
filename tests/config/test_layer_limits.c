// The most layers of a model that are read, and the first that are refused.
#include "config/model/model.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define MODEL                                                                                      \
    "{\"model_type\": \"generic\", \"hidden_size\": 64, \"intermediate_size\": 64, "               \
    "\"num_attention_heads\": 1, \"vocab_size\": 64, \"num_hidden_layers\": %d}"
#define TRAINING "{\"seq_len\": 64, \"global_batch\": 8, \"precision\": \"bf16\"}"

// A job on `gpus` whose model has so many layers.
static const char *job(Arena *arena, int layers, int gpus, const char *parallel) {
    const char *cluster = arena_printf(arena, "\"dgx-h100:%d\"", gpus / 8);
    return scenario_text(arena, arena_printf(arena, MODEL, layers), cluster, TRAINING, parallel);
}

static void a_model_has_so_many_layers(void) {
    Arena arena = {0};
    Scenario scenario;
    const int most = MODEL_MAX_LAYERS;
    CU_ASSERT_EQUAL(scenario_of(job(&arena, most, 8, NULL), &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL(scenario.model.num_layers, most);
    ASSERT_REFUSED(scenario_of(job(&arena, most + 1, 8, NULL), &arena, &scenario),
                   "job.json: model.num_hidden_layers: 16385 is out of range; expected 1 to 16384");
    arena_free(&arena);
}

// One of its stages holds all, or each of them none: as many as there are.
static void stages_hold_all_layers_of_the_largest_model(void) {
    Arena arena = {0};
    Scenario scenario;
    static const char STAGES[] = "{\"pp\": 2, \"stages\": [{\"layers\": %d}, {\"layers\": 1}]}";
    const int most = MODEL_MAX_LAYERS;
    const char *whole = arena_printf(&arena, STAGES, most);
    CU_ASSERT_EQUAL(scenario_of(job(&arena, most, 8, whole), &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL(scenario.parallel.stages[0].layers, most);
    const char *more = arena_printf(&arena, STAGES, most + 1);
    ASSERT_REFUSED(scenario_of(job(&arena, most, 8, more), &arena, &scenario),
                   "job.json: parallel.stages[0].layers: 16385 is out of range; expected 0 to "
                   "16384");
    arena_free(&arena);
}

// A chunk for each layer, and one each for the embedding and the loss.
static const char *stages_of(int num, Arena *arena) {
    static const char PIECE[] = "{\"layers\": 1},";
    char *text = arena_alloc(arena, (size_t)num * sizeof PIECE + 40), *at = text;
    at = stpcpy(at, "{\"pp\": 2, \"stages\": [");
    for (int i = 0; i < num; i++) at = stpcpy(at, PIECE);
    strcpy(at - 1, "]}");
    return text;
}

static void so_many_stages_are_listed(void) {
    Arena arena = {0};
    Scenario scenario;
    const int most = MODEL_MAX_LAYERS;
    const char *listed = stages_of(most + 2, &arena), *more = stages_of(most + 3, &arena);
    CU_ASSERT_EQUAL(scenario_of(job(&arena, most, 8, listed), &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL(scenario.parallel.num_stages, most + 2);
    ASSERT_REFUSED(scenario_of(job(&arena, most, 8, more), &arena, &scenario),
                   "job.json: parallel.stages: 16387 entries; expected at most 16386");
    arena_free(&arena);
}

CU_TestInfo layer_limits_tests[] = {
    {"a_model_has_so_many_layers", a_model_has_so_many_layers},
    {"stages_hold_all_layers_of_the_largest_model", stages_hold_all_layers_of_the_largest_model},
    {"so_many_stages_are_listed", so_many_stages_are_listed},
    CU_TEST_INFO_NULL,
};
