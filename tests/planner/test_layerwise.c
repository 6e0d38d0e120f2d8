#include "planner/layerwise/layerwise.h"

#include "tests/planner/lp_referee.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LAYERS = 12, MAX_STRATEGIES = 6, MAX_LAYOUTS = 3, MAX_LEVELS = 3 };
enum { CELLS = MAX_LAYERS * MAX_STRATEGIES, CHANGES = MAX_LAYOUTS * MAX_LAYOUTS };

typedef struct {
    LayerwiseProblem problem;
    double time_s[CELLS], lasts[CELLS], saved[CELLS], peak[CELLS];
    int level[CELLS], layout[MAX_STRATEGIES];
    double reshard_s[CHANGES], reshard_bytes[CHANGES];
    double level_s[MAX_LEVELS], level_bytes[MAX_LEVELS];
} Case;

static double draw(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 24);
}

static int draw_count(uint64_t *state, int most) {
    return 1 + (int)(draw(state) * most);
}

// Faster strategies hold more, as in life; bytes are whole, some choices are closed.
static void row_draw(Case *c, int layer, uint64_t *state) {
    const int n = c->problem.num_strategies;
    for (int s = 0; s < n; s++) {
        const int i = layer * n + s;
        const double fast = draw(state);
        c->time_s[i] = 0.010 + 0.010 * (1 - fast) + 0.002 * draw(state);
        c->lasts[i] = floor(1e8 * (1 + fast + draw(state)));
        c->saved[i] = floor(1e8 * 2 * fast * draw(state));
        c->peak[i] = floor(c->saved[i] + 4e8 * draw(state));
        c->level[i] = (int)(draw(state) * c->problem.num_levels);
        if (s > 0 && draw(state) < 0.1) c->time_s[i] = INFINITY;
    }
}

static void ends_draw(Case *c, uint64_t *state) {
    LayerwiseProblem *p = &c->problem;
    for (int s = 0; s < p->num_strategies; s++) c->layout[s] = (int)(draw(state) * p->num_layouts);
    for (int i = 0; i < p->num_layouts * p->num_layouts; i++) {
        const bool same = i % (p->num_layouts + 1) == 0;
        c->reshard_s[i] = same ? 0 : 0.004 * draw(state);
        c->reshard_bytes[i] = same ? 0 : floor(5e7 * draw(state));
    }
    for (int k = 1; k < p->num_levels; k++) {
        c->level_s[k] = c->level_s[k - 1] + 0.005 * draw(state);
        c->level_bytes[k] = c->level_bytes[k - 1] + floor(1e8 * draw(state));
    }
}

// Chain `number` of an endless list. Half of them have equal layers.
static void case_draw(int number, int most_layers, Case *c) {
    uint64_t state = (uint64_t)number * 7919 + 11;
    *c = (Case){0};
    LayerwiseProblem *p = &c->problem;
    p->num_layers = draw_count(&state, most_layers);
    p->num_strategies = draw_count(&state, MAX_STRATEGIES);
    p->num_layouts = draw_count(&state, MAX_LAYOUTS);
    p->num_levels = draw_count(&state, MAX_LEVELS);
    const bool equal = draw(&state) < 0.5;
    row_draw(c, 0, &state);
    for (int l = 1; l < p->num_layers; l++) {
        uint64_t again = (uint64_t)number * 7919 + 11;
        for (int i = 0; i < 5; i++) draw(&again);
        row_draw(c, l, equal ? &again : &state);
    }
    ends_draw(c, &state);
    p->time_s = c->time_s;
    p->lasts_bytes = c->lasts;
    p->saved_bytes = c->saved;
    p->peak_bytes = c->peak;
    p->level = c->level;
    p->layout = c->layout;
    p->reshard_s = c->reshard_s;
    p->reshard_bytes = c->reshard_bytes;
    p->level_s = c->level_s;
    p->level_bytes = c->level_bytes;
    p->limit_bytes = floor(p->num_layers * 1e8 * (1 + 3 * draw(&state)) + 3e8);
}

// --- Every plan there is

static double brute_force(const LayerwiseProblem *p, int *strategy, int layer) {
    if (layer == p->num_layers)
        return layerwise_memory_bytes(p, strategy) <= p->limit_bytes ? layerwise_time_s(p, strategy)
                                                                     : INFINITY;
    double best = INFINITY;
    for (strategy[layer] = 0; strategy[layer] < p->num_strategies; strategy[layer]++)
        if (isfinite(p->time_s[layer * p->num_strategies + strategy[layer]]))
            best = fmin(best, brute_force(p, strategy, layer + 1));
    return best;
}

static void no_plan_that_fits_is_faster(void) {
    int num_fitting = 0, num_limited = 0;
    for (int number = 0; number < 400; number++) {
        Arena arena = {0};
        Case c;
        case_draw(number, 6, &c);
        int strategy[MAX_LAYERS];
        const double best = brute_force(&c.problem, strategy, 0);
        const LayerwiseAnswer answer = layerwise_solve(&c.problem, 0, &arena);
        CU_ASSERT_EQUAL(answer.feasible, isfinite(best));
        CU_ASSERT(answer.optimal);
        if (answer.feasible) {
            CU_ASSERT_DOUBLE_EQUAL(answer.time_s / best, 1, 1e-12);
            CU_ASSERT(answer.memory_bytes <= c.problem.limit_bytes);
            CU_ASSERT_EQUAL(answer.time_s, layerwise_time_s(&c.problem, answer.strategy));
            c.problem.limit_bytes = INFINITY;
            num_limited += brute_force(&c.problem, strategy, 0) < best;
        }
        num_fitting += answer.feasible;
        arena_free(&arena);
    }
    CU_ASSERT(num_fitting > 200 && num_fitting < 390);
    CU_ASSERT(num_limited > 100); // memory decides
}

// Two strategies, 2 s with 1 byte and 1 s with 3 bytes; 4 layers, 8 bytes: two layers may be fast.
static void memory_is_spent_where_it_fits(void) {
    Arena arena = {0};
    const double time_s[] = {2, 1, 2, 1, 2, 1, 2, 1}, lasts[] = {1, 3, 1, 3, 1, 3, 1, 3};
    const double none[8] = {0};
    const int zero[8] = {0};
    LayerwiseProblem p = {.num_layers = 4, .num_strategies = 2, .num_layouts = 1, .num_levels = 1};
    p.time_s = time_s;
    p.lasts_bytes = lasts;
    p.saved_bytes = p.peak_bytes = p.reshard_s = p.reshard_bytes = none;
    p.level_s = p.level_bytes = none;
    p.layout = p.level = zero;
    p.limit_bytes = 8;
    LayerwiseAnswer answer = layerwise_solve(&p, 0, &arena);
    CU_ASSERT(answer.feasible && answer.optimal);
    CU_ASSERT_DOUBLE_EQUAL(answer.time_s, 6, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(answer.memory_bytes, 8, 0);
    p.limit_bytes = 3;
    CU_ASSERT_FALSE(layerwise_solve(&p, 0, &arena).feasible);
    arena_free(&arena);
}

// Peaks of 5 and 1 bytes; the second strategy saves 2. What is saved before a peak adds to it, what
// is saved behind it does not: 5 + 0 in the first layer against 2 + 1 + ... in the last.
static void a_peak_adds_to_what_was_saved_before_it(void) {
    const double none[4] = {0}, saved[] = {0, 2, 0, 2}, peak[] = {5, 3, 5, 3};
    const int zero[4] = {0};
    const LayerwiseProblem p = {.num_layers = 2,
                                .num_strategies = 2,
                                .time_s = none,
                                .lasts_bytes = none,
                                .saved_bytes = saved,
                                .peak_bytes = peak,
                                .num_layouts = 1,
                                .layout = zero,
                                .reshard_s = none,
                                .reshard_bytes = none,
                                .num_levels = 1,
                                .level = zero,
                                .level_s = none,
                                .level_bytes = none};
    CU_ASSERT_EQUAL(layerwise_memory_bytes(&p, (int[]){0, 1}), 5); // max(5, 0 + 3)
    CU_ASSERT_EQUAL(layerwise_memory_bytes(&p, (int[]){1, 0}), 7); // max(3, 2 + 5)
    CU_ASSERT_EQUAL(layerwise_memory_bytes(&p, (int[]){1, 1}), 5); // max(3, 2 + 3)
}

static void giving_up_leaves_a_plan_and_a_bound(void) {
    int num_gave_up = 0;
    for (int number = 0; number < 60; number++) {
        Arena arena = {0};
        Case c;
        case_draw(number, MAX_LAYERS, &c);
        const LayerwiseAnswer whole = layerwise_solve(&c.problem, 0, &arena);
        const LayerwiseAnswer brief = layerwise_solve(&c.problem, 12, &arena);
        if (brief.feasible && whole.feasible) {
            CU_ASSERT(layerwise_memory_bytes(&c.problem, brief.strategy) <= c.problem.limit_bytes);
            CU_ASSERT(brief.bound_s <= whole.time_s * (1 + 1e-9));
            CU_ASSERT(brief.time_s >= whole.time_s * (1 - 1e-9));
            if (brief.optimal) CU_ASSERT_DOUBLE_EQUAL(brief.time_s, whole.time_s, 1e-12);
            num_gave_up += !brief.optimal;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_gave_up > 5);
}

static void tidying_changes_neither_time_nor_fit(void) {
    for (int number = 0; number < 200; number++) {
        Arena arena = {0};
        Case c;
        case_draw(number, MAX_LAYERS, &c);
        const LayerwiseAnswer answer = layerwise_solve(&c.problem, 0, &arena);
        if (answer.feasible) {
            int tidy[MAX_LAYERS];
            memcpy(tidy, answer.strategy, (size_t)c.problem.num_layers * sizeof *tidy);
            layerwise_tidy(&c.problem, tidy);
            CU_ASSERT_DOUBLE_EQUAL(layerwise_time_s(&c.problem, tidy) / answer.time_s, 1, 1e-10);
            CU_ASSERT(layerwise_memory_bytes(&c.problem, tidy) <= c.problem.limit_bytes);
        }
        arena_free(&arena);
    }
}

// --- The referee: the written integer program, read and solved by GLPK in a child process

static double referee(const LayerwiseProblem *problem) {
    char path[] = "/tmp/meshwright-layerwise-XXXXXX";
    const int file = mkstemp(path);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream) return -1;
    layerwise_write_lp(problem, "\\ written by a test\n", stream);
    fclose(stream);
    const double best_s = lp_referee(path) / 1e3;
    unlink(path);
    return best_s;
}

static void the_written_integer_program_agrees(void) {
    int num_fitting = 0;
    for (int number = 400; number < 430; number++) {
        Arena arena = {0};
        Case c;
        case_draw(number, MAX_LAYERS, &c);
        const LayerwiseAnswer answer = layerwise_solve(&c.problem, 0, &arena);
        const double best_s = referee(&c.problem);
        if (answer.feasible) CU_ASSERT_DOUBLE_EQUAL(best_s, answer.time_s, 1e-6 * answer.time_s);
        if (!answer.feasible) CU_ASSERT_EQUAL(best_s, INFINITY);
        num_fitting += answer.feasible;
        arena_free(&arena);
    }
    CU_ASSERT(num_fitting >= 10);
}

CU_TestInfo layerwise_tests[] = {
    {"no_plan_that_fits_is_faster", no_plan_that_fits_is_faster},
    {"memory_is_spent_where_it_fits", memory_is_spent_where_it_fits},
    {"a_peak_adds_to_what_was_saved_before_it", a_peak_adds_to_what_was_saved_before_it},
    {"giving_up_leaves_a_plan_and_a_bound", giving_up_leaves_a_plan_and_a_bound},
    {"tidying_changes_neither_time_nor_fit", tidying_changes_neither_time_nor_fit},
    {"the_written_integer_program_agrees", the_written_integer_program_agrees},
    CU_TEST_INFO_NULL,
};
