#include "whatif/sensitivity.h"

#include "base/clock.h"
#include "base/share.h"
#include "plan/plan.h"
#include "planner/questions/idle.h"

#include <math.h>
#include <stdlib.h>

enum { NUM_CASES = 1 + 2 * NUM_RESOURCES };

typedef struct {
    const Scenario *scenario;
    const SensitivityOptions *options;
    PlannerOptions planner;
    SensitivityCase cases[NUM_CASES]; // base, then better and worse of each resource
    Status statuses[NUM_CASES];
    Arena arenas[NUM_CASES]; // of what the cases hold
} Cases;

// --- One case

static Status case_estimate(const Scenario *scenario, Arena *arena, SensitivityCase *out) {
    TRY(plan_resolve(scenario, arena, &out->plan));
    TRY(estimate_plan(scenario, &out->plan, arena, &out->estimate, NULL));
    out->has_answer = true;
    if (out->estimate.fits) return status_ok();
    const double missing_bytes =
        out->estimate.memory.device_bytes - out->estimate.memory_available_bytes;
    out->code = STATUS_NO;
    out->message = arena_printf(arena, "does not fit: %.2f GB too much", missing_bytes / 1e9);
    return status_ok();
}

static Status case_replan(const Scenario *scenario, const PlannerOptions *planner, Arena *arena,
                          SensitivityCase *out) {
    PlannerResult result;
    Scenario used;
    TRY(planner_search_idle(scenario, planner, arena, &used, &result));
    if (result.num_entries == 0) {
        out->code = STATUS_NO;
        out->message = planner_miss_text(&result, arena);
        return status_ok();
    }
    out->has_answer = true;
    out->plan = result.entries[0].plan;
    out->estimate = result.entries[0].estimate;
    return status_ok();
}

static void case_run(void *context, int worker, int item) {
    Cases *cases = context;
    Arena *arena = &cases->arenas[item];
    SensitivityCase *one = &cases->cases[item];
    const double change = cases->options->change_frac;
    Scenario scenario = *cases->scenario;
    (void)worker;
    *one = (SensitivityCase){.factor = 1};
    if (item > 0) {
        const Resource resource = (Resource)((item - 1) / 2);
        const bool better = item % 2 == 1;
        one->factor = better == resource_more_is_better(resource) ? 1 + change : 1 - change;
        scenario = resource_scaled(cases->scenario, resource, one->factor, arena);
    }
    cases->statuses[item] = cases->options->replan
                                ? case_replan(&scenario, &cases->planner, arena, one)
                                : case_estimate(&scenario, arena, one);
}

// --- The ranking

// A job that does not fit as it is has a step time all the same.
static double step_change_frac(const SensitivityCase *one, const SensitivityCase *base) {
    if (!one->has_answer || (one->code != STATUS_OK && base->code == STATUS_OK)) return INFINITY;
    return one->estimate.step_time_s / base->estimate.step_time_s - 1;
}

static int compare_rows(const void *a, const void *b) {
    const SensitivityRow *x = a, *y = b;
    if (x->saves_frac != y->saves_frac) return x->saves_frac < y->saves_frac ? 1 : -1;
    if (x->costs_frac != y->costs_frac) return x->costs_frac < y->costs_frac ? 1 : -1;
    return (int)x->resource - (int)y->resource;
}

static SensitivityCase case_copy(const SensitivityCase *one, Arena *arena) {
    SensitivityCase copy = *one;
    if (one->has_answer) copy.plan = plan_copy(&one->plan, arena);
    if (one->message) copy.message = arena_strdup(arena, one->message);
    return copy;
}

static void rows_build(const Cases *cases, Arena *arena, Sensitivity *out) {
    for (int r = 0; r < NUM_RESOURCES; r++) {
        const SensitivityCase *better = &cases->cases[1 + 2 * r], *worse = better + 1;
        const double gain = step_change_frac(better, &out->base);
        out->rows[r] = (SensitivityRow){
            .resource = (Resource)r,
            .better = case_copy(better, arena),
            .worse = case_copy(worse, arena),
            .saves_frac = isfinite(gain) ? -gain : 0,
            .costs_frac = step_change_frac(worse, &out->base),
        };
    }
    out->num_rows = NUM_RESOURCES;
    qsort(out->rows, NUM_RESOURCES, sizeof *out->rows, compare_rows);
}

Status sensitivity_run(const Scenario *scenario, const SensitivityOptions *options, Arena *arena,
                       Sensitivity *out) {
    const double start_s = clock_now_s();
    Cases *cases = ARENA_NEW(arena, Cases);
    *cases = (Cases){.scenario = scenario, .options = options, .planner = options->planner};
    cases->planner.top = 1;
    cases->planner.brief = true;
    cases->planner.progress = NULL;
    cases->planner.num_threads = 1;
    share_work(NUM_CASES, options->num_threads, case_run, cases);
    Status status = status_ok();
    for (int i = 0; i < NUM_CASES && status.code == STATUS_OK; i++) status = cases->statuses[i];
    if (status.code == STATUS_OK) {
        *out = (Sensitivity){.change_frac = options->change_frac,
                             .replan = options->replan,
                             .base = case_copy(&cases->cases[0], arena)};
        if (out->base.has_answer) rows_build(cases, arena, out);
        out->wall_s = clock_now_s() - start_s;
    }
    for (int i = 0; i < NUM_CASES; i++) arena_free(&cases->arenas[i]);
    return status;
}

const SensitivityRow *sensitivity_limit(const Sensitivity *s) {
    if (s->num_rows == 0 || s->rows[0].saves_frac < SENSITIVITY_LEAST_FRAC) return NULL;
    return &s->rows[0];
}

// --- JSON

static cJSON *case_to_json(const SensitivityCase *one) {
    Arena arena = {0};
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "factor", one->factor);
    cJSON_AddBoolToObject(json, "fits", one->code == STATUS_OK);
    if (one->has_answer) {
        json_add_number(json, "step_time_s", one->estimate.step_time_s);
        json_add_number(json, "memory_device_bytes", one->estimate.memory.device_bytes);
        json_add_number(json, "memory_available_bytes", one->estimate.memory_available_bytes);
        cJSON_AddStringToObject(json, "plan", plan_describe(&one->plan, &arena));
    }
    if (one->message) cJSON_AddStringToObject(json, "error", one->message);
    arena_free(&arena);
    return json;
}

cJSON *sensitivity_to_json(const Sensitivity *s) {
    cJSON *json = cJSON_CreateObject(), *object;
    json_add_number(json, "schema", 1);
    object = cJSON_AddObjectToObject(json, "sensitivity");
    json_add_number(object, "change_frac", s->change_frac);
    cJSON_AddBoolToObject(object, "replan", s->replan);
    const SensitivityRow *limit = sensitivity_limit(s);
    if (limit)
        cJSON_AddStringToObject(object, "limited_by", RESOURCE_NAMES[limit->resource]);
    else
        cJSON_AddNullToObject(object, "limited_by");
    cJSON_AddItemToObject(object, "base", case_to_json(&s->base));
    cJSON *rows = cJSON_AddArrayToObject(object, "rows");
    for (int i = 0; i < s->num_rows; i++) {
        const SensitivityRow *row = &s->rows[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(rows, entry);
        cJSON_AddStringToObject(entry, "resource", RESOURCE_NAMES[row->resource]);
        json_add_number(entry, "saves_frac", row->saves_frac);
        json_add_number(entry, "costs_frac", row->costs_frac); // null where it does not fit
        cJSON_AddItemToObject(entry, "better", case_to_json(&row->better));
        cJSON_AddItemToObject(entry, "worse", case_to_json(&row->worse));
    }
    json_add_number(cJSON_AddObjectToObject(json, "timing"), "wall_s", s->wall_s);
    return json;
}
