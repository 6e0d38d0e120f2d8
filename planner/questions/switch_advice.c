#include "planner/questions/switch_advice.h"

#include "costmodel/step/step_time.h"
#include "planner/questions/neighbour.h"
#include "planner/questions/switch_step.h"

#include <math.h>

// The least step that was found with one choice more.
typedef struct {
    const Scenario *limited; // with the choice
    SwitchChoice choice;
    double step_time_s; // least so far
    Plan plan;          // that takes it
    const char *change; // NULL: one of the result's
    bool found;
    Arena *arena; // of plan and change
    Arena scratch;
} Trial;

static void plan_try(void *context, const Plan *plan, const char *change) {
    Trial *t = context;
    arena_reset(&t->scratch);
    const double step_time_s = switch_step_s(t->limited, plan, t->step_time_s, &t->scratch);
    if (step_time_s >= t->step_time_s) return;
    t->step_time_s = step_time_s;
    t->plan = plan_copy(plan, t->arena);
    t->change = change ? arena_strdup(t->arena, change) : NULL;
    t->found = true;
}

// What stands before a choice.
typedef struct {
    const PlannerOptions *options;
    const PlannerResult *result;
    Scenario scenario;               // with the choices before
    SwitchChoice open[MAX_SWITCHES]; // [num_open] at what they stand
    int num_open;
    Plan plan; // the fastest then
    double step_time_s;
} Standing;

static Status choice_try(const Standing *standing, SwitchChoice choice, double least_s,
                         Arena *arena, Trial *best) {
    Scenario changed;
    TRY(switch_apply(&standing->scenario, choice, arena, &changed));
    if (!switches_run(&changed, standing->open, standing->num_open)) return status_ok();
    const Scenario limited = planner_limited(&changed, standing->options, arena);
    Trial trial = {.limited = &limited, .choice = choice, .step_time_s = least_s, .arena = arena};
    plan_try(&trial, &standing->plan, NULL);
    for (int i = 0; i < standing->result->num_entries; i++)
        plan_try(&trial, &standing->result->entries[i].plan, NULL);
    neighbours_visit(&limited, &standing->plan, plan_try, &trial);
    arena_free(&trial.scratch);
    if (trial.found) *best = trial;
    return status_ok();
}

// The choice that saves most on top of what stands.
static Status best_choice(Standing *standing, Arena *arena, Trial *best) {
    SwitchChoice *open = standing->open;
    const int num_open = standing->num_open = switches_open(&standing->scenario, open);
    double least_s = standing->step_time_s * (1 - SWITCH_MIN_GAIN_FRAC);
    for (int i = 0; i < num_open; i++)
        for (int value = 0; open[i].row->values[value]; value++) {
            if (value == open[i].value) continue;
            TRY(choice_try(standing, (SwitchChoice){open[i].row, value}, least_s, arena, best));
            if (best->found) least_s = fmin(least_s, best->step_time_s);
        }
    return status_ok();
}

Status planner_advise_switches(const Scenario *scenario, const PlannerOptions *options,
                               Arena *arena, PlannerResult *result) {
    const bool by_time =
        result->objective == OBJECTIVE_THROUGHPUT || result->objective == OBJECTIVE_COST;
    if (!by_time || result->num_entries == 0 || scenario->cluster.num_pools > 1) return status_ok();
    SwitchAdvice *list = ARENA_ARRAY(arena, MAX_SWITCH_ADVICE, SwitchAdvice);
    Standing standing = {.options = options,
                         .result = result,
                         .scenario = *scenario,
                         .plan = result->entries[0].plan,
                         .step_time_s = result->entries[0].estimate.step_time_s};
    int num = 0;
    while (num < MAX_SWITCH_ADVICE) {
        if (options->end_soon && atomic_load(options->end_soon)) break;
        Trial best = {0};
        TRY(best_choice(&standing, arena, &best));
        if (!best.found) break;
        list[num++] = (SwitchAdvice){
            .choice = best.choice,
            .text = switch_text(best.choice, &standing.scenario.execution, arena),
            .change = best.change,
            .gain_frac = 1 - best.step_time_s / standing.step_time_s,
            .step_time_s = best.step_time_s,
        };
        TRY(switch_apply(&standing.scenario, best.choice, arena, &standing.scenario));
        standing.plan = best.plan;
        standing.step_time_s = best.step_time_s;
    }
    result->switches = list;
    result->num_switches = num;
    return status_ok();
}

const char *switch_advice_text(const SwitchAdvice *advice, Arena *arena) {
    const char *caution = advice->choice.row->caution;
    return arena_printf(arena, "%s: %.*f %% faster%s%s%s%s%s", advice->text,
                        advice->gain_frac < 0.0995 ? 1 : 0, advice->gain_frac * 100,
                        advice->change ? ", with " : "", advice->change ? advice->change : "",
                        caution ? " (" : "", caution ? caution : "", caution ? ")" : "");
}

cJSON *switch_advice_to_json(const SwitchAdvice *advice) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "key", advice->choice.row->key);
    cJSON_AddItemToObject(json, "value", switch_to_json(advice->choice));
    cJSON_AddStringToObject(json, "change", advice->text);
    if (advice->change) cJSON_AddStringToObject(json, "plan_change", advice->change);
    json_add_number(json, "gain_frac", advice->gain_frac);
    json_add_number(json, "step_time_s", advice->step_time_s);
    if (advice->choice.row->caution)
        cJSON_AddStringToObject(json, "caution", advice->choice.row->caution);
    return json;
}
