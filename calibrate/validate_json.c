// The scores as a JSON document.
#include "calibrate/validate.h"

static cJSON *score_to_json(const ValidateScore *s) {
    cJSON *json = cJSON_CreateObject();
    if (s->family) cJSON_AddStringToObject(json, "family", s->family);
    json_add_number(json, "num_cases", s->num_cases);
    json_add_number(json, "num_refused", s->num_refused);
    json_add_number(json, "num_misfits", s->num_misfits);
    json_add_number(json, "mape_frac", s->mape_frac);
    json_add_number(json, "median_frac", s->median_frac);
    json_add_number(json, "p90_frac", s->p90_frac);
    json_add_number(json, "bias_frac", s->bias_frac);
    json_add_number(json, "inside_interval_frac", s->inside_interval_frac);
    json_add_number(json, "num_memory", s->num_memory);
    json_add_number(json, "memory_mape_frac", s->memory_mape_frac);
    json_add_number(json, "memory_max_frac", s->memory_max_frac);
    json_add_number(json, "num_jobs", s->num_jobs);
    json_add_number(json, "kendall_tau", s->kendall_tau);
    json_add_number(json, "regret_frac", s->regret_frac);
    return json;
}

static cJSON *part_to_json(const ValidatePart *part) {
    cJSON *json = cJSON_CreateObject();
    cJSON *families = cJSON_AddArrayToObject(json, "families");
    for (int f = 0; f < part->num_families; f++)
        cJSON_AddItemToArray(families, score_to_json(&part->families[f]));
    cJSON_AddItemToObject(json, "all", score_to_json(&part->all));
    json_add_number(json, "mean_of_families_frac", part->mean_of_families_frac);
    return json;
}

static void memory_to_json(cJSON *json, const ValidateCase *c) {
    const PublishedTruth *truth = &c->published->truth;
    const Estimate *e = &c->estimate;
    if (truth->memory_peak_bytes > 0)
        json_add_number(json, "measured_memory_peak_bytes", truth->memory_peak_bytes);
    if (truth->memory_reserved_bytes > 0)
        json_add_number(json, "measured_memory_reserved_bytes", truth->memory_reserved_bytes);
    json_add_number(json, "memory_peak_bytes", e->memory.peak_bytes);
    json_add_number(json, "memory_reserved_bytes", e->memory.reserved_bytes);
    json_add_number(json, "memory_device_bytes", e->memory.device_bytes);
    json_add_number(json, "memory_needs_bytes", e->memory.needs_bytes);
    json_add_number(json, "memory_available_bytes", e->memory_available_bytes);
    json_add_number(json, "memory_spread", e->memory.spread);
    json_add_number(json, "memory_low_bytes", e->memory_low_bytes);
    json_add_number(json, "memory_high_bytes", e->memory_high_bytes);
    json_add_number(json, "fits_probability_frac", e->fits_probability_frac);
    cJSON_AddItemToObject(json, "memory_bytes", memory_parts_to_json(&e->memory));
}

static cJSON *case_to_json(const ValidateCase *c) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "id", c->published->id);
    cJSON_AddStringToObject(json, "family", c->published->family);
    if (c->published->source) cJSON_AddStringToObject(json, "source", c->published->source);
    cJSON_AddBoolToObject(json, "gate", c->published->stated);
    if (c->refusal) {
        cJSON_AddStringToObject(json, "error", c->refusal);
        return json;
    }
    const Estimate *e = &c->estimate;
    json_add_number(json, "measured_step_time_s", c->measured_s);
    json_add_number(json, "step_time_s", e->step_time_s);
    json_add_number(json, "step_time_low_s", e->step_time_low_s);
    json_add_number(json, "step_time_high_s", e->step_time_high_s);
    json_add_number(json, "error_frac", c->error_frac);
    cJSON_AddBoolToObject(json, "fits", e->fits);
    memory_to_json(json, c);
    cJSON *terms = cJSON_AddObjectToObject(json, "breakdown_s");
    for (int t = 0; t < NUM_TERMS; t++) json_add_number(terms, TERM_NAMES[t], e->term_s[t]);
    return json;
}

static cJSON *refused_to_json(const ValidateResult *result) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < result->num_cases; i++)
        if (result->cases[i].refusal) cJSON_AddItemToArray(list, case_to_json(&result->cases[i]));
    return list;
}

cJSON *validate_to_json(const ValidateResult *result, const ValidateCase *const *worst,
                        int num_worst, bool with_cases) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddItemToObject(json, "stated", part_to_json(&result->stated));
    cJSON_AddItemToObject(json, "assumed", part_to_json(&result->assumed));
    cJSON *list = cJSON_AddArrayToObject(json, "worst");
    for (int i = 0; i < num_worst; i++) cJSON_AddItemToArray(list, case_to_json(worst[i]));
    cJSON_AddItemToObject(json, "refused", refused_to_json(result));
    if (!with_cases) return json;
    cJSON *cases = cJSON_AddArrayToObject(json, "cases");
    for (int i = 0; i < result->num_cases; i++)
        cJSON_AddItemToArray(cases, case_to_json(&result->cases[i]));
    return json;
}
