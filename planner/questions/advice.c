#include "planner/questions/advice.h"

#include "base/share.h"
#include "costmodel/step/step_time.h"
#include "planner/groups/group_orders.h"
#include "planner/questions/neighbour.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Scenario *scenario; // as limited by the search
    const PlannerOptions *options;
    PlannedEntry *entry;
    Arena texts, scratch;
    // The best change that fits; the one that lacks least of those that do not, and what saves most
    Advice fits, lacks;
    double forbidden_frac;
} Adviser;

static double step_time_of(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           const Prices *prices, Arena *scratch) {
    const double step_time_s = plan_step_time_s(scenario, plan, workload, prices, scratch);
    Estimate estimate;
    if (!isnan(step_time_s)) return step_time_s;
    if (estimate_plan(scenario, plan, scratch, &estimate, NULL).code != STATUS_OK) return INFINITY;
    return estimate.step_time_s;
}

// What one change saves; nothing where its bound says that it cannot.
static void change_try(void *context, const Plan *plan, const char *change) {
    Adviser *a = context;
    const Scenario *scenario = a->scenario;
    const double step_time_s = a->entry->estimate.step_time_s;
    const double wanted_s = step_time_s * (1 - ADVICE_MIN_GAIN_FRAC);
    arena_reset(&a->scratch);
    const Workload workload = workload_build(scenario, plan, &a->scratch);
    const Prices prices = chunks_price(scenario, plan, &workload, &a->scratch);
    if (estimate_lower_bound_s(scenario, plan, &workload, &prices) > wanted_s) return;
    Advice advice = {0};
    estimate_memory(scenario, plan, &workload, &advice.missing_bytes);
    if (advice.missing_bytes > 0 && a->lacks.change && a->fits.change) return;
    const double changed_s = step_time_of(scenario, plan, &workload, &prices, &a->scratch);
    advice.gain_frac = 1 - changed_s / step_time_s;
    if (advice.gain_frac < ADVICE_MIN_GAIN_FRAC) return;
    const bool fits = advice.missing_bytes <= 0;
    Advice *best = fits ? &a->fits : &a->lacks;
    if (!fits) a->forbidden_frac = fmax(a->forbidden_frac, advice.gain_frac);
    const bool is_better =
        fits ? advice.gain_frac > best->gain_frac : advice.missing_bytes < best->missing_bytes;
    if (best->change && !is_better) return;
    advice.change = arena_strdup(&a->texts, change);
    *best = advice;
}

// The same plan with twice as many sequences in a step.
static Advice batch_try(Adviser *a) {
    Advice advice = {0};
    Scenario changed = *a->scenario;
    changed.training.global_batch *= 2;
    Plan plan = a->entry->plan;
    plan_derive(&changed, &plan);
    Estimate estimate;
    arena_reset(&a->scratch);
    if (plan_check(&changed, &plan).code != STATUS_OK) return advice;
    if (estimate_plan(&changed, &plan, &a->scratch, &estimate, NULL).code != STATUS_OK)
        return advice;
    advice.gain_frac = 1 - a->entry->estimate.tokens_per_s / estimate.tokens_per_s;
    if (!estimate.fits || advice.gain_frac < ADVICE_MIN_GAIN_FRAC) return advice;
    advice.is_of_job = true;
    advice.change = arena_printf(&a->texts, "global_batch %lld instead of %lld",
                                 (long long)changed.training.global_batch,
                                 (long long)a->scenario->training.global_batch);
    return advice;
}

static Advice entry_advice(Adviser *a) {
    const Estimate *estimate = &a->entry->estimate;
    neighbours_visit(a->scenario, &a->entry->plan, change_try, a);
    Advice advice = a->fits.change ? a->fits : a->lacks.change ? a->lacks : batch_try(a);
    advice.limit = TERM_NAMES[TERM_COMPUTE];
    advice.limit_frac = estimate->term_s[TERM_COMPUTE] / estimate->step_time_s;
    double most_frac = ADVICE_MIN_LIMIT_FRAC;
    for (int t = 0; t < NUM_TERMS; t++) {
        const double frac = estimate->term_s[t] / estimate->step_time_s;
        if (t == TERM_COMPUTE || frac < most_frac) continue;
        most_frac = advice.limit_frac = frac;
        advice.limit = TERM_NAMES[t];
    }
    if (a->forbidden_frac > most_frac) {
        advice.limit = "memory";
        advice.limit_frac = a->forbidden_frac;
    }
    return advice;
}

static void entry_work(void *context, int worker, int item) {
    (void)worker;
    Adviser *a = (Adviser *)context + item;
    const PlannerOptions *options = a->options;
    if (options->end_soon && atomic_load(options->end_soon)) return;
    a->entry->advice = entry_advice(a);
}

void planner_advise(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    PlannerResult *result) {
    if (result->objective == OBJECTIVE_ENERGY || result->objective == OBJECTIVE_MEMORY) return;
    Arena orders = {0};
    Scenario limited[ADVICE_MAX_ENTRIES];
    Adviser advisers[ADVICE_MAX_ENTRIES] = {0};
    int n = result->num_entries < ADVICE_MAX_ENTRIES ? result->num_entries : ADVICE_MAX_ENTRIES;
    for (int i = 0; i < n; i++) {
        PlannedEntry *entry = &result->entries[i];
        limited[i] = plan_limited(scenario, options, &entry->plan, &orders);
        advisers[i] = (Adviser){.scenario = &limited[i], .options = options, .entry = entry};
    }
    share_work(n, options->num_threads, entry_work, advisers);
    for (int i = 0; i < n; i++) {
        Advice *advice = &result->entries[i].advice;
        if (advice->change) advice->change = arena_strdup(arena, advice->change);
        arena_free(&advisers[i].texts);
        arena_free(&advisers[i].scratch);
    }
    arena_free(&orders);
}

// --- Text

static const char *limit_text(const Advice *advice) {
    static const char *const TEXTS[][2] = {
        {"tp_exposed", "exposed tensor-parallel communication"},
        {"cp_exposed", "exposed context-parallel communication"},
        {"ep_exposed", "exposed expert-parallel communication"},
        {"dp_exposed", "exposed data-parallel communication"},
        {"pp_exposed", "exposed pipeline messages"},
        {"bubble", "the pipeline bubble"},
        {"optimizer", "the optimizer"},
        {"other", "the host"},
        {"compute", "computation"},
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        if (strcmp(advice->limit, TEXTS[i][0]) == 0) return TEXTS[i][1];
    return advice->limit;
}

const char *advice_text(const Advice *advice, Arena *arena) {
    if (!advice->limit) return NULL;
    const char *limit = arena_printf(arena, "limited by %s", limit_text(advice));
    if (!advice->change) return limit;
    const char *needs = "";
    if (advice->missing_bytes > 0)
        needs = arena_printf(arena, ", but needs %.2f GB more on each GPU",
                             advice->missing_bytes / 1e9);
    return arena_printf(arena, "%s; %s would be %.1f %% faster%s%s", limit, advice->change,
                        advice->gain_frac * 100, advice->is_of_job ? " per token" : "", needs);
}

cJSON *advice_to_json(const Advice *advice) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "limited_by", advice->limit);
    json_add_number(json, "limit_frac", advice->limit_frac);
    if (!advice->change) {
        cJSON_AddNullToObject(json, "change");
        return json;
    }
    cJSON_AddStringToObject(json, "change", advice->change);
    json_add_number(json, "gain_frac", advice->gain_frac);
    json_add_number(json, "missing_bytes", advice->missing_bytes);
    return json;
}
