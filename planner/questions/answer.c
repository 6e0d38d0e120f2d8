// The search's result as JSON and as a sentence.
#include "planner/planner.h"

#include "planner/groups/group_answer.h"
#include "planner/questions/advice.h"
#include "planner/questions/switch_advice.h"

static cJSON *placement_to_json(const PlacementResult *placement) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "default_step_time_s", placement->default_step_time_s);
    json_add_number(json, "bound_step_time_s", placement->bound_step_time_s);
    json_add_number(json, "gain_frac",
                    1 - placement->estimate.step_time_s / placement->default_step_time_s);
    json_add_number(json, "gap_frac", placement->gap_frac);
    json_add_number(json, "moves", (double)placement->num_moves);
    return json;
}

static cJSON *entry_to_json(const PlannedEntry *entry) {
    cJSON *json = estimate_to_json(&entry->estimate, &entry->plan);
    cJSON_AddBoolToObject(json, "within_noise_of_best", entry->within_noise_of_best);
    json_add_number(json, "loses_frac", entry->loses_frac);
    if (entry->variant_of >= 0) json_add_number(json, "variant_of", entry->variant_of);
    cJSON_AddStringToObject(json, "why", entry->why);
    if (entry->advice.limit) cJSON_AddItemToObject(json, "advice", advice_to_json(&entry->advice));
    if (entry->shares) cJSON_AddItemToObject(json, "groups", group_shares_to_json(entry));
    if (entry->placement)
        cJSON_AddItemToObject(json, "placement", placement_to_json(entry->placement));
    return json;
}

// The smaller numbers of GPUs that were looked at, the largest first.
static cJSON *idle_to_json(const IdleAnswer *idle) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < idle->num_looks; i++) {
        cJSON *look = cJSON_CreateObject();
        json_add_number(look, "num_gpus", idle->looks[i].num_gpus);
        if (idle->looks[i].ruled_out_by)
            cJSON_AddStringToObject(look, "ruled_out_by", idle->looks[i].ruled_out_by);
        else
            cJSON_AddNullToObject(look, "ruled_out_by");
        cJSON_AddItemToArray(list, look);
    }
    return list;
}

static cJSON *stats_to_json(const SearchStats *stats, const IdleAnswer *idle) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "considered", (double)stats->considered);
    json_add_number(json, "pruned_by_memory", (double)stats->pruned_by_memory);
    json_add_number(json, "pruned_by_bound", (double)stats->pruned_by_bound);
    json_add_number(json, "priced", (double)stats->priced);
    cJSON_AddBoolToObject(json, "optimal", stats->optimal);
    json_add_number(json, "gap_frac", stats->gap_frac);
    if (stats->any_split) json_add_number(json, "splits_gap_frac", stats->splits_gap_frac);
    cJSON_AddBoolToObject(json, "stopped_early", stats->stopped_early);
    json_add_number(json, "wanted", stats->wanted);
    if (idle->num_looks > 0) cJSON_AddItemToObject(json, "fewer_gpus", idle_to_json(idle));
    return json;
}

static cJSON *miss_to_json(const ClosestMiss *miss) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "parallel", plan_to_json(&miss->plan));
    json_add_number(json, "memory_device_bytes", miss->memory.needs_bytes);
    json_add_number(json, "missing_bytes", miss->missing_bytes);
    if (miss->would_fit_if)
        cJSON_AddStringToObject(json, "would_fit", miss->would_fit_if);
    else
        cJSON_AddNullToObject(json, "would_fit");
    return json;
}

static cJSON *switches_to_json(const PlannerResult *result) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < result->num_switches; i++)
        cJSON_AddItemToArray(list, switch_advice_to_json(&result->switches[i]));
    return list;
}

// What nothing in the list is beaten on.
static cJSON *axes_to_json(const PlannerResult *result) {
    const char *const axes[] = {result->robust ? "step_time_high_s" : "step_time_s",
                                "memory_device_bytes", "joules_per_token"};
    return cJSON_CreateStringArray(axes, result->num_axes);
}

cJSON *planner_to_json(const PlannerResult *result) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    if (result->num_axes > 0)
        cJSON_AddItemToObject(json, "pareto", axes_to_json(result));
    else
        cJSON_AddStringToObject(json, "objective", OBJECTIVE_NAMES[result->objective]);
    if (result->robust) cJSON_AddBoolToObject(json, "robust", true);
    json_add_number(json, "fit_probability_frac", result->fit_probability_frac);
    cJSON *plans = cJSON_AddArrayToObject(json, "plans");
    for (int i = 0; i < result->num_entries; i++)
        cJSON_AddItemToArray(plans, entry_to_json(&result->entries[i]));
    cJSON *riskier = cJSON_AddArrayToObject(json, "riskier");
    for (int i = 0; i < result->num_riskier; i++)
        cJSON_AddItemToArray(riskier, entry_to_json(&result->riskier[i]));
    if (result->groups) cJSON_AddItemToObject(json, "groups", groups_answer_to_json(result));
    if (result->switches) cJSON_AddItemToObject(json, "switches", switches_to_json(result));
    cJSON_AddItemToObject(json, "search", stats_to_json(&result->stats, &result->idle));
    if (result->num_entries == 0)
        cJSON_AddItemToObject(json, "closest_miss", miss_to_json(&result->miss));
    cJSON *timing = cJSON_AddObjectToObject(json, "timing");
    json_add_number(timing, "wall_s", result->stats.wall_s);
    return json;
}

const char *planner_miss_text(const PlannerResult *result, Arena *arena) {
    const ClosestMiss *miss = &result->miss;
    const double asked = result->fit_probability_frac;
    const char *with = asked > 0.5 ? arena_printf(arena, " with %g %%", asked * 100) : "";
    return arena_printf(arena,
                        "nothing fits%s: the closest of %lld configurations (%s) needs %.2f GB on "
                        "one GPU, %s%.2f GB more than there is%s%s",
                        with, (long long)result->stats.considered,
                        plan_describe(&miss->plan, arena), miss->memory.needs_bytes / 1e9,
                        asked > 0.5 ? "and as far as that is known up to " : "",
                        miss->missing_bytes / 1e9, miss->would_fit_if ? "; it would fit " : "",
                        miss->would_fit_if ? miss->would_fit_if : "");
}
