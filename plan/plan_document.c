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

//   whole  with what each stage and layer does
static cJSON *parallel_to_json(const Plan *plan, bool whole) {
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
    if (whole) stages_add(parallel, plan);
    cJSON *layers = whole ? plan_layers_to_json(plan) : NULL;
    if (layers) cJSON_AddItemToObject(parallel, "layers", layers);
    cJSON_AddBoolToObject(parallel, "vocab_parallel", plan->vocab_barriers > 0);
    if (plan->vocab_barriers)
        cJSON_AddNumberToObject(parallel, "vocab_barriers", plan->vocab_barriers);
    if (plan->node_order) placement_add(parallel, plan->node_order);
    return parallel;
}

cJSON *plan_to_json(const Plan *plan) {
    return parallel_to_json(plan, true);
}

// --- The name

static int degree_of(const cJSON *parallel, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(parallel, key);
    return cJSON_IsNumber(item) ? item->valueint : 1;
}

// " key value" where the value is not 1.
static const char *degree_text(const cJSON *parallel, const char *key, Arena *arena) {
    const int value = degree_of(parallel, key);
    return value == 1 ? "" : arena_printf(arena, " %s %d", key, value);
}

static const char *word_of(const cJSON *parallel, const char *key, const char *otherwise) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(parallel, key));
    return text ? text : otherwise;
}

static const char *method_text(const cJSON *parallel) {
    const char *method = word_of(parallel, "cp_method", CP_METHOD_NAMES[CP_RING]);
    if (degree_of(parallel, "cp") == 1 || strcmp(method, CP_METHOD_NAMES[CP_RING]) == 0) return "";
    return strcmp(method, CP_METHOD_NAMES[CP_ULYSSES]) == 0 ? " ulysses" : " gather";
}

static const char *idle_text(const cJSON *parallel, Arena *arena) {
    const cJSON *idle = cJSON_GetObjectItemCaseSensitive(parallel, "idle_gpus");
    return cJSON_IsNumber(idle) && idle->valueint > 0
               ? arena_printf(arena, " (%d idle)", idle->valueint)
               : "";
}

// "zero3:8 kept": on how many ranks the shards are where not on all, where gathered weights stay.
static const char *zero_text(const cJSON *parallel, Arena *arena) {
    const cJSON *stage = cJSON_GetObjectItemCaseSensitive(parallel, "zero_stage");
    const cJSON *group = cJSON_GetObjectItemCaseSensitive(parallel, "zero_group");
    const cJSON *reshard = cJSON_GetObjectItemCaseSensitive(parallel, "reshard_after_forward");
    const int level = cJSON_IsNumber(stage) ? stage->valueint : 0;
    const char *text = arena_printf(arena, "zero%d", level);
    if (level > 0 && cJSON_IsNumber(group) &&
        group->valueint != degree_of(parallel, "dp") * degree_of(parallel, "cp"))
        text = arena_printf(arena, "%s:%d", text, group->valueint);
    return level == 3 && cJSON_IsFalse(reshard) ? arena_printf(arena, "%s kept", text) : text;
}

// " full", " selective:3"; where layers differ, how they do is in the document alone.
static const char *recompute_text(const cJSON *parallel, Arena *arena) {
    const char *recompute = word_of(parallel, "recompute", RECOMPUTE_NAMES[RECOMPUTE_NONE]);
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(parallel, "recompute_layers");
    if (cJSON_GetObjectItemCaseSensitive(parallel, "layers")) return " by layer";
    if (strcmp(recompute, RECOMPUTE_NAMES[RECOMPUTE_NONE]) == 0) return "";
    return cJSON_IsNumber(layers) ? arena_printf(arena, " %s:%d", recompute, layers->valueint)
                                  : arena_printf(arena, " %s", recompute);
}

static const char *name_of(const cJSON *p, const char *recompute, const char *layers,
                           Arena *arena) {
    const bool alternate = strcmp(word_of(p, "order", ""), PLAN_ORDER_NAMES[ORDER_PP_DP]) == 0 &&
                           degree_of(p, "pp") > 1 && degree_of(p, "dp") > 1;
    const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(p, "vocab_parallel");
    return arena_printf(arena, "tp %d%s%s pp %d%s dp %d%s%s%s mb %d %s%s %s%s%s%s",
                        degree_of(p, "tp"), degree_text(p, "cp", arena), method_text(p),
                        degree_of(p, "pp"), degree_text(p, "vpp", arena), degree_of(p, "dp"),
                        degree_text(p, "ep", arena), degree_text(p, "etp", arena),
                        idle_text(p, arena), degree_of(p, "micro_batch"), zero_text(p, arena),
                        recompute, word_of(p, "schedule", SCHEDULE_NAMES[SCHEDULE_1F1B]),
                        cJSON_IsTrue(vocab) ? " vocab" : "", alternate ? " pp-dp" : "", layers);
}

const char *parallel_describe(const cJSON *parallel, Arena *arena) {
    return name_of(parallel, recompute_text(parallel, arena), "", arena);
}

// " full x12 selective x20": how many layers are recomputed how.
static const char *mixed_text(const Plan *plan, Arena *arena) {
    const char *text = "";
    int num[NUM_RECOMPUTES] = {0};
    for (int l = 0; l < plan->layers->num_layers; l++)
        num[plan_strategy(plan, plan->layers->strategy[l]).recompute]++;
    for (int r = NUM_RECOMPUTES - 1; r > RECOMPUTE_NONE; r--)
        if (num[r] > 0) text = arena_printf(arena, "%s %s x%d", text, RECOMPUTE_NAMES[r], num[r]);
    return text;
}

const char *plan_describe(const Plan *plan, Arena *arena) {
    cJSON *parallel = parallel_to_json(plan, false);
    const char *recompute =
        plan_mixes_recompute(plan) ? mixed_text(plan, arena) : recompute_text(parallel, arena);
    const char *text = name_of(parallel, recompute, plan_layers_describe(plan, arena), arena);
    cJSON_Delete(parallel);
    return text;
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
