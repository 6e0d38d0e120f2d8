// The grid's result as JSON.
#include "whatif/whatif.h"

static cJSON *values_to_json(const WhatifResult *result, int64_t point) {
    cJSON *json = cJSON_CreateObject();
    for (int i = 0; i < result->num_axes; i++)
        cJSON_AddItemToObject(
            json, result->axes[i].path,
            cJSON_Duplicate(whatif_value(result->axes, result->num_axes, point, i), true));
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

static cJSON *point_to_json(const WhatifResult *result, int64_t index) {
    const WhatifPoint *point = &result->points[index];
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddItemToObject(entry, "values", values_to_json(result, index));
    if (point->answer) {
        cJSON_AddStringToObject(entry, "plan", point->plan);
        cJSON_AddItemToObject(entry, "answer", cJSON_Parse(point->answer));
    }
    if (point->message) cJSON_AddStringToObject(entry, "error", point->message);
    return entry;
}

cJSON *whatif_to_json(const WhatifResult *result) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddItemToObject(json, "vary", vary_to_json(result));
    cJSON_AddBoolToObject(json, "replan", result->replan);
    if (result->played) cJSON_AddTrueToObject(json, "played");
    cJSON *points = cJSON_AddArrayToObject(json, "points");
    for (int64_t i = 0; i < result->num_points; i++)
        cJSON_AddItemToArray(points, point_to_json(result, i));
    cJSON *timing = cJSON_AddObjectToObject(json, "timing");
    json_add_number(timing, "wall_s", result->wall_s);
    return json;
}
