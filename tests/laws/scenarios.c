#include "tests/laws/scenarios.h"

#include <string.h>

enum { MAX_ATTEMPTS = 100 };

Status scenario_take(const cJSON *document, KernelShelf *shelf, Arena *arena, DrawnScenario *out) {
    JsonNode *root = ARENA_NEW(arena, JsonNode);
    *root = (JsonNode){.file = "drawn.json", .item = document};
    out->document = document;
    TRY(scenario_read_shared(root, shelf, arena, &out->scenario));
    TRY(scenario_refuse_unsupported(&out->scenario));
    return plan_resolve(&out->scenario, arena, &out->plan);
}

// Of what the model and the machine alone say; false where one of them is refused.
static bool sizes_of(const cJSON *document, Arena *arena, DrawnSizes *out) {
    JsonNode root = {.file = "drawn.json", .item = document};
    const JsonNode model_node = json_get(&root, "model"), cluster_node = json_get(&root, "cluster");
    Model model;
    Cluster cluster;
    if (model_load(&model_node, arena, &model).code != STATUS_OK) return false;
    if (cluster_load(&cluster_node, arena, &cluster).code != STATUS_OK) return false;
    *out = (DrawnSizes){.num_gpus = cluster.num_gpus,
                        .num_layers = model.num_layers,
                        .num_heads = model_mixer(&model)->num_heads,
                        .num_kv_heads = model_mixer(&model)->num_kv_heads,
                        .num_experts = model_ffn(&model)->num_experts,
                        .num_mtp = model.num_mtp_layers,
                        .latent = model_mixer(&model)->kind == MIXER_LATENT_ATTENTION};
    return true;
}

static bool document_draw(const ScenarioSpace *space, Draw *draw, Arena *arena, cJSON *document) {
    DrawnSizes sizes;
    cJSON_AddNumberToObject(document, "schema", 1);
    cJSON_AddItemToObject(document, "model", draw_model(space, draw));
    cJSON_AddItemToObject(document, "cluster", draw_cluster(space, draw));
    if (!sizes_of(document, arena, &sizes)) return false;
    cJSON *parallel = draw_parallel(space, &sizes, draw);
    cJSON_AddItemToObject(document, "training", draw_training(space, &sizes, parallel, draw));
    if (space->split == SPLIT_NONE)
        cJSON_Delete(parallel);
    else
        cJSON_AddItemToObject(document, "parallel", parallel);
    return true;
}

bool scenario_draw(const ScenarioSpace *space, uint64_t seed, uint32_t number, KernelShelf *shelf,
                   Arena *arena, DrawnScenario *out) {
    for (uint32_t attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        Draw draw = draw_start(seed, number, attempt);
        cJSON *document = cJSON_CreateObject();
        json_own(arena, document);
        if (document_draw(space, &draw, arena, document) &&
            scenario_take(document, shelf, arena, out).code == STATUS_OK)
            return true;
    }
    return false;
}
