// A layer-wise result as JSON and as lines of text.
#include "plan/layer_plans.h"
#include "planner/layerwise/layer_search.h"

#include <math.h>
#include <string.h>

static int run_end(const LayerChoice *choice, int num_layers, int from) {
    const Plan *layers = choice->layers;
    int end = from + 1;
    while (end < num_layers && plans_layers_are_alike(&layers[end], &layers[from])) end++;
    return end;
}

// "selective core_attn+mlp"; per-operator checkpointing has no modules.
static const char *recompute_text(const Plan *plan, Arena *arena) {
    const char *text = RECOMPUTE_NAMES[plan->recompute];
    if (plan->recompute != RECOMPUTE_SELECTIVE) return text;
    for (int i = 0, num = 0; RECOMPUTE_MODULE_NAMES[i]; i++)
        if (plan->recompute_modules & 1 << i)
            text =
                arena_printf(arena, "%s%s%s", text, num++ ? "+" : " ", RECOMPUTE_MODULE_NAMES[i]);
    return text;
}

int layer_run_text(const LayerChoice *choice, int num_layers, int from, Arena *arena,
                   const char **text) {
    const int end = run_end(choice, num_layers, from);
    const Plan *p = &choice->layers[from];
    const char *cp =
        p->cp == 1 ? "" : arena_printf(arena, " cp %d %s", p->cp, CP_METHOD_NAMES[p->cp_method]);
    const char *to = end - 1 > from ? arena_printf(arena, "-%d", end - 1) : "";
    const char *split = p->tp > 1 && !p->sequence_parallel ? " without sequence parallelism" : "";
    const bool hybrid = p->zero_stage > 0 && p->zero_group != p->dp * p->cp;
    const char *group = hybrid ? arena_printf(arena, ":%d", p->zero_group) : "";
    *text = arena_printf(arena, "layer%s %d%s: tp %d%s%s dp %d, zero %d%s, recompute %s",
                         to[0] ? "s" : "", from, to, p->tp, split, cp, p->dp, p->zero_stage, group,
                         recompute_text(p, arena));
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
