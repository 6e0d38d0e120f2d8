#include "planner/layer_choice.h"

#include "base/output_file.h"
#include "planner/layer_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BASES = 3 };

typedef struct {
    const Scenario *scenario;
    const LayerMenu *menu;
    Arena *arena;
    double *uniform_bound_s; // [num_strategies] throughout; INFINITY where it does not fit
    double *uniform_bytes;   // [num_strategies] on the worst device
    int uniform;             // the best of them; -1 where none fits
    double uniform_s;        // its estimate; INFINITY
} Chooser;

// A choice under one base.
typedef struct {
    int base;
    int *strategy; // [num_layers]
    double step_time_s;
    double device_bytes, available_bytes;
    bool optimal;
    double gap_frac;
    int64_t num_states;
} Found;

// --- One strategy throughout

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
static void uniforms_bound(Chooser *c, Bounded *order) {
    const LayerMenu *menu = c->menu;
    Arena scratch = {0};
    for (int s = 0; s < menu->num_strategies; s++) {
        const Plan *plan = &menu->plans[s];
        const Workload *workload = &menu->workloads[s];
        double missing;
        c->uniform_bytes[s] = estimate_memory(c->scenario, plan, workload, &missing).device_bytes;
        c->uniform_bound_s[s] = INFINITY;
        if (missing <= 0) {
            arena_reset(&scratch);
            const Prices prices = chunks_price(c->scenario, plan, workload, &scratch);
            c->uniform_bound_s[s] = estimate_lower_bound_s(c->scenario, plan, workload, &prices);
        }
        order[s] = (Bounded){c->uniform_bound_s[s], s};
    }
    arena_free(&scratch);
}

// The best strategy throughout, priced in the order of the bounds until the next is above it.
static void uniforms_price(Chooser *c) {
    const int num = c->menu->num_strategies;
    Arena scratch = {0};
    c->uniform_bytes = ARENA_ARRAY(c->arena, num, double);
    c->uniform_bound_s = ARENA_ARRAY(c->arena, num, double);
    Bounded *order = ARENA_ARRAY(c->arena, num, Bounded);
    uniforms_bound(c, order);
    qsort(order, (size_t)num, sizeof *order, compare_bounded);
    c->uniform = -1;
    c->uniform_s = INFINITY;
    for (int i = 0; i < num && order[i].bound_s < c->uniform_s; i++) {
        const int s = order[i].strategy;
        Estimate estimate;
        arena_reset(&scratch);
        if (estimate_plan(c->scenario, &c->menu->plans[s], &scratch, &estimate, NULL).code !=
                STATUS_OK ||
            estimate.step_time_s >= c->uniform_s)
            continue;
        c->uniform_s = estimate.step_time_s;
        c->uniform = s;
    }
    arena_free(&scratch);
}

// The strategy of a layout that is the fastest throughout by its bound; where none fits, the
// leanest.
static int layout_best(const Chooser *c, int layout) {
    int best = -1;
    for (int s = 0; s < c->menu->num_strategies; s++) {
        if (c->menu->layout[s] != layout) continue;
        if (best < 0 || c->uniform_bound_s[s] < c->uniform_bound_s[best] ||
            (isinf(c->uniform_bound_s[s]) && isinf(c->uniform_bound_s[best]) &&
             c->uniform_bytes[s] < c->uniform_bytes[best]))
            best = s;
    }
    return best;
}

// The bases that are tried: the best strategies of the best layouts.
static int bases_pick(const Chooser *c, int *bases) {
    const int num = c->menu->num_layouts;
    Arena scratch = {0};
    Bounded *order = ARENA_ARRAY(&scratch, num, Bounded);
    for (int layout = 0; layout < num; layout++) {
        const int s = layout_best(c, layout);
        order[layout] = (Bounded){c->uniform_bound_s[s], s};
        // Without one that fits the leanest come first, behind those that do.
        if (isinf(order[layout].bound_s)) order[layout].bound_s = 1e30 * c->uniform_bytes[s];
        if (c->uniform >= 0 && c->menu->layout[c->uniform] == layout)
            order[layout] = (Bounded){0, c->uniform};
    }
    qsort(order, (size_t)num, sizeof *order, compare_bounded);
    int num_bases = 0;
    while (num_bases < num && num_bases < MAX_BASES) {
        bases[num_bases] = order[num_bases].strategy;
        num_bases++;
    }
    arena_free(&scratch);
    return num_bases;
}

// --- The step

// What a stage's choice changes against the base throughout.
static void stage_exchange(const LayerMenu *menu, const LayerStage *stage, int base,
                           const int *rows, Price *forward, Price *backward, double *update) {
    const LayerwiseProblem *p = &stage->problem;
    const int num_kinds = menu->scenario.model.num_kinds;
    double edge_s = 0, base_edge_s = 0, change_s = 0;
    for (int l = 0; l < p->num_layers; l++) {
        const int i = l * p->num_strategies;
        edge_s = fmax(edge_s, p->level_s[p->level[i + rows[l]]]);
        base_edge_s = fmax(base_edge_s, p->level_s[p->level[i + base]]);
        if (l > 0)
            change_s +=
                menu->change_s[p->layout[rows[l - 1]] * p->num_layouts + p->layout[rows[l]]];
        const int layer = l - stage->first_row;
        if (layer < 0 || layer >= stage->num_rows || rows[l] == base) continue;
        const int kind = menu->scenario.model.layer_kind[stage->first_layer + layer];
        const LayerCost *own = &menu->costs[rows[l] * num_kinds + kind];
        const LayerCost *other = &menu->costs[base * num_kinds + kind];
        layer_price_add(forward, &own->forward, 1);
        layer_price_add(forward, &other->forward, -1);
        layer_price_add(backward, &own->backward, 1);
        layer_price_add(backward, &other->backward, -1);
        *update += own->sync_s + own->update_s - other->sync_s - other->update_s;
    }
    const double half_s =
        change_s / 2 + (edge_s - base_edge_s) / 2 / (double)menu->plans[base].num_microbatches;
    Price beside = {0};
    beside.term_s[TERM_DP] = beside.part_s[PART_INSIDE] = half_s;
    layer_price_add(forward, &beside, 1);
    layer_price_add(backward, &beside, 1);
}

// Critical path of the base's Program with the chunks as they were chosen.
//   rows  [pp] strategies of each stage's problem
static double step_predict(const Chooser *c, int base, const LayerStage *stages,
                           const int *const *rows) {
    const Plan *plan = &c->menu->plans[base];
    Arena scratch = {0};
    Estimate ignored;
    EstimateParts parts;
    if (estimate_plan(c->scenario, plan, &scratch, &ignored, &parts).code != STATUS_OK)
        return INFINITY;
    Price *forward = ARENA_ARRAY(&scratch, plan->pp, Price);
    Price *backward = ARENA_ARRAY(&scratch, plan->pp, Price);
    double *optimizer_s = ARENA_ARRAY(&scratch, plan->pp, double);
    for (int r = 0; r < plan->pp; r++) {
        forward[r] = parts.prices.forward[r];
        backward[r] = parts.prices.backward[r];
        optimizer_s[r] = parts.prices.optimizer_s[r];
        stage_exchange(c->menu, &stages[r], base, rows[r], &forward[r], &backward[r],
                       &optimizer_s[r]);
        optimizer_s[r] = fmax(0, optimizer_s[r]);
    }
    parts.prices.forward = forward;
    parts.prices.backward = backward;
    parts.prices.optimizer_s = optimizer_s;
    const bool apart = c->scenario->training.optimizer_post_validation;
    Timeline timeline;
    const Status ran = (apart ? timeline_run_steady : timeline_run)(&parts.program, &parts.prices,
                                                                    false, &scratch, &timeline);
    const double step_time_s = ran.code == STATUS_OK ? timeline.step_time_s : INFINITY;
    arena_free(&scratch);
    return step_time_s;
}

// --- One base

// A stage's rows; false where nothing fits.
static bool stage_solve(const LayerStage *stage, Arena *arena, const int **rows, Found *found) {
    const LayerwiseAnswer answer = layerwise_solve(&stage->problem, 0, arena);
    found->num_states += answer.num_states;
    if (!answer.feasible) return false;
    int *tidy = ARENA_ARRAY(arena, stage->problem.num_layers, int);
    memcpy(tidy, answer.strategy, (size_t)stage->problem.num_layers * sizeof *tidy);
    layerwise_tidy(&stage->problem, tidy);
    *rows = tidy;
    found->optimal &= answer.optimal;
    found->gap_frac = fmax(found->gap_frac, 1 - answer.bound_s / answer.time_s);
    const double bytes =
        layer_stage_device_bytes(stage, layerwise_memory_bytes(&stage->problem, tidy));
    if (bytes * found->available_bytes <= found->device_bytes * stage->available_bytes) return true;
    found->device_bytes = bytes;
    found->available_bytes = stage->available_bytes;
    return true;
}

static bool base_solve(const Chooser *c, int base, Found *out) {
    const int pp = c->menu->plans[base].pp;
    Arena scratch = {0};
    LayerStage *stages = ARENA_ARRAY(&scratch, pp, LayerStage);
    const int **rows = ARENA_ARRAY(&scratch, pp, const int *);
    *out = (Found){.base = base, .optimal = true, .available_bytes = 1};
    bool fits = true;
    for (int r = 0; r < pp && fits; r++) {
        stages[r] = layer_stage(c->menu, base, r, &scratch);
        fits = stage_solve(&stages[r], &scratch, &rows[r], out);
    }
    if (fits) {
        out->step_time_s = step_predict(c, base, stages, rows);
        out->strategy = ARENA_ARRAY(c->arena, c->scenario->model.num_layers, int);
        for (int r = 0; r < pp; r++)
            for (int l = 0; l < stages[r].num_rows; l++)
                out->strategy[stages[r].first_layer + l] = rows[r][stages[r].first_row + l];
    }
    arena_free(&scratch);
    return fits;
}

// --- The choice

static bool differs_in_recompute_alone(const Plan *a, const Plan *b) {
    return layouts_are_alike(a, b) && a->zero_stage == b->zero_stage &&
           a->micro_batch == b->micro_batch && a->sequence_parallel == b->sequence_parallel;
}

// The k of "the first k layers of each stage fully, the others not", which launchers have a flag
// for; -1 where the layers are not so.
static int first_layers(const Plan *plan, const unsigned char *recompute) {
    int k = 0;
    for (int c = 0; c < plan->num_chunks; c++) {
        int full = 0;
        while (full < plan->chunks[c].num_layers &&
               recompute[plan->chunks[c].first_layer + full] == RECOMPUTE_FULL)
            full++;
        if (full > k) k = full;
    }
    for (int c = 0; c < plan->num_chunks; c++)
        for (int l = 0; l < plan->chunks[c].num_layers; l++)
            if (recompute[plan->chunks[c].first_layer + l] !=
                (l < k ? RECOMPUTE_FULL : RECOMPUTE_NONE))
                return -1;
    return k;
}

static void recompute_set(const Scenario *scenario, Plan *plan, const unsigned char *recompute) {
    const int k = scenario->model.num_mtp_layers > 0 ? -1 : first_layers(plan, recompute);
    plan->layer_recompute = k < 0 ? recompute : NULL;
    if (k < 0) return;
    plan->recompute = RECOMPUTE_FULL;
    plan->recompute_modules = 0;
    plan->recompute_layers = k;
}

// The plan itself, where `estimate` can price it.
static void choice_estimate(const Chooser *c, LayerChoice *choice) {
    const int num_layers = c->scenario->model.num_layers;
    unsigned char *recompute = ARENA_ARRAY(c->arena, num_layers, unsigned char);
    bool mixed = false;
    Plan plan = choice->base;
    for (int l = 0; l < num_layers; l++) {
        const Plan *own = &choice->layers[l];
        if (!differs_in_recompute_alone(own, &choice->base)) return;
        recompute[l] = (unsigned char)own->recompute;
        mixed |= own->recompute != choice->base.recompute;
        if (own->recompute == RECOMPUTE_SELECTIVE) plan.recompute_modules = own->recompute_modules;
    }
    if (mixed) recompute_set(c->scenario, &plan, recompute);
    Arena scratch = {0};
    choice->estimated =
        estimate_plan(c->scenario, &plan, &scratch, &choice->estimate, NULL).code == STATUS_OK;
    arena_free(&scratch);
    if (!choice->estimated) return;
    choice->plan = plan;
    choice->cost_error_frac = choice->step_time_s / choice->estimate.step_time_s - 1;
    choice->step_time_s = choice->estimate.step_time_s;
}

static void choice_set(const Chooser *c, const Found *found, LayerChoice *out) {
    const LayerMenu *menu = c->menu;
    const int num_layers = c->scenario->model.num_layers;
    Plan *layers = ARENA_ARRAY(c->arena, num_layers, Plan);
    for (int l = 0; l < num_layers; l++) layers[l] = menu->plans[found->strategy[l]];
    *out = (LayerChoice){.base = menu->plans[found->base],
                         .layers = layers,
                         .uniform = menu->plans[c->uniform >= 0 ? c->uniform : found->base],
                         .uniform_step_s = c->uniform_s,
                         .step_time_s = found->step_time_s,
                         .memory_device_bytes = found->device_bytes,
                         .memory_available_bytes = found->available_bytes,
                         .optimal = found->optimal,
                         .gap_frac = found->optimal ? 0 : found->gap_frac,
                         .num_strategies = menu->num_strategies,
                         .num_layouts = menu->num_layouts,
                         .num_states = found->num_states};
    choice_estimate(c, out);
}

// The best strategy throughout: nothing that differs was faster.
static Found uniform_found(const Chooser *c, const Found *best) {
    Found found = *best;
    found.base = c->uniform;
    found.step_time_s = c->uniform_s;
    found.device_bytes = c->uniform_bytes[found.base];
    const int num_layers = c->scenario->model.num_layers;
    found.strategy = ARENA_ARRAY(c->arena, num_layers, int);
    for (int l = 0; l < num_layers; l++) found.strategy[l] = found.base;
    return found;
}

bool layer_choose(const Scenario *scenario, const Plan *plans, int num_plans, Arena *arena,
                  LayerChoice *out) {
    Arena menu_arena = {0};
    const LayerMenu menu = layer_menu(scenario, plans, num_plans, &menu_arena);
    Chooser c = {.scenario = scenario, .menu = &menu, .arena = arena};
    uniforms_price(&c);
    Found best = {.step_time_s = INFINITY};
    int64_t num_states = 0;
    bool optimal = true;
    int bases[MAX_BASES];
    const int num_bases = bases_pick(&c, bases);
    for (int i = 0; i < num_bases; i++) {
        Found found;
        const bool fits = base_solve(&c, bases[i], &found);
        num_states += found.num_states;
        optimal &= found.optimal;
        if (fits && found.step_time_s < best.step_time_s) best = found;
    }
    best.num_states = num_states;
    best.optimal = optimal;
    if (best.strategy) choice_set(&c, &best, out);
    if (best.strategy && out->step_time_s >= out->uniform_step_s) {
        const Found uniform = uniform_found(&c, &best);
        choice_set(&c, &uniform, out);
    }
    arena_free(&menu_arena);
    return best.strategy != NULL;
}

// --- The integer program

static int plan_index(const LayerMenu *menu, const Plan *plan) {
    for (int s = 0; s < menu->num_strategies; s++)
        if (menu->plans[s].recompute == plan->recompute &&
            differs_in_recompute_alone(&menu->plans[s], plan))
            return s;
    return 0;
}

static const char *lp_comment(const LayerMenu *menu, int rank, double time_s, Arena *arena) {
    const char *text = arena_printf(
        arena,
        "\\ Stage %d of a layer-wise plan: the strategies of its layers, of which the first and\n"
        "\\ last rows are embedding and head (or nothing). Optimum: %.12g ms. Strategies:\n",
        rank, 1e3 * time_s);
    for (int s = 0; s < menu->num_strategies; s++)
        text =
            arena_printf(arena, "%s\\   %d: %s\n", text, s, plan_describe(&menu->plans[s], arena));
    return text;
}

Status layer_choice_write_lp(const Scenario *scenario, const Plan *plans, int num_plans,
                             const LayerChoice *choice, const char *path) {
    Arena scratch = {0};
    const LayerMenu menu = layer_menu(scenario, plans, num_plans, &scratch);
    const int base = plan_index(&menu, &choice->base);
    LayerStage slowest = {0};
    double slowest_s = -1;
    int slowest_rank = 0;
    for (int r = 0; r < choice->base.pp; r++) {
        const LayerStage stage = layer_stage(&menu, base, r, &scratch);
        const LayerwiseAnswer answer = layerwise_solve(&stage.problem, 0, &scratch);
        if (answer.time_s <= slowest_s) continue;
        slowest = stage;
        slowest_s = answer.time_s;
        slowest_rank = r;
    }
    OutputFile file;
    Status status = output_open(path, &file);
    if (status.code == STATUS_OK) {
        layerwise_write_lp(&slowest.problem, lp_comment(&menu, slowest_rank, slowest_s, &scratch),
                           file.stream);
        status = output_close(&file, status);
    }
    arena_free(&scratch);
    return status;
}
