// The grid's result as JSON and as a table.
#include "whatif/whatif.h"

#include <stdlib.h>
#include <string.h>

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

// --- Table

static char *value_text(const cJSON *value, Arena *arena) {
    if (cJSON_IsString(value)) return arena_strdup(arena, value->valuestring);
    char *printed = cJSON_PrintUnformatted(value);
    char *text = arena_strdup(arena, printed ? printed : "");
    cJSON_free(printed);
    return text;
}

static void row_print(const WhatifPoint *point, Arena *arena, FILE *stream) {
    if (!point->has_answer) {
        fprintf(stream, "  %s\n", point->message);
        return;
    }
    const Estimate *e = &point->estimate;
    fprintf(stream, "  %11.3f s  %14.4g  %5.1f %%  %8.2f GB  %s%s\n", e->step_time_s,
            e->tokens_per_s, 100 * e->mfu_frac, e->memory.device_bytes / 1e9,
            plan_describe(&point->plan, arena), point->code == STATUS_OK ? "" : "  DOES NOT FIT");
}

void whatif_print(const WhatifResult *result, FILE *stream) {
    Arena scratch = {0};
    int widths[WHATIF_MAX_AXES];
    for (int i = 0; i < result->num_axes; i++) {
        const WhatifAxis *axis = &result->axes[i];
        widths[i] = (int)strlen(axis->path);
        for (int v = 0; v < axis->num_values; v++) {
            int width = (int)strlen(value_text(axis->values[v], &scratch));
            if (width > widths[i]) widths[i] = width;
        }
        fprintf(stream, "%s%*s", i ? "  " : "", widths[i], axis->path);
    }
    fprintf(stream, "  %13s  %14s  %7s  %11s  %s\n", "step time", "tokens/s", "MFU", "GPU memory",
            "plan");
    for (int64_t p = 0; p < result->num_points; p++) {
        const WhatifPoint *point = &result->points[p];
        arena_reset(&scratch);
        for (int i = 0; i < result->num_axes; i++)
            fprintf(stream, "%s%*s", i ? "  " : "", widths[i],
                    value_text(point->values[i], &scratch));
        row_print(point, &scratch, stream);
    }
    arena_free(&scratch);
}
