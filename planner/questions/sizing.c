#include "planner/questions/sizing.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "planner/harvest/loose.h"
#include "planner/space/space.h"
#include "planner/why/relax.h"
#include "planner/why/robust.h"

#include <math.h>

typedef struct {
    Scenario scenario; // of the number of GPUs looked at
    const PlannerOptions *options;
    PlannerOptions each; // of the single searches
    Deadline deadline;
    double end_s; // of the budget; INFINITY
    Sizing sizing;
    double model_flops; // of a step
    Arena scratch;
    Arena pools; // of the sizes so far
} Sizer;

static void progress_call(Sizer *s, int num_gpus) {
    if (s->options->standing) *s->options->standing = (SearchStanding){INFINITY, 0};
    if (s->options->progress)
        s->options->progress(s->options->progress_context, "GPUs looked at", num_gpus,
                             s->sizing.num_gpus);
}

static void gpus_set(Sizer *s, int num_nodes) {
    s->scenario.cluster =
        cluster_with_gpus(&s->scenario.cluster, num_nodes * s->sizing.node_gpus, &s->pools);
    progress_call(s, s->scenario.cluster.num_gpus);
}

static bool is_fillable(Sizer *s) {
    return relax_reaches(&s->scenario, HARVEST_LEGAL, s->options->num_threads, &s->scratch, NULL);
}

static double value_of(const PlannerResult *result) {
    const Estimate *estimate = &result->entries[0].estimate;
    return estimate->step_time_s * (result->robust ? robust_raise(estimate) : 1);
}

// Whether no configuration can be fast enough by its loose bound.
static bool is_bounded(Sizer *s) {
    Space space;
    space_build(&s->scenario, &s->scratch, &space);
    double *bound_s = ARENA_ARRAY(&s->scratch, space.num_splits, double);
    LooseCosts costs;
    const Deadline *deadline = s->sizing.num_gpus > 0 ? &s->deadline : NULL;
    loose_build(&space, s->options->num_threads, deadline, NULL, &costs, bound_s);
    loose_free(&costs);
    double least_s = INFINITY;
    for (int i = 0; i < space.num_splits; i++) least_s = fmin(least_s, bound_s[i]);
    const double raise = s->options->robust ? robust_least_raise(s->scenario.calibration) : 1;
    return least_s * raise > s->sizing.wanted_step_time_s;
}

// --- Doubling

static Status trial_run(Sizer *s, int num_nodes, SizingTrial *out) {
    gpus_set(s, num_nodes);
    *out = (SizingTrial){s->scenario.cluster.num_gpus, INFINITY, true};
    if (!is_fillable(s)) return status_ok();
    if (s->options->brief && is_bounded(s)) return status_ok();
    PlannerResult result;
    s->each.worst_value = s->options->brief ? s->sizing.wanted_step_time_s : 0;
    // Until a number is found there is no answer to end with.
    s->each.end_soon = s->sizing.num_gpus > 0 ? s->options->end_soon : NULL;
    TRY(planner_search(&s->scenario, &s->each, &s->scratch, &result));
    out->is_proven = result.stats.optimal;
    if (result.num_entries == 0) return status_ok();
    out->step_time_s = value_of(&result);
    const Estimate *estimate = &result.entries[0].estimate;
    s->model_flops = estimate->model_flops_per_s_per_gpu * estimate->step_time_s * out->num_gpus;
    return status_ok();
}

// Ctrl-C, before there is a number.
static bool is_given_up(const Sizer *s) {
    return s->options->end_soon && atomic_load(s->options->end_soon);
}

static Status nodes_double(Sizer *s, int first) {
    Sizing *sizing = &s->sizing;
    for (int64_t nodes = first; nodes * sizing->node_gpus <= SIZING_MAX_GPUS; nodes *= 2) {
        if (s->options->brief && is_given_up(s)) return status_ok();
        SizingTrial *trial = &sizing->trials[sizing->num_trials++];
        TRY(trial_run(s, (int)nodes, trial));
        arena_reset(&s->scratch);
        if (trial->step_time_s > sizing->wanted_step_time_s) continue;
        sizing->num_gpus = trial->num_gpus;
        deadline_arm(&s->deadline);
        return status_ok();
    }
    return status_ok();
}

// The odd numbers to begin with, ascending.
//   returns  how many
static int odd_numbers(const Scenario *scenario, int *odd) {
    const int64_t batch = scenario->training.global_batch;
    const int num_layers = scenario->model.num_layers;
    int n = 0;
    for (int candidate = 1; candidate <= SIZING_MAX_GPUS && n < SIZING_MAX_ODD; candidate += 2) {
        bool divides = false;
        for (int layers = 1; layers <= num_layers && layers <= candidate && !divides; layers += 2)
            divides = num_layers % layers == 0 && candidate % layers == 0 &&
                      batch % (candidate / layers) == 0;
        if (divides) odd[n++] = candidate;
    }
    return n;
}

// Between the number found and half of it, which is too slow: three quarters, then five or seven
// eighths. What is cut short by the budget so has a near answer.
static Status nodes_halve(Sizer *s) {
    Sizing *sizing = &s->sizing;
    const int found = sizing->num_gpus / sizing->node_gpus;
    for (int eighths = 6, step = 1; step >= 0; step--) {
        if (found % 8 != 0 || deadline_is_over(&s->deadline)) return status_ok();
        SizingTrial *trial = &sizing->trials[sizing->num_trials++];
        TRY(trial_run(s, found / 8 * eighths, trial));
        arena_reset(&s->scratch);
        const bool fast = trial->step_time_s <= sizing->wanted_step_time_s;
        if (fast) sizing->num_gpus = trial->num_gpus;
        eighths += fast ? -1 : 1;
    }
    return status_ok();
}

static Status nodes_find(Sizer *s) {
    int odd[SIZING_MAX_ODD];
    const int num_odd = odd_numbers(&s->scenario, odd);
    for (int i = 0; i < num_odd && s->sizing.num_gpus == 0; i++) TRY(nodes_double(s, odd[i]));
    return s->options->brief && s->sizing.num_gpus > 0 ? nodes_halve(s) : status_ok();
}

// --- What is below

static const SizingTrial *trial_of(const Sizing *sizing, int num_nodes) {
    for (int i = 0; i < sizing->num_trials; i++)
        if (sizing->trials[i].num_gpus == num_nodes * sizing->node_gpus) return &sizing->trials[i];
    return NULL;
}

// Looks at one number of nodes that is not a trial.
//   *reaches  its best plan is fast enough
static Status nodes_decide(Sizer *s, int num_nodes, bool *reaches) {
    Sizing *sizing = &s->sizing;
    gpus_set(s, num_nodes);
    *reaches = false;
    if (!is_fillable(s)) {
        sizing->num_unfillable++;
        return status_ok();
    }
    if (is_bounded(s)) {
        sizing->num_by_bound++;
        return status_ok();
    }
    PlannerResult result;
    s->each.worst_value = sizing->wanted_step_time_s;
    s->each.end_soon = s->options->end_soon;
    if (isfinite(s->end_s)) s->each.budget_s = fmax(1e-9, s->end_s - clock_now_s());
    TRY(planner_search(&s->scenario, &s->each, &s->scratch, &result));
    *reaches = result.num_entries > 0;
    if (*reaches) return status_ok();
    if (result.stats.stopped_early)
        sizing->num_open++;
    else
        sizing->num_by_search++;
    return status_ok();
}

// From the smallest number on that the peak rate does not rule out.
static Status nodes_ascend(Sizer *s) {
    Sizing *sizing = &s->sizing;
    const Scenario *scenario = &s->scenario;
    const Gpu *gpu = &cluster_only_pool(&scenario->cluster)->gpu;
    const double peak = gpu->peak_flops_per_s[scenario->execution.precision];
    const int most = sizing->num_gpus / sizing->node_gpus;
    const double least = s->model_flops / (peak * sizing->wanted_step_time_s * sizing->node_gpus);
    int nodes = 1;
    while (nodes < most && nodes < least * (1 - 1e-9)) nodes++;
    sizing->num_above_peak = nodes - 1;
    for (; nodes < most; nodes++) {
        if (deadline_is_over(&s->deadline)) {
            sizing->num_open += most - nodes;
            break;
        }
        const SizingTrial *trial = trial_of(sizing, nodes);
        if (trial) {
            sizing->num_by_search += trial->is_proven;
            sizing->num_open += !trial->is_proven;
            continue;
        }
        bool reaches;
        TRY(nodes_decide(s, nodes, &reaches));
        arena_reset(&s->scratch);
        if (!reaches) continue;
        sizing->num_gpus = nodes * sizing->node_gpus;
        break;
    }
    sizing->is_proven = sizing->num_open == 0;
    return status_ok();
}

// --- Set-up

static Status cluster_check(const Scenario *scenario) {
    TRY(scenario_refuse_unlike_groups(scenario, "plan for a number of GPUs"));
    if (!scenario->cluster.network.sites) return status_ok();
    return status_at(STATUS_INVALID, scenario->file, "cluster",
                     "joined groups and measured matrices are of one size; expected nodes of one "
                     "network to ask how many GPUs are needed");
}

Status planner_size(const Scenario *scenario, double wanted_step_time_s,
                    const PlannerOptions *options, Sizing *out) {
    TRY(cluster_check(scenario));
    const double start_s = clock_now_s();
    const Pool *pool = cluster_only_pool(&scenario->cluster);
    Sizer s = {.scenario = *scenario, .options = options, .each = *options, .end_s = INFINITY};
    s.sizing.wanted_step_time_s = wanted_step_time_s;
    s.sizing.node_gpus = pool->whole_node_gpus > 0 ? pool->whole_node_gpus : pool->gpus_per_node;
    s.scenario.parallel.dp = s.scenario.parallel.zero_group = ABSENT;
    s.each.top = 1;
    s.each.objective = OBJECTIVE_THROUGHPUT;
    s.each.brief = true;
    s.each.uncounted = true;
    s.each.budget_s = 0;
    s.each.progress = NULL;
    s.each.standing = NULL;
    if (options->budget_s > 0) s.end_s = start_s + options->budget_s;
    deadline_start(&s.deadline, options->budget_s, options->end_soon);
    Status status = nodes_find(&s);
    if (status.code == STATUS_OK && s.sizing.num_gpus > 0) status = nodes_ascend(&s);
    arena_free(&s.scratch);
    arena_free(&s.pools);
    s.sizing.wall_s = clock_now_s() - start_s;
    if (status.code == STATUS_OK) *out = s.sizing;
    return status;
}

// --- Answers

RunTotals run_totals(const Scenario *scenario, const Estimate *estimate, double num_tokens) {
    const double step_tokens =
        (double)scenario->training.seq_len * (double)scenario->training.global_batch;
    RunTotals totals = {.num_steps = ceil(num_tokens / step_tokens)};
    const double tokens = totals.num_steps * step_tokens;
    totals.run_s = totals.num_steps * estimate->step_time_s;
    totals.gpu_hours = totals.run_s / 3600 * cluster_total_gpus(&scenario->cluster);
    totals.cost_usd = estimate->usd_per_1e9_tokens / 1e9 * tokens;
    totals.energy_joules = estimate->joules_per_token * tokens;
    return totals;
}

cJSON *sizing_to_json(const Sizing *sizing) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "wanted_step_time_s", sizing->wanted_step_time_s);
    if (sizing->num_gpus > 0)
        json_add_number(json, "num_gpus", sizing->num_gpus);
    else
        cJSON_AddNullToObject(json, "num_gpus");
    cJSON_AddBoolToObject(json, "proven", sizing->is_proven);
    json_add_number(json, "node_gpus", sizing->node_gpus);
    cJSON *below = cJSON_AddObjectToObject(json, "smaller_numbers_of_nodes");
    json_add_number(below, "above_peak", sizing->num_above_peak);
    json_add_number(below, "unfillable", sizing->num_unfillable);
    json_add_number(below, "by_bound", sizing->num_by_bound);
    json_add_number(below, "by_search", sizing->num_by_search);
    json_add_number(below, "not_decided", sizing->num_open);
    cJSON *trials = cJSON_AddArrayToObject(json, "trials");
    for (int i = 0; i < sizing->num_trials; i++) {
        cJSON *trial = cJSON_CreateObject();
        json_add_number(trial, "num_gpus", sizing->trials[i].num_gpus);
        json_add_number(trial, "step_time_s", sizing->trials[i].step_time_s);
        cJSON_AddItemToArray(trials, trial);
    }
    return json;
}
