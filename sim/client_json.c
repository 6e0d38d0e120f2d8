#include "sim/sim.h"

static void add_bool(cJSON *object, const char *key, bool value) {
    cJSON_AddItemToObject(object, key, cJSON_CreateBool(value));
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
    disturbed_add(json, &result->disturbed);
    json_add_number(json, "activities", (double)result->num_activities);
    cJSON_AddStringToObject(json, "folding", result->folding);
    cJSON_AddStringToObject(json, "folding_reason", result->folding_reason);
    add_bool(json, "contended", result->contended);
    json_add_number(json, "flow_lost_frac", result->flow_lost_frac);
    json_add_number(json, "flow_gained_frac", result->flow_gained_frac);
    add_bool(json, "network_used", result->num_links > 0);
    cJSON *links = cJSON_AddArrayToObject(json, "links");
    for (int i = 0; i < result->num_links; i++) {
        cJSON *link = cJSON_CreateObject();
        cJSON_AddStringToObject(link, "name", result->links[i].name);
        json_add_number(link, "utilization_frac", result->links[i].utilization_frac);
        cJSON_AddItemToArray(links, link);
    }
    json_add_number(cJSON_AddObjectToObject(json, "timing"), "wall_s", result->wall_s);
    return json;
}
