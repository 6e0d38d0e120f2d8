#include "planner/layerwise/layer_choice.h"

#include "base/output_file.h"
#include "plan/layer_plans.h"
#include "planner/layerwise/layer_uniform.h"
#include "workload/technique/technique.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BASES = 6, MAX_ROUNDS = 3 };

// What the costs say of memory is good enough where it is this near to the account, of what there
// is.
static const double NEAR_FRAC = 1e-3;
// A base whose costs predict so much more than the best step known is not estimated.
static const double SLOWER_FRAC = 0.03;

typedef struct {
    const Scenario *scenario;
    const LayerMenu *menu;
    Arena *arena;
    LayerUniforms uniforms;
    Deadline *deadline; // NULL: none
} Chooser;

// A choice under one base.
typedef struct {
    int base;
    int *strategy; // [num_layers]
    Plan plan;     // that does so
    Estimate estimate;
    double predicted_s; // by the sum of costs
    bool optimal;
    double gap_frac;
    int64_t num_states;
} Found;

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
    const bool apart = !step_traits(&c->scenario->execution).begins_together;
    Timeline timeline;
    const Status ran = (apart ? timeline_run_steady : timeline_run)(&parts.program, &parts.prices,
                                                                    false, &scratch, &timeline);
    const double step_time_s = ran.code == STATUS_OK ? timeline.step_time_s : INFINITY;
    arena_free(&scratch);
    return step_time_s;
}

// --- The plan of a choice

static Recompute layer_recompute(const Plan *plan, int chunk, int layer) {
    return plan_strategy(plan, plan_layer_strategy(plan, chunk, layer)).recompute;
}

// The k of "the first k layers of each stage fully, the others not", which launchers have a flag
// for; -1 where the layers are not so.
static int first_layers(const Plan *plan) {
    int k = 0;
    for (int c = 0; c < plan->num_chunks; c++) {
        int full = 0;
        while (full < plan->chunks[c].num_layers &&
               layer_recompute(plan, c, full) == RECOMPUTE_FULL)
            full++;
        if (full > k) k = full;
    }
    for (int c = 0; c < plan->num_chunks; c++)
        for (int l = 0; l < plan->chunks[c].num_layers; l++)
            if (layer_recompute(plan, c, l) != (l < k ? RECOMPUTE_FULL : RECOMPUTE_NONE)) return -1;
    return k;
}

// Says of layers that differ in recomputation alone what launchers have a flag for.
static void recompute_shorten(const Scenario *scenario, Plan *plan) {
    if (!plan_mixes_recompute(plan) || scenario->model.num_mtp_layers > 0) return;
    const int k = first_layers(plan);
    if (k < 0) return;
    plan->layers = NULL;
    plan->recompute_modules = 0;
    plan->recompute = k > 0 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    plan->recompute_layers = k > 0 && k < plan_fullest_rank(plan) ? k : ABSENT;
}

static Plan choice_plan(const Chooser *c, int base, const int *strategy) {
    const LayerMenu *menu = c->menu;
    const int num_layers = c->scenario->model.num_layers;
    Arena scratch = {0};
    Plan *own = ARENA_ARRAY(&scratch, num_layers, Plan);
    for (int l = 0; l < num_layers; l++) own[l] = menu->plans[strategy[l]];
    Plan plan = menu->plans[base];
    plan_set_layers(&plan, own, num_layers, c->arena);
    recompute_shorten(c->scenario, &plan);
    arena_free(&scratch);
    return plan;
}

// --- One base

// The stages of a base, as they are chosen.
typedef struct {
    int num; // pp
    LayerStage *stages;
    const int **rows;    // [num] strategies of each stage's problem
    double *stage_s;     // [num] of a step, by the sum of costs
    bool *is_open;       // [num] to be chosen (again)
    double *spare_bytes; // [num] that a choice may need more than its costs say: found by choosing
    double *limit_bytes; // [num] without that
} BaseStages;

// The least that a step takes whose stages [0, num) take so long: the slowest of them, and one
// micro-batch of the others.
static double stages_bound_s(const BaseStages *b, int num, double num_microbatches) {
    double slowest_s = 0, sum_s = 0;
    for (int r = 0; r < num; r++) {
        slowest_s = fmax(slowest_s, b->stage_s[r]);
        sum_s += b->stage_s[r];
    }
    return slowest_s + (sum_s - slowest_s) / num_microbatches;
}

// Chooses a stage; false where nothing fits.
static bool stage_solve(BaseStages *b, int rank, Arena *arena, Found *found) {
    LayerStage *stage = &b->stages[rank];
    stage->problem.limit_bytes = b->limit_bytes[rank] + b->spare_bytes[rank] /
                                                            stage->counted_factor /
                                                            (1 + stage->slack_frac);
    const LayerwiseAnswer answer = layerwise_solve(&stage->problem, 0, arena);
    found->num_states += answer.num_states;
    if (!answer.feasible) return false;
    int *tidy = ARENA_ARRAY(arena, stage->problem.num_layers, int);
    memcpy(tidy, answer.strategy, (size_t)stage->problem.num_layers * sizeof *tidy);
    layerwise_tidy(&stage->problem, tidy);
    b->rows[rank] = tidy;
    b->stage_s[rank] = answer.time_s;
    b->is_open[rank] = false;
    found->optimal &= answer.optimal;
    found->gap_frac = fmax(found->gap_frac, 1 - answer.bound_s / answer.time_s);
    return true;
}

static bool is_late(const Chooser *c) {
    return c->deadline && deadline_is_over(c->deadline);
}

// Chooses the stages that are open and makes the plan of all; false where nothing fits, or what
// does is too slow.
static bool stages_solve(const Chooser *c, BaseStages *b, double enough_s, Arena *arena,
                         Found *found) {
    const double m = (double)c->menu->plans[found->base].num_microbatches;
    for (int r = 0; r < b->num; r++) {
        if (is_late(c) || (b->is_open[r] && !stage_solve(b, r, arena, found))) return false;
        if (stages_bound_s(b, r + 1, m) > enough_s) return false;
    }
    found->strategy = ARENA_ARRAY(c->arena, c->scenario->model.num_layers, int);
    for (int r = 0; r < b->num; r++)
        for (int l = 0; l < b->stages[r].num_rows; l++)
            found->strategy[b->stages[r].first_layer + l] = b->rows[r][b->stages[r].first_row + l];
    found->plan = choice_plan(c, found->base, found->strategy);
    return true;
}

// Sets what choices may need more (or less) than their costs say by what the account of this one
// does, and opens the stages where that differs from what they were chosen with.
//   returns  whether there are such
static bool spare_find(const Chooser *c, BaseStages *b, const Plan *plan, Arena *arena) {
    const Workload workload = workload_build(c->scenario, plan, arena);
    bool differs = false;
    for (int r = 0; r < b->num; r++) {
        const LayerStage *stage = &b->stages[r];
        const double said =
            layer_stage_counted_bytes(stage, layerwise_memory_bytes(&stage->problem, b->rows[r]));
        const double needed = memory_closed_form(c->scenario, plan, &workload, r).counted_bytes;
        const double spare = said - needed;
        b->is_open[r] = fabs(spare - b->spare_bytes[r]) > NEAR_FRAC * stage->available_bytes;
        if (b->is_open[r]) b->spare_bytes[r] = spare;
        differs |= b->is_open[r];
    }
    return differs;
}

// The best choice under a base that fits by the account.
static bool base_solve(const Chooser *c, int base, double best_s, Found *out) {
    const int pp = c->menu->plans[base].pp;
    Arena scratch = {0};
    BaseStages b = {.num = pp,
                    .stages = ARENA_ARRAY(&scratch, pp, LayerStage),
                    .rows = ARENA_ARRAY(&scratch, pp, const int *),
                    .stage_s = ARENA_ARRAY(&scratch, pp, double),
                    .is_open = ARENA_ARRAY(&scratch, pp, bool),
                    .spare_bytes = ARENA_ARRAY(&scratch, pp, double),
                    .limit_bytes = ARENA_ARRAY(&scratch, pp, double)};
    for (int r = 0; r < pp; r++) {
        b.stages[r] = layer_stage(c->menu, base, r, &scratch);
        b.limit_bytes[r] = b.stages[r].problem.limit_bytes;
        b.is_open[r] = true;
    }
    bool fits = false;
    const double enough_s = best_s * (1 + SLOWER_FRAC);
    Found found = {.base = base, .optimal = true};
    for (int round = 0; round < MAX_ROUNDS; round++) {
        if (!stages_solve(c, &b, enough_s, &scratch, &found)) break;
        found.predicted_s = step_predict(c, base, b.stages, b.rows);
        if (found.predicted_s > enough_s) break;
        const Status priced =
            estimate_plan(c->scenario, &found.plan, &scratch, &found.estimate, NULL);
        if (priced.code == STATUS_OK && found.estimate.fits &&
            (!fits || found.estimate.step_time_s < out->estimate.step_time_s)) {
            *out = found;
            fits = true;
        }
        if (!spare_find(c, &b, &found.plan, &scratch)) break;
    }
    if (fits) out->num_states = found.num_states;
    arena_free(&scratch);
    return fits;
}

// --- The choice

static void choice_set(const Chooser *c, const Found *found, LayerChoice *out) {
    const LayerMenu *menu = c->menu;
    const int num_layers = c->scenario->model.num_layers;
    Plan *layers = ARENA_ARRAY(c->arena, num_layers, Plan);
    for (int l = 0; l < num_layers; l++) layers[l] = menu->plans[found->strategy[l]];
    *out = (LayerChoice){.base = menu->plans[found->base],
                         .layers = layers,
                         .uniform =
                             menu->plans[c->uniforms.best >= 0 ? c->uniforms.best : found->base],
                         .uniform_step_s = c->uniforms.estimate.step_time_s,
                         .plan = found->plan,
                         .estimate = found->estimate,
                         .optimal = found->optimal,
                         .gap_frac = found->optimal ? 0 : found->gap_frac,
                         .cost_error_frac = found->predicted_s / found->estimate.step_time_s - 1,
                         .num_strategies = menu->num_strategies,
                         .num_layouts = menu->num_layouts,
                         .num_states = found->num_states};
}

// The best strategy throughout.
static Found uniform_found(const Chooser *c) {
    const int num_layers = c->scenario->model.num_layers;
    Found found = {
        .base = c->uniforms.best, .optimal = true, .predicted_s = c->uniforms.estimate.step_time_s};
    found.plan = c->menu->plans[c->uniforms.best];
    found.estimate = c->uniforms.estimate;
    found.strategy = ARENA_ARRAY(c->arena, num_layers, int);
    for (int l = 0; l < num_layers; l++) found.strategy[l] = found.base;
    return found;
}

bool layer_choose(const Scenario *scenario, const Plan *plans, int num_plans, double limit_s,
                  Deadline *deadline, Arena *arena, LayerChoice *out) {
    Arena menu_arena = {0};
    const LayerMenu menu = layer_menu(scenario, plans, num_plans, &menu_arena);
    Chooser c = {.scenario = scenario, .menu = &menu, .deadline = deadline, .arena = arena};
    c.uniforms = layer_uniforms(scenario, &menu, arena);
    Found best = {.estimate.step_time_s = INFINITY};
    if (c.uniforms.best >= 0) best = uniform_found(&c);
    int64_t num_states = 0;
    bool optimal = true;
    int bases[MAX_BASES];
    const int num_bases = layer_bases(&menu, &c.uniforms, MAX_BASES, bases);
    for (int i = 0; i < num_bases; i++) {
        Found found;
        if (!base_solve(&c, bases[i], fmin(best.estimate.step_time_s, limit_s), &found)) continue;
        num_states += found.num_states;
        optimal &= found.optimal;
        if (found.estimate.step_time_s < best.estimate.step_time_s) best = found;
    }
    best.num_states = num_states;
    best.optimal = optimal && !is_late(&c);
    if (best.strategy) choice_set(&c, &best, out);
    arena_free(&menu_arena);
    return best.strategy != NULL;
}

// --- The integer program

static int plan_index(const LayerMenu *menu, const Plan *plan) {
    for (int s = 0; s < menu->num_strategies; s++)
        if (menu->plans[s].recompute == plan->recompute &&
            menu->plans[s].zero_stage == plan->zero_stage &&
            plans_layouts_are_alike(&menu->plans[s], plan))
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
