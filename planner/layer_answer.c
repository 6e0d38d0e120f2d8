// A layer-wise result as JSON and as lines of text.
#include "planner/layer_search.h"

#include <math.h>
#include <string.h>

// Whether two layers do the same.
static bool plans_are_same(const Plan *a, const Plan *b) {
    return a->tp == b->tp && a->cp == b->cp && a->cp_method == b->cp_method &&
           a->zero_stage == b->zero_stage && a->recompute == b->recompute &&
           a->sequence_parallel == b->sequence_parallel;
}

static int run_end(const LayerChoice *choice, int num_layers, int from) {
    int end = from + 1;
    while (end < num_layers && plans_are_same(&choice->layers[end], &choice->layers[from])) end++;
    return end;
}

int layer_run_text(const LayerChoice *choice, int num_layers, int from, Arena *arena,
                   const char **text) {
    const int end = run_end(choice, num_layers, from);
    const Plan *p = &choice->layers[from];
    const char *cp =
        p->cp == 1 ? "" : arena_printf(arena, " cp %d %s", p->cp, CP_METHOD_NAMES[p->cp_method]);
    const char *to = end - 1 > from ? arena_printf(arena, "-%d", end - 1) : "";
    *text =
        arena_printf(arena, "layer%s %d%s: tp %d%s dp %d, zero %d, recompute %s", to[0] ? "s" : "",
                     from, to, p->tp, cp, p->dp, p->zero_stage, RECOMPUTE_NAMES[p->recompute]);
    return end;
}

static cJSON *certificate_to_json(const LayerChoice *choice) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddBoolToObject(json, "optimal", choice->optimal);
    json_add_number(json, "gap_frac", choice->gap_frac);
    json_add_number(json, "strategies", choice->num_strategies);
    json_add_number(json, "layouts", choice->num_layouts);
    json_add_number(json, "states", (double)choice->num_states);
    cJSON_AddStringToObject(json, "exact_for",
                            "the sum over the layers of each stage, under its memory, with the "
                            "prices and bytes of the operator templates");
    cJSON_AddStringToObject(
        json, "approximated",
        "of the choice, not of the step: collectives of gradients and weights hide behind their "
        "own layer's compute; the host is waited for layer by layer; stages are chosen one by "
        "one; embedding and head keep to one of the best six strategies");
    json_add_number(json, "cost_error_frac", choice->cost_error_frac);
    return json;
}

static cJSON *entry_to_json(const LayerChoice *choice) {
    cJSON *json = estimate_to_json(&choice->estimate, &choice->plan);
    if (isfinite(choice->uniform_step_s)) {
        json_add_number(json, "uniform_step_time_s", choice->uniform_step_s);
        cJSON_AddItemToObject(json, "uniform_parallel", plan_to_json(&choice->uniform));
    }
    cJSON_AddBoolToObject(json, "is_uniform", choice->is_uniform);
    cJSON_AddItemToObject(json, "certificate", certificate_to_json(choice));
    return json;
}

cJSON *layer_result_to_json(const LayerResult *result) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddTrueToObject(json, "layerwise");
    cJSON *plans = cJSON_AddArrayToObject(json, "plans");
    for (int i = 0; i < result->num_entries; i++)
        cJSON_AddItemToArray(plans, entry_to_json(&result->entries[i].choice));
    if (result->has_uniform)
        cJSON_AddItemToObject(json, "uniform",
                              estimate_to_json(&result->uniform_estimate, &result->uniform));
    cJSON *search = cJSON_AddObjectToObject(json, "search");
    json_add_number(search, "combinations", result->num_combinations);
    json_add_number(search, "looked_at", result->num_looked_at);
    cJSON_AddBoolToObject(search, "stopped_early", result->stopped_early);
    cJSON *timing = cJSON_AddObjectToObject(json, "timing");
    json_add_number(timing, "wall_s", result->wall_s);
    return json;
}
