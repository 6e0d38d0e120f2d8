#include "config/job/scenario_inputs.h"

#include "base/data_dir.h"

#include <string.h>

typedef struct {
    const Scenario *scenario;
    Arena *arena;
    ScenarioInput *inputs; // [capacity]
    int num_inputs;
} InputList;

static void input_add(InputList *list, const char *what, const char *path) {
    list->inputs[list->num_inputs++] = (ScenarioInput){what, path};
}

// The value of a key of an object; NULL where it is no string.
static const char *text_of(const cJSON *object, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void path_add(InputList *list, const char *what, const char *path) {
    if (path) input_add(list, what, path_beside(list->arena, list->scenario->file, path));
}

// The value may be a preset's name as well.
static void profile_add(InputList *list, const char *what, const char *name) {
    if (name && value_is_path(name)) path_add(list, what, name);
}

static void cluster_add(InputList *list, const cJSON *cluster) {
    profile_add(list, "GPU profile", text_of(cluster, "gpu"));
    path_add(list, "bandwidth_matrix", text_of(cluster, "bandwidth_matrix"));
    profile_add(list, "link profile",
                text_of(cJSON_GetObjectItemCaseSensitive(cluster, "scale_up"), "link"));
}

int scenario_inputs(const Scenario *scenario, Arena *arena, const ScenarioInput **out) {
    static const char FILE_PREFIX[] = "file:"; // of a schedule of the user's own
    const cJSON *document = scenario->document, *group;
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(document, "cluster");
    const cJSON *groups = cJSON_GetObjectItemCaseSensitive(cluster, "groups");
    const cJSON *parallel = cJSON_GetObjectItemCaseSensitive(document, "parallel");
    const int num_pools = scenario->cluster.num_pools;
    enum { MAX_OTHERS = 8 }; // three of each group, and those that are there once
    InputList list = {.scenario = scenario, .arena = arena};
    list.inputs =
        ARENA_ARRAY(arena, MAX_OTHERS + 3 * cJSON_GetArraySize(groups) + num_pools, ScenarioInput);
    input_add(&list, "scenario", scenario->file);
    profile_add(&list, "model", text_of(document, "model"));
    cluster_add(&list, cluster);
    if (cJSON_IsString(cluster) && value_is_json_path(cluster->valuestring)) {
        path_add(&list, "cluster", cluster->valuestring);
        for (int p = 0; p < num_pools; p++)
            input_add(&list, "GPU profile", scenario->cluster.pools[p].gpu.file);
    }
    cJSON_ArrayForEach(group, groups) cluster_add(&list, group);
    path_add(&list, "calibration", text_of(document, "calibration"));
    const char *schedule = text_of(parallel, "schedule");
    if (schedule && strncmp(schedule, FILE_PREFIX, strlen(FILE_PREFIX)) == 0)
        path_add(&list, "schedule", schedule + strlen(FILE_PREFIX));
    *out = list.inputs;
    return list.num_inputs;
}
