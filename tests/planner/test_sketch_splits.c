// What is said of all splits of a configuration's layers from its shape alone: no split drawn at
// random is faster than the bound, or fits where none is said to.
#include "planner/harvest/sketch_splits.h"

#include "costmodel/step/step_time.h"
#include "planner/harvest/loose.h"
#include "planner/stages/interleaved_bound.h"
#include "planner/stages/split_bound.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdint.h>

enum { NUM_DRAWS = 6 };

typedef struct {
    const Scenario *scenario;
    const LooseCosts *loose;
    GroupPricing pricing;
    uint64_t state;
    int every; // of so many plans one is looked at
    int num_seen, num_plans, num_interleaved, num_splits;
    int num_faster, num_unfit;         // than what is said
    int num_none, num_none_known;      // no draw and not the default split fits; known to
    int num_bounds, num_bounds_unlike; // the bound by value and by question
    double loss_frac;                  // of the best draw, summed over the plans
} Checks;

static int draw(Checks *c, int num_values) {
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (int)(c->state >> 33) % num_values;
}

// The default split, or that with some layers moved.
static const PlanChunk *chunks_draw(Checks *c, const Plan *plan, int moves, Arena *arena) {
    int *items = ARENA_ARRAY(arena, plan->num_chunks, int);
    for (int k = 0; k < plan->num_chunks; k++) items[k] = plan->chunks[k].num_layers;
    items[0] -= c->scenario->model.num_front_layers;
    for (int i = 0; i < moves; i++) {
        const int from = draw(c, plan->num_chunks), to = draw(c, plan->num_chunks);
        if (items[from] == 0) continue;
        items[from]--;
        items[to]++;
    }
    return chain_chunks(&c->pricing, plan, items, arena);
}

// The step of a split, and whether it fits.
static double step_of(Checks *c, const Plan *plan, Arena *arena, bool *fits) {
    const Workload workload = workload_build(c->scenario, plan, arena);
    const Prices prices = chunks_price(c->scenario, plan, &workload, arena);
    double missing_bytes;
    estimate_memory(c->scenario, plan, &workload, &missing_bytes);
    *fits = missing_bytes <= 0;
    const double step_s = plan_step_time_s(c->scenario, plan, &workload, &prices, arena);
    return isnan(step_s) ? estimate_lower_bound_s(c->scenario, plan, &workload, &prices) : step_s;
}

static void bounds_compare(Checks *c, const Plan *plan, double best_s) {
    const GroupCosts *costs = group_costs_of(&c->pricing, plan);
    const double bound_s = split_bound_s(c->scenario, plan, costs);
    c->num_faster += bound_s > best_s * (1 + 1e-9);
    c->num_bounds++;
    c->num_bounds_unlike += !split_bound_exceeds(c->scenario, plan, costs, bound_s * 0.999) ||
                            split_bound_exceeds(c->scenario, plan, costs, bound_s * 1.001);
    c->loss_frac += 1 - bound_s / best_s;
}

static void plan_look(Checks *c, const Plan *own) {
    Arena arena = {0};
    SketchShape shape;
    SketchChain chain;
    CU_ASSERT_TRUE_FATAL(loose_sketch(c->loose, own, &shape));
    sketch_chain(c->scenario, own, &shape, &arena, &chain);
    const bool misses = sketch_splits_miss(c->scenario, own, &chain);
    bool some_fit = false;
    double best_s = INFINITY;
    for (int i = 0; i < NUM_DRAWS; i++) {
        bool fits;
        Plan plan = *own;
        plan.chunks = chunks_draw(c, own, i * i, &arena);
        const double step_s = step_of(c, &plan, &arena, &fits);
        c->num_splits++;
        c->num_faster += sketch_splits_exceed(c->scenario, own, &chain, step_s);
        c->num_faster += sketch_splits_mean_s(c->scenario, own, &shape) > step_s * (1 + 1e-9);
        c->num_unfit += fits && misses;
        some_fit |= fits;
        best_s = fmin(best_s, step_s);
    }
    c->num_plans++;
    c->num_interleaved += own->schedule == SCHEDULE_INTERLEAVED;
    c->num_none += !some_fit;
    c->num_none_known += !some_fit && misses;
    bounds_compare(c, own, best_s);
    arena_free(&arena);
}

static bool family_look(void *context, const SpaceFamily *family) {
    Checks *c = context;
    for (int i = 0; i < case_num_plans(family) && family->any_split; i++) {
        const Plan plan = case_plan(family, i);
        if (!plan.vocab_barriers && c->num_seen++ % c->every == 0) plan_look(c, &plan);
    }
    return true;
}

static void space_look(Scenario *scenario, int every, Checks *c) {
    Arena arena = {0};
    Space space;
    LooseCosts loose;
    space_build(scenario, &arena, &space);
    space.any_split = true;
    double *split_bound_s = ARENA_ARRAY(&arena, space.num_splits, double);
    loose_build(&space, 2, NULL, NULL, &loose, split_bound_s);
    c->scenario = scenario;
    c->loose = &loose;
    c->every = every;
    c->pricing = group_pricing_start(scenario);
    for (int split = 0; split < space.num_splits; split++)
        space_visit(&space, split, &arena, family_look, c);
    group_pricing_free(&c->pricing);
    loose_free(&loose);
    arena_free(&arena);
}

static void checks_assert(const Checks *c) {
    CU_ASSERT(c->num_plans > 500 && c->num_splits == NUM_DRAWS * c->num_plans);
    CU_ASSERT(c->num_interleaved > 50);
    CU_ASSERT_EQUAL(c->num_faster, 0);
    CU_ASSERT_EQUAL(c->num_unfit, 0);
    CU_ASSERT_EQUAL(c->num_bounds_unlike, 0);
    CU_ASSERT(c->num_none > 50);
    CU_ASSERT(2 * c->num_none_known > c->num_none);
}

static void no_split_of_small_jobs_is_below_what_is_said(void) {
    Checks c = {.state = 11};
    for (int number = 0; number < case_count(60); number++) {
        Arena arena = {0};
        Scenario scenario;
        CU_ASSERT_EQUAL_FATAL(case_scenario(number, &arena, &scenario).code, STATUS_OK);
        scenario.fit_deviates = number % 3;
        test_pool(&scenario.cluster)->gpu.memory_available_bytes =
            case_memory_bytes(number, &scenario) / 2;
        space_look(&scenario, 19, &c);
        arena_free(&arena);
    }
    checks_assert(&c);
}

static void no_split_of_presets_is_below_what_is_said(void) {
    static const char *const MODELS[] = {"gpt2-1.5b", "gemma-2-2b",  "deepseek-v2-lite",
                                         "bloom-7b1", "deepseek-v3", "llama-3.1-8b"};
    static const char *const PARALLEL[] = {"{\"micro_batch\": 1}", "{\"zero_stage\": 1}",
                                           "{\"schedule\": \"zb-h1\"}"};
    Checks c = {.state = 12};
    for (int i = 0; i < 18; i++) {
        Arena arena = {0};
        Scenario scenario;
        const Status status =
            case_preset(MODELS[i / 3], "dgx-h100:4", 2048, 64, PARALLEL[i % 3], &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        test_pool(&scenario.cluster)->gpu.memory_available_bytes = i / 3 == 4 ? 300e9 : 20e9;
        space_look(&scenario, 127, &c);
        arena_free(&arena);
    }
    checks_assert(&c);
    CU_ASSERT(c.loss_frac / c.num_bounds < 0.5);
}

// Half of the bubble of splits that are even, within a tenth where there is more than one group of
// micro-batches, and never more.
static void an_interleaved_bound_is_half_of_the_bubble(void) {
    for (int pp = 2; pp <= 64; pp *= 2)
        for (int vpp = 2; vpp <= 8; vpp *= 2)
            for (int groups = 1; groups <= 16; groups *= 4) {
                const double n = groups * pp, even_s = n / pp;
                const double bubble_s = (pp - 1.0) / vpp / pp;
                const double gain_s = interleaved_bound_s(pp, vpp, n, 1, 0, 0) - even_s;
                CU_ASSERT(groups == 1 || gain_s > 0.4 * bubble_s);
                CU_ASSERT(gain_s <= 0.5 * bubble_s);
            }
}

CU_TestInfo sketch_splits_tests[] = {
    {"no_split_of_small_jobs_is_below_what_is_said", no_split_of_small_jobs_is_below_what_is_said},
    {"no_split_of_presets_is_below_what_is_said", no_split_of_presets_is_below_what_is_said},
    {"an_interleaved_bound_is_half_of_the_bubble", an_interleaved_bound_is_half_of_the_bubble},
    CU_TEST_INFO_NULL,
};
