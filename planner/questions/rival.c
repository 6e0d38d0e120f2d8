#include "planner/questions/rival.h"

#include "planner/questions/idle.h"
#include "planner/questions/place_best.h"
#include "planner/why/explain.h"

#include <string.h>

const char *const RIVAL_PARTS[6] = {"weights",     "gradients", "optimizer",
                                    "activations", "buffers",   NULL};

static void parts_subtract(const RankMemory *a, const RankMemory *b, double *difference) {
    difference[0] = a->weights_bytes - b->weights_bytes;
    difference[1] = a->gradients_bytes - b->gradients_bytes;
    difference[2] = a->optimizer_bytes - b->optimizer_bytes;
    difference[3] = a->activations_bytes - b->activations_bytes;
    difference[4] = a->buffers_bytes - b->buffers_bytes;
}

// What is named may be outside of the scenario's constraints, and then be better than their best.
static const char *why_text(const PlannerResult *best, Rival *rival, Arena *arena) {
    PlannedEntry named = rival->found.entries[0], first = best->entries[0];
    named.loses_frac = rival->loses_frac;
    if (rival->loses_frac >= 0) return explain_worse(best, &first, &named, arena);
    first.loses_frac = 1 / (1 + rival->loses_frac) - 1;
    return arena_printf(arena,
                        "better than the best within the scenario's constraints, which is %s",
                        explain_worse(best, &named, &first, arena));
}

static void rival_compare(const Scenario *scenario, const PlannerResult *best, Arena *arena,
                          Rival *rival) {
    const PlannedEntry *named = &rival->found.entries[0], *first = &best->entries[0];
    const Estimate *a = &named->estimate, *b = &first->estimate;
    for (int t = 0; t < NUM_TERMS; t++) rival->term_s[t] = a->term_s[t] - b->term_s[t];
    parts_subtract(&a->memory, &b->memory, rival->part_bytes);
    rival->memory_device_bytes = a->memory.device_bytes - b->memory.device_bytes;
    rival->loses_frac = explain_value(&rival->found, named) / explain_value(best, first) - 1;
    rival->within_noise_of_best = explain_within_noise(scenario, best->objective, first, named);
    rival->why = why_text(best, rival, arena);
}

// The sentence of a refusal without the file that it names.
static const char *refusal_text(const Scenario *scenario, const Status *status, Arena *arena) {
    const size_t length = strlen(scenario->file);
    const char *text = status->text;
    if (strncmp(text, scenario->file, length) == 0 && text[length] == ':') text += length + 2;
    return arena_strdup(arena, text);
}

Status planner_rival(const Scenario *named, const PlannerOptions *options,
                     const PlannerResult *best, Arena *arena, Rival *out) {
    Rival rival = {0};
    PlannerOptions one = *options;
    one.top = 1;
    Scenario used;
    Status status = planner_search_idle(named, &one, arena, &used, &rival.found);
    if (status.code == STATUS_INVALID) {
        *out = (Rival){.refusal = refusal_text(named, &status, arena)};
        return status_ok();
    }
    TRY(status);
    TRY(planner_place_best(&used, &one, arena, &rival.found));
    if (rival.found.num_entries > 0) rival_compare(&used, best, arena, &rival);
    *out = rival;
    return status_ok();
}

cJSON *rival_to_json(const Rival *rival, const char *text) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "named", text);
    cJSON_AddBoolToObject(json, "legal", !rival->refusal);
    if (rival->refusal) {
        cJSON_AddStringToObject(json, "why", rival->refusal);
        return json;
    }
    const bool fits = rival->found.num_entries > 0;
    cJSON_AddBoolToObject(json, "fits", fits);
    cJSON *found = planner_to_json(&rival->found);
    cJSON *search = cJSON_DetachItemFromObjectCaseSensitive(found, "search");
    if (fits) {
        cJSON *plans = cJSON_GetObjectItemCaseSensitive(found, "plans");
        cJSON *plan = cJSON_DetachItemFromArray(plans, 0);
        static const char *const OF_A_RANKING[] = {"within_noise_of_best", "loses_frac", "why"};
        for (size_t i = 0; i < sizeof OF_A_RANKING / sizeof *OF_A_RANKING; i++)
            cJSON_DeleteItemFromObjectCaseSensitive(plan, OF_A_RANKING[i]);
        cJSON_AddItemToObject(json, "plan", plan);
        json_add_number(json, "loses_frac", rival->loses_frac);
        cJSON_AddBoolToObject(json, "within_noise_of_best", rival->within_noise_of_best);
        cJSON_AddStringToObject(json, "why", rival->why);
        cJSON *terms = cJSON_AddObjectToObject(json, "difference_s");
        for (int t = 0; t < NUM_TERMS; t++) json_add_number(terms, TERM_NAMES[t], rival->term_s[t]);
        cJSON *bytes = cJSON_AddObjectToObject(json, "difference_bytes");
        json_add_number(bytes, "memory_device_bytes", rival->memory_device_bytes);
        for (int i = 0; RIVAL_PARTS[i]; i++)
            json_add_number(bytes, RIVAL_PARTS[i], rival->part_bytes[i]);
    } else {
        cJSON_AddItemToObject(json, "closest_miss",
                              cJSON_DetachItemFromObjectCaseSensitive(found, "closest_miss"));
    }
    cJSON_AddItemToObject(json, "search", search);
    cJSON_Delete(found);
    return json;
}
