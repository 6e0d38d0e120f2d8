// The grid's result as JSON.
#include "whatif/whatif.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Of the answers that were read so many leave the memory together.
enum { FORGET_POINTS = 4096 };

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

//   read  makes an item of the answer's text
static cJSON *point_to_json(const WhatifResult *result, int64_t index,
                            cJSON *(*read)(const char *text)) {
    const WhatifPoint *point = &result->points[index];
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddItemToObject(entry, "values", values_to_json(result, index));
    if (point->answer) {
        cJSON_AddStringToObject(entry, "plan", point->plan);
        cJSON_AddItemToObject(entry, "answer", read(point->answer));
    }
    if (point->message) cJSON_AddStringToObject(entry, "error", point->message);
    return entry;
}

static cJSON *frame_with(const WhatifResult *result, cJSON *points) {
    cJSON *json = cJSON_CreateObject();
    json_add_number(json, "schema", 1);
    cJSON_AddItemToObject(json, "vary", vary_to_json(result));
    cJSON_AddBoolToObject(json, "replan", result->replan);
    if (result->played) cJSON_AddTrueToObject(json, "played");
    cJSON_AddItemToObject(json, "points", points);
    cJSON *timing = cJSON_AddObjectToObject(json, "timing");
    json_add_number(timing, "wall_s", result->wall_s);
    return json;
}

cJSON *whatif_to_frame(const WhatifResult *result) {
    return frame_with(result, cJSON_CreateArray());
}

cJSON *whatif_to_json(const WhatifResult *result) {
    return whatif_to_brief_json(result, result->num_points);
}

// Behind it an answer goes. No key of a scenario has the name, and in a string a backslash would
// stand before the second quote.
static const char HOLE[] = "\"answer\":";

static cJSON *hole_read(const char *text) {
    (void)text;
    return cJSON_CreateRaw("");
}

// The entry's text with the answer in its hole, which is most of it and is copied once.
static const char *hole_filled(const char *entry, const char *answer, Arena *arena) {
    const char *hole = answer ? strstr(entry, HOLE) : NULL;
    if (!hole) return arena_strdup(arena, entry);
    const size_t before = (size_t)(hole - entry) + sizeof HOLE - 1, length = strlen(answer);
    char *text = arena_alloc(arena, strlen(entry) + length + 1);
    memcpy(text, entry, before);
    memcpy(text + before, answer, length);
    strcpy(text + before + length, entry + before);
    return text;
}

static const char *point_text(const void *context, int64_t index, Arena *arena) {
    const WhatifResult *result = context;
    if (index % FORGET_POINTS == 0) spill_forget(result->answers);
    cJSON *entry = point_to_json(result, index, hole_read);
    char *text = cJSON_PrintUnformatted(entry);
    const char *filled = text ? hole_filled(text, result->points[index].answer, arena) : NULL;
    cJSON_free(text);
    cJSON_Delete(entry);
    return filled;
}

JsonDocument whatif_document(const WhatifResult *result, const cJSON *tree) {
    return (JsonDocument){.tree = tree,
                          .list = "points",
                          .num_elements = result->num_points,
                          .element = point_text,
                          .context = result};
}

// --- Figures alone

typedef struct {
    double tokens_per_s, usd_per_1e9_tokens; // of points that fit
} Best;

// Whether it is the most or the cheapest so far.
static bool best_take(Best *best, const WhatifPoint *point) {
    const double rate = point->figures.tokens_per_s, usd = point->figures.usd_per_1e9_tokens;
    if (point->code != STATUS_OK) return false;
    const bool is_most = rate > best->tokens_per_s;
    const bool is_cheapest = usd > 0 && usd < best->usd_per_1e9_tokens;
    if (is_most) best->tokens_per_s = rate;
    if (is_cheapest) best->usd_per_1e9_tokens = usd;
    return is_most || is_cheapest;
}

// The number as it reads from the document, whose digits may be one in the last place away.
static void figure_add(cJSON *json, const char *key, double value) {
    cJSON *number = cJSON_CreateNumber(value);
    char *text = cJSON_PrintUnformatted(number);
    if (text) cJSON_SetNumberValue(number, strtod(text, NULL));
    cJSON_free(text);
    cJSON_AddItemToObjectCS(json, key, number);
}

static cJSON *figures_to_json(const WhatifResult *result, int64_t index, bool with_values) {
    const WhatifPoint *point = &result->points[index];
    cJSON *entry = cJSON_CreateObject();
    if (with_values) cJSON_AddItemToObjectCS(entry, "values", values_to_json(result, index));
    if (!point->answer) return entry;
    cJSON *answer = cJSON_CreateObject();
    cJSON_AddItemToObjectCS(entry, "answer", answer);
    if (point->code != STATUS_OK) cJSON_AddItemToObjectCS(answer, "fits", cJSON_CreateFalse());
    figure_add(answer, "step_time_s", point->figures.step_time_s);
    figure_add(answer, "tokens_per_s", point->figures.tokens_per_s);
    if (point->figures.usd_per_1e9_tokens > 0)
        figure_add(answer, "usd_per_1e9_tokens", point->figures.usd_per_1e9_tokens);
    return entry;
}

cJSON *whatif_to_brief_json(const WhatifResult *result, int64_t num_whole) {
    Best best = {0, INFINITY};
    cJSON *points = cJSON_CreateArray();
    for (int64_t i = 0; i < result->num_points; i++) {
        const bool is_best = best_take(&best, &result->points[i]);
        cJSON_AddItemToArray(points, i < num_whole ? point_to_json(result, i, cJSON_Parse)
                                                   : figures_to_json(result, i, is_best));
    }
    return frame_with(result, points);
}
