#include "sim/sim.h"

static void add_bool(cJSON *object, const char *key, bool value) {
    cJSON_AddItemToObject(object, key, cJSON_CreateBool(value));
}

static void difference_add(cJSON *json, const SimDifference *difference) {
    cJSON *object = cJSON_AddObjectToObject(json, "difference_s");
    json_add_number(object, "model", difference->model_s);
    json_add_number(object, "spare_bandwidth", difference->spare_bandwidth_s);
    json_add_number(object, "contention", difference->contention_s);
    json_add_number(object, "stragglers", difference->stragglers_s);
    json_add_number(object, "jitter", difference->jitter_s);
    json_add_number(object, "network", difference->network_s);
}

static cJSON *path_item_json(const SimPathItem *item) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "rank", item->rank);
    json_add_number(json, "stage", item->stage);
    cJSON_AddStringToObject(json, "instruction", item->instruction);
    if (item->chunk >= 0) json_add_number(json, "chunk", item->chunk);
    if (item->microbatch >= 0) json_add_number(json, "micro_batch", item->microbatch);
    json_add_number(json, "start_s", item->start_s);
    json_add_number(json, "end_s", item->end_s);
    return json;
}

cJSON *sim_path_totals_to_json(const SimPath *path) {
    cJSON *totals = cJSON_CreateArray();
    for (int i = 0; i < path->num_totals; i++) {
        const SimPathTotal *total = &path->totals[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "kind", total->kind);
        json_add_number(row, "count", total->count);
        json_add_number(row, "simulated_s", total->simulated_s);
        json_add_number(row, "estimated_s", total->estimated_s);
        cJSON_AddItemToArray(totals, row);
    }
    return totals;
}

static void path_add(cJSON *json, const SimPath *path) {
    cJSON *object = cJSON_AddObjectToObject(json, "critical_path");
    cJSON_AddItemToObject(object, "totals", sim_path_totals_to_json(path));
    json_add_number(object, "slack_s", path->slack_s);
    json_add_number(object, "num_instructions", path->num_instructions);
    cJSON *items = cJSON_AddArrayToObject(object, "instructions");
    for (int i = 0; i < path->num_items; i++)
        cJSON_AddItemToArray(items, path_item_json(&path->items[i]));
}

static void disturbed_add(cJSON *json, const SimDisturbed *disturbed) {
    if (disturbed->num_repetitions == 0) return;
    cJSON *object = cJSON_AddObjectToObject(json, "disturbed");
    json_add_number(object, "repetitions", disturbed->num_repetitions);
    json_add_number(object, "undisturbed_step_time_s", disturbed->undisturbed_step_time_s);
    json_add_number(object, "mean_step_time_s", disturbed->mean_step_time_s);
    json_add_number(object, "p95_step_time_s", disturbed->p95_step_time_s);
    cJSON *causes = cJSON_AddObjectToObject(object, "difference_s");
    json_add_number(causes, "stragglers", disturbed->stragglers_s);
    json_add_number(causes, "jitter", disturbed->jitter_s);
    json_add_number(causes, "network", disturbed->network_s);
    cJSON *steps = cJSON_CreateDoubleArray(disturbed->step_times_s, disturbed->num_repetitions);
    cJSON_AddItemToObject(object, "step_times_s", steps);
}

cJSON *sim_result_to_json(const SimResult *result) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    json_add_number(json, "step_time_s", result->step_time_s);
    json_add_number(json, "estimate_step_time_s", result->estimate_step_time_s);
    difference_add(json, &result->difference);
    disturbed_add(json, &result->disturbed);
    json_add_number(json, "activities", (double)result->num_activities);
    cJSON_AddStringToObject(json, "folding", result->folding);
    cJSON_AddStringToObject(json, "folding_reason", result->folding_reason);
    add_bool(json, "contended", result->contended);
    json_add_number(json, "flow_lost_frac", result->flow_lost_frac);
    json_add_number(json, "flow_gained_frac", result->flow_gained_frac);
    add_bool(json, "network_used", result->num_links > 0);
    cJSON_AddItemToObject(json, "not_played",
                          cJSON_CreateStringArray(result->not_played, result->num_not_played));
    cJSON *links = cJSON_AddArrayToObject(json, "links");
    for (int i = 0; i < result->num_links; i++) {
        cJSON *link = cJSON_CreateObject();
        cJSON_AddStringToObject(link, "name", result->links[i].name);
        json_add_number(link, "utilization_frac", result->links[i].utilization_frac);
        cJSON_AddItemToArray(links, link);
    }
    path_add(json, &result->path);
    json_add_number(cJSON_AddObjectToObject(json, "timing"), "wall_s", result->wall_s);
    return json;
}
