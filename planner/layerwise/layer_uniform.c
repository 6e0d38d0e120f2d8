#include "planner/layerwise/layer_uniform.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double bound_s;
    int strategy;
} Bounded;

static int compare_bounded(const void *a, const void *b) {
    const Bounded *x = a, *y = b;
    if (x->bound_s != y->bound_s) return x->bound_s < y->bound_s ? -1 : 1;
    return x->strategy - y->strategy;
}

// Memory and lower bound of each strategy throughout.
static void uniforms_bound(const Scenario *scenario, const LayerMenu *menu, LayerUniforms *out,
                           Bounded *order) {
    Arena scratch = {0};
    for (int s = 0; s < menu->num_strategies; s++) {
        const Plan *plan = &menu->plans[s];
        const Workload *workload = &menu->workloads[s];
        double missing;
        out->bytes[s] = estimate_memory(scenario, plan, workload, &missing).counted_bytes;
        out->bound_s[s] = INFINITY;
        if (missing <= 0) {
            arena_reset(&scratch);
            const Prices prices = chunks_price(scenario, plan, workload, &scratch);
            out->bound_s[s] = estimate_lower_bound_s(scenario, plan, workload, &prices);
        }
        order[s] = (Bounded){out->bound_s[s], s};
    }
    arena_free(&scratch);
}

LayerUniforms layer_uniforms(const Scenario *scenario, const LayerMenu *menu, Arena *arena) {
    const int num = menu->num_strategies;
    Arena scratch = {0};
    LayerUniforms out = {.bound_s = ARENA_ARRAY(arena, num, double),
                         .bytes = ARENA_ARRAY(arena, num, double),
                         .best = -1,
                         .estimate.step_time_s = INFINITY};
    Bounded *order = ARENA_ARRAY(arena, num, Bounded);
    uniforms_bound(scenario, menu, &out, order);
    qsort(order, (size_t)num, sizeof *order, compare_bounded);
    for (int i = 0; i < num && order[i].bound_s < out.estimate.step_time_s; i++) {
        Estimate estimate;
        arena_reset(&scratch);
        const Status priced =
            estimate_plan(scenario, &menu->plans[order[i].strategy], &scratch, &estimate, NULL);
        if (priced.code != STATUS_OK || estimate.step_time_s >= out.estimate.step_time_s) continue;
        out.estimate = estimate;
        out.best = order[i].strategy;
    }
    arena_free(&scratch);
    return out;
}

static bool is_of_pair(const LayerMenu *menu, int strategy, int layout, int zero_stage) {
    return menu->layout[strategy] == layout && menu->plans[strategy].zero_stage == zero_stage;
}

// The strategy of a layout and ZeRO stage that is the fastest throughout by its bound; where none
// fits, the leanest; -1 where there is none.
static int pair_best(const LayerMenu *menu, const LayerUniforms *u, int layout, int zero_stage) {
    int best = -1;
    for (int s = 0; s < menu->num_strategies; s++) {
        if (!is_of_pair(menu, s, layout, zero_stage)) continue;
        if (best < 0 || u->bound_s[s] < u->bound_s[best] ||
            (isinf(u->bound_s[s]) && isinf(u->bound_s[best]) && u->bytes[s] < u->bytes[best]))
            best = s;
    }
    return best;
}

int layer_bases(const LayerMenu *menu, const LayerUniforms *u, int most, int *bases) {
    enum { NUM_STAGES = 4 };
    const int num = menu->num_layouts;
    Arena scratch = {0};
    Bounded *order = ARENA_ARRAY(&scratch, num * NUM_STAGES, Bounded);
    int num_pairs = 0, num_bases = 0;
    for (int layout = 0; layout < num; layout++)
        for (int stage = 0; stage < NUM_STAGES; stage++) {
            const int s = pair_best(menu, u, layout, stage);
            if (s < 0) continue;
            Bounded *pair = &order[num_pairs++];
            *pair = (Bounded){u->bound_s[s], s};
            // Without one that fits the leanest come first, behind those that do.
            if (isinf(pair->bound_s)) pair->bound_s = 1e30 * u->bytes[s];
            if (u->best >= 0 && is_of_pair(menu, u->best, layout, stage))
                *pair = (Bounded){0, u->best};
        }
    qsort(order, (size_t)num_pairs, sizeof *order, compare_bounded);
    while (num_bases < num_pairs && num_bases < most) {
        bases[num_bases] = order[num_bases].strategy;
        num_bases++;
    }
    arena_free(&scratch);
    return num_bases;
}
