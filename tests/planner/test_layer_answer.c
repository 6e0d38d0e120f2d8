// How a layer-wise answer is told.
#include "planner/layerwise/layer_search.h"

#include "base/arena.h"

#include <CUnit/CUnit.h>

// Four layers of one strategy, but for what a test changes from the third on.
typedef struct {
    Plan layers[4];
    LayerChoice choice;
} Told;

static void told_set(Told *told) {
    *told = (Told){0};
    for (int l = 0; l < 4; l++)
        told->layers[l] = (Plan){.tp = 2,
                                 .cp = 1,
                                 .dp = 8,
                                 .zero_stage = 1,
                                 .zero_group = 8,
                                 .sequence_parallel = true,
                                 .recompute = RECOMPUTE_SELECTIVE,
                                 .recompute_modules = MODULE_CORE_ATTN};
    told->choice.layers = told->layers;
}

// Two runs, as these texts say.
static void expect_runs(const Told *told, const char *first, const char *second) {
    Arena arena = {0};
    const char *text;
    CU_ASSERT_EQUAL(layer_run_text(&told->choice, 4, 0, &arena, &text), 2);
    CU_ASSERT_STRING_EQUAL(text, first);
    CU_ASSERT_EQUAL(layer_run_text(&told->choice, 4, 2, &arena, &text), 4);
    CU_ASSERT_STRING_EQUAL(text, second);
    arena_free(&arena);
}

static void layers_that_differ_are_told_apart(void) {
    Told told;
    told_set(&told);
    told.layers[2].recompute_modules = told.layers[3].recompute_modules =
        MODULE_CORE_ATTN | MODULE_LAYERNORM;
    expect_runs(&told, "layers 0-1: tp 2 dp 8, zero 1, recompute selective core_attn",
                "layers 2-3: tp 2 dp 8, zero 1, recompute selective core_attn+layernorm");
    told_set(&told);
    told.layers[2].zero_group = told.layers[3].zero_group = 4;
    expect_runs(&told, "layers 0-1: tp 2 dp 8, zero 1, recompute selective core_attn",
                "layers 2-3: tp 2 dp 8, zero 1:4, recompute selective core_attn");
    told_set(&told);
    told.layers[2].sequence_parallel = told.layers[3].sequence_parallel = false;
    expect_runs(&told, "layers 0-1: tp 2 dp 8, zero 1, recompute selective core_attn",
                "layers 2-3: tp 2 without sequence parallelism dp 8, zero 1, recompute selective "
                "core_attn");
}

// Modules of a layer that recomputes nothing, and groups of shards that there are none of.
static void what_has_no_effect_parts_no_layers(void) {
    Arena arena = {0};
    Told told;
    told_set(&told);
    for (int l = 0; l < 4; l++) {
        told.layers[l].recompute = RECOMPUTE_FULL;
        told.layers[l].zero_stage = 0;
        told.layers[l].zero_group = 1 + l;
        told.layers[l].recompute_modules = l;
    }
    const char *text;
    CU_ASSERT_EQUAL(layer_run_text(&told.choice, 4, 0, &arena, &text), 4);
    CU_ASSERT_STRING_EQUAL(text, "layers 0-3: tp 2 dp 8, zero 0, recompute full");
    arena_free(&arena);
}

#define TEST(name)                                                                                 \
    { #name, name }
CU_TestInfo layer_answer_tests[] = {
    TEST(layers_that_differ_are_told_apart),
    TEST(what_has_no_effect_parts_no_layers),
    CU_TEST_INFO_NULL,
};
