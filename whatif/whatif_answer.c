// The grid's result as JSON.
#include "whatif/whatif.h"

static cJSON *values_to_json(const WhatifResult *result, const WhatifPoint *point) {
    cJSON *json = cJSON_CreateObject();
    for (int i = 0; i < result->num_axes; i++)
        cJSON_AddItemToObject(json, result->axes[i].path, cJSON_Duplicate(point->values[i], true));
    return json;
}

static cJSON *vary_to_json(const WhatifResult *result) {
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < result->num_axes; i++) {
        const WhatifAxis *axis = &result->axes[i];
        cJSON *json = cJSON_CreateObject();
        cJSON_AddItemToArray(list, json);
        cJSON_AddStringToObject(json, "path", axis->path);
        cJSON *values = cJSON_AddArrayToObject(json, "values");
        for (int v = 0; v < axis->num_values; v++)
            cJSON_AddItemToArray(values, cJSON_Duplicate(axis->values[v], true));
    }
    return list;
}

cJSON *whatif_to_json(const WhatifResult *result) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddItemToObject(json, "vary", vary_to_json(result));
    cJSON_AddBoolToObject(json, "replan", result->replan);
    cJSON *points = cJSON_AddArrayToObject(json, "points");
    for (int64_t i = 0; i < result->num_points; i++) {
        const WhatifPoint *point = &result->points[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(points, entry);
        cJSON_AddItemToObject(entry, "values", values_to_json(result, point));
        if (point->has_answer)
            cJSON_AddItemToObject(entry, "answer",
                                  estimate_to_json(&point->estimate, &point->plan));
        if (point->message) cJSON_AddStringToObject(entry, "error", point->message);
    }
    cJSON *timing = cJSON_AddObjectToObject(json, "timing");
    json_add_number(timing, "wall_s", result->wall_s);
    return json;
}
