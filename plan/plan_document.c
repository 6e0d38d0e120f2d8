// A plan as text and as JSON.
#include "plan/plan.h"

#include "base/data_dir.h"
#include "base/file_hash.h"
#include "plan/layer_plans.h"
#include "plan/rank_place.h"

#include <stdlib.h>
#include <string.h>

static void modules_add(cJSON *parallel, int modules) {
    cJSON *list = cJSON_AddArrayToObject(parallel, "recompute_modules");
    for (int i = 0; RECOMPUTE_MODULE_NAMES[i]; i++)
        if (modules & 1 << i)
            cJSON_AddItemToArray(list, cJSON_CreateString(RECOMPUTE_MODULE_NAMES[i]));
}

static void stages_add(cJSON *parallel, const Plan *plan) {
    cJSON *list = cJSON_AddArrayToObject(parallel, "stages");
    for (int c = 0; c < plan_num_stages(plan); c++) {
        const PlanChunk *chunk = &plan->chunks[c];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(list, entry);
        cJSON_AddNumberToObject(entry, "layers", chunk->num_layers);
        if (chunk->embedding) cJSON_AddTrueToObject(entry, "embedding");
        if (chunk->num_mtp) cJSON_AddNumberToObject(entry, "mtp", chunk->num_mtp);
        if (chunk->loss) cJSON_AddTrueToObject(entry, "loss");
    }
}

static void placement_add(cJSON *parallel, const NodeOrder *order) {
    cJSON_AddItemToObject(parallel, "placement",
                          cJSON_CreateIntArray(order->node, order->num_nodes));
}

cJSON *plan_to_json(const Plan *plan) {
    const struct {
        const char *key;
        int value;
    } counts[] = {
        {"tp", plan->tp},   {"pp", plan->pp},
        {"dp", plan->dp},   {"cp", plan->cp},
        {"ep", plan->ep},   {"etp", plan->etp},
        {"vpp", plan->vpp}, {"micro_batch", plan->micro_batch},
    };
    cJSON *parallel = cJSON_CreateObject();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        cJSON_AddNumberToObject(parallel, counts[i].key, counts[i].value);
    if (plan->idle_gpus) cJSON_AddNumberToObject(parallel, "idle_gpus", plan->idle_gpus);
    cJSON_AddBoolToObject(parallel, "sequence_parallel", plan->sequence_parallel);
    cJSON_AddNumberToObject(parallel, "zero_stage", plan->zero_stage);
    cJSON_AddNumberToObject(parallel, "zero_group", plan->zero_group);
    cJSON_AddBoolToObject(parallel, "reshard_after_forward", plan->reshard_after_forward);
    cJSON_AddStringToObject(parallel, "recompute", RECOMPUTE_NAMES[plan->recompute]);
    // Absent: per operator, and all layers.
    if (plan->recompute == RECOMPUTE_SELECTIVE && plan->recompute_modules)
        modules_add(parallel, plan->recompute_modules);
    if (plan->recompute_layers != ABSENT)
        cJSON_AddNumberToObject(parallel, "recompute_layers", plan->recompute_layers);
    cJSON_AddStringToObject(parallel, "schedule", plan_schedule_name(plan));
    cJSON_AddStringToObject(parallel, "cp_method", CP_METHOD_NAMES[plan->cp_method]);
    cJSON_AddStringToObject(parallel, "order", PLAN_ORDER_NAMES[plan->order]);
    stages_add(parallel, plan);
    cJSON *layers = plan_layers_to_json(plan);
    if (layers) cJSON_AddItemToObject(parallel, "layers", layers);
    cJSON_AddBoolToObject(parallel, "vocab_parallel", plan->vocab_barriers > 0);
    if (plan->vocab_barriers)
        cJSON_AddNumberToObject(parallel, "vocab_barriers", plan->vocab_barriers);
    if (plan->node_order) placement_add(parallel, plan->node_order);
    return parallel;
}

// " name value" where value is not 1.
static const char *degree_text(Arena *arena, const char *name, int value) {
    return value == 1 ? "" : arena_printf(arena, " %s %d", name, value);
}

// " full x12 selective x20": how many layers are recomputed how.
static const char *recompute_text(const Plan *plan, Arena *arena) {
    const char *text = "";
    int num[NUM_RECOMPUTES] = {0};
    const bool mixed = plan_mixes_recompute(plan);
    for (int l = 0; mixed && l < plan->layers->num_layers; l++)
        num[plan_strategy(plan, plan->layers->strategy[l]).recompute]++;
    for (int r = NUM_RECOMPUTES - 1; r > RECOMPUTE_NONE; r--)
        if (num[r] > 0) text = arena_printf(arena, "%s %s x%d", text, RECOMPUTE_NAMES[r], num[r]);
    if (mixed || plan->recompute == RECOMPUTE_NONE) return text;
    text = arena_printf(arena, " %s", RECOMPUTE_NAMES[plan->recompute]);
    if (plan->recompute_layers != ABSENT)
        text = arena_printf(arena, "%s:%d", text, plan->recompute_layers);
    return text;
}

const char *plan_describe(const Plan *plan, Arena *arena) {
    static const char *const METHODS[] = {"", " ulysses",
                                          " gather"}; // the ring goes without saying
    const char *method = plan->cp > 1 ? METHODS[plan->cp_method] : "";
    const bool hybrid = plan->zero_stage > 0 && plan->zero_group != plan->dp * plan->cp;
    const char *idle = plan->idle_gpus ? arena_printf(arena, " (%d idle)", plan->idle_gpus) : "";
    const char *group = hybrid ? arena_printf(arena, ":%d", plan->zero_group) : "";
    return arena_printf(
        arena, "tp %d%s%s pp %d%s dp %d%s%s%s mb %d zero%d%s%s%s %s%s%s%s", plan->tp,
        degree_text(arena, "cp", plan->cp), method, plan->pp, degree_text(arena, "vpp", plan->vpp),
        plan->dp, degree_text(arena, "ep", plan->ep), degree_text(arena, "etp", plan->etp), idle,
        plan->micro_batch, plan->zero_stage, group,
        plan_zero_level(plan) == ZERO_LEVEL_KEPT ? " kept" : "", recompute_text(plan, arena),
        plan_schedule_name(plan), plan->vocab_barriers ? " vocab" : "",
        plan_stages_alternate(plan) ? " pp-dp" : "", plan_layers_describe(plan, arena));
}

static void member_set(cJSON *object, const char *key, cJSON *value) {
    if (cJSON_GetObjectItemCaseSensitive(object, key))
        cJSON_ReplaceItemInObjectCaseSensitive(object, key, value);
    else
        cJSON_AddItemToObject(object, key, value);
}

// A path that leads from any folder to the file that this one led to from the scenario's.
static void path_make_absolute(const Scenario *scenario, cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsString(item) || item->valuestring[0] == '/') return;
    Arena scratch = {0};
    char *path = realpath(path_beside(&scratch, scenario->file, item->valuestring), NULL);
    if (path) member_set(object, key, cJSON_CreateString(path));
    free(path);
    arena_free(&scratch);
}

static void schedule_make_portable(const Plan *plan, cJSON *parallel) {
    char *path = plan->schedule_file ? realpath(plan->schedule_file->file, NULL) : NULL;
    if (!path) return;
    Arena scratch = {0};
    member_set(parallel, "schedule", cJSON_CreateString(arena_printf(&scratch, "file:%s", path)));
    arena_free(&scratch);
    free(path);
}

static void cluster_make_portable(const Scenario *scenario, cJSON *cluster) {
    const cJSON *gpu = cJSON_GetObjectItemCaseSensitive(cluster, "gpu");
    if (cJSON_IsString(gpu) && value_is_path(gpu->valuestring))
        path_make_absolute(scenario, cluster, "gpu");
    path_make_absolute(scenario, cluster, "bandwidth_matrix");
    cJSON *up = cJSON_GetObjectItemCaseSensitive(cluster, "scale_up");
    const cJSON *link = cJSON_GetObjectItemCaseSensitive(up, "link");
    if (cJSON_IsString(link) && value_is_path(link->valuestring))
        path_make_absolute(scenario, up, "link");
    cJSON *group;
    cJSON_ArrayForEach(group, cJSON_GetObjectItemCaseSensitive(cluster, "groups"))
        cluster_make_portable(scenario, group);
}

cJSON *plan_document(const Scenario *scenario, const Plan *plan, const cJSON *provenance) {
    cJSON *document = cJSON_Duplicate(scenario->document, true);
    member_set(document, "model", cJSON_Duplicate(scenario->model_document, true));
    cJSON *cluster = cJSON_GetObjectItemCaseSensitive(document, "cluster");
    if (cJSON_IsObject(cluster)) cluster_make_portable(scenario, cluster);
    if (cJSON_IsString(cluster) && value_is_json_path(cluster->valuestring))
        path_make_absolute(scenario, document, "cluster");
    path_make_absolute(scenario, document, "calibration");
    path_make_absolute(scenario, document, "prices");
    cJSON *parallel = plan_to_json(plan);
    schedule_make_portable(plan, parallel);
    member_set(document, "parallel", parallel);
    cJSON_DeleteItemFromObjectCaseSensitive(document, "provenance");
    if (provenance)
        cJSON_AddItemToObject(document, "provenance", cJSON_Duplicate(provenance, true));
    return document;
}

const char *plan_id(const Scenario *scenario, const Plan *plan, Arena *arena) {
    cJSON *document = plan_document(scenario, plan, NULL);
    char *text = cJSON_PrintUnformatted(document);
    const char *id = text_hash(
        arena_printf(arena, "meshwright %s %s", MESHWRIGHT_VERSION, text ? text : ""), arena);
    cJSON_free(text);
    cJSON_Delete(document);
    return id;
}
