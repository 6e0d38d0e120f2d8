// The whole configuration: its keys, the model, the degrees.
#include "import/torchtitan.h"

#include "base/data_dir.h"
#include "base/json.h"
#include "import/toml.h"
#include "launch/titan.h"

#include <string.h>

const cJSON *titan_key(const TitanRead *read, const char *section, const char *key) {
    const cJSON *table = cJSON_GetObjectItemCaseSensitive(read->config, section);
    return cJSON_GetObjectItemCaseSensitive(table, key);
}

static const char *place(const TitanRead *read, const char *section, const char *key) {
    return arena_printf(read->out->arena, "%s.%s", section, key);
}

Status titan_int(const TitanRead *read, const char *section, const char *key, int least, int absent,
                 int *value) {
    const cJSON *item = titan_key(read, section, key);
    *value = absent;
    if (!item) return status_ok();
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1e18;
    if (number < least || number > 2e9 || number != (double)(int)number)
        return import_refuse(read->out, place(read, section, key),
                             "is not a whole number from %d to 2000000000", least);
    *value = (int)number;
    return status_ok();
}

Status titan_text(const TitanRead *read, const char *section, const char *key, const char *absent,
                  const char **value) {
    const cJSON *item = titan_key(read, section, key);
    *value = absent;
    if (!item) return status_ok();
    if (!cJSON_IsString(item))
        return import_refuse(read->out, place(read, section, key), "is no text");
    *value = item->valuestring;
    return status_ok();
}

bool titan_true(const TitanRead *read, const char *section, const char *key) {
    return cJSON_IsTrue(titan_key(read, section, key));
}

// The preset by name; where torchtitan's has no multi-token prediction, the preset without it.
static Status model_add(TitanRead *read, const char *preset) {
    JsonNode root;
    TRY(json_load(data_path(read->out->arena, "models", preset), read->out->arena, &root));
    read->num_layers = cJSON_GetObjectItemCaseSensitive(root.item, "num_hidden_layers")->valueint;
    read->has_experts = cJSON_GetObjectItemCaseSensitive(root.item, "n_routed_experts") != NULL;
    if (!cJSON_GetObjectItemCaseSensitive(root.item, "num_nextn_predict_layers")) {
        cJSON_AddStringToObject(read->out->scenario, "model", preset);
        return status_ok();
    }
    cJSON *model = cJSON_Duplicate(root.item, true);
    static const char *const others[] = {"num_nextn_predict_layers", "source",
                                         "published_parameters", "parameters_source", NULL};
    for (int i = 0; others[i]; i++) cJSON_DeleteItemFromObjectCaseSensitive(model, others[i]);
    cJSON_AddItemToObject(read->out->scenario, "model", model);
    return status_ok();
}

Status titan_read_model(TitanRead *read) {
    const char *name, *flavor, *known = "";
    TRY(titan_text(read, "model", "name", "llama3", &name));
    TRY(titan_text(read, "model", "flavor", "debugmodel", &flavor));
    for (const TitanModel *row = TITAN_MODELS; row->name; row++) {
        if (strcmp(row->name, name) == 0 && strcmp(row->flavor, flavor) == 0)
            return model_add(read, row->preset);
        known = arena_printf(read->out->arena, "%s%s%s %s", known, known[0] ? ", " : "", row->name,
                             row->flavor);
    }
    return import_refuse(read->out, "model.flavor", "%.40s %.40s is not known; expected one of %s",
                         name, flavor, known);
}

static Status sharding_read(TitanRead *read) {
    int copies, shard;
    const char *reshard;
    TRY(titan_int(read, "parallelism", "data_parallel_replicate_degree", 1, 1, &copies));
    TRY(titan_int(read, "parallelism", "data_parallel_shard_degree", -1, -1, &shard));
    TRY(titan_text(read, "parallelism", "fsdp_reshard_after_forward", "default", &reshard));
    if (shard == -1 && read->dp % copies == 0) shard = read->dp / copies;
    if (shard < 1 || (double)shard * copies != read->dp)
        return import_refuse(read->out, "parallelism.data_parallel_shard_degree",
                             "%d copies of %d shards are not the %d data-parallel ranks", copies,
                             shard, read->dp);
    bool sharded = shard > 1 || read->cp > 1;
    cJSON_AddNumberToObject(read->parallel, "zero_stage", sharded ? 3 : 0);
    if (sharded && copies > 1)
        cJSON_AddNumberToObject(read->parallel, "zero_group", shard * read->cp);
    // fully_shard of a pipeline keeps its weights between micro-batches unless it is told to.
    bool keeps = strcmp(reshard, "never") == 0 || (strcmp(reshard, "default") == 0 && read->pp > 1);
    cJSON_AddBoolToObject(read->parallel, "reshard_after_forward", !keeps);
    return status_ok();
}

static Status context_read(TitanRead *read) {
    const char *method;
    TRY(titan_text(read, "parallelism", "context_parallel_rotate_method", "allgather", &method));
    if (read->cp == 1) return status_ok();
    bool ring = strcmp(method, "alltoall") == 0;
    if (!ring && strcmp(method, "allgather") != 0)
        return import_refuse(read->out, "parallelism.context_parallel_rotate_method",
                             "\"%.40s\" is unknown; expected allgather or alltoall", method);
    cJSON_AddStringToObject(read->parallel, "cp_method", ring ? "ring" : "all-gather");
    return status_ok();
}

static Status experts_read(TitanRead *read) {
    int ep, etp;
    TRY(titan_int(read, "parallelism", "expert_parallel_degree", 1, 1, &ep));
    TRY(titan_int(read, "parallelism", "expert_tensor_parallel_degree", 1, read->tp, &etp));
    if (!read->has_experts) return status_ok();
    if (ep > 1) cJSON_AddNumberToObject(read->parallel, "ep", ep);
    if (etp > 1) cJSON_AddNumberToObject(read->parallel, "etp", etp);
    return status_ok();
}

Status titan_read_degrees(TitanRead *read) {
    TRY(titan_int(read, "parallelism", "tensor_parallel_degree", 1, 1, &read->tp));
    TRY(titan_int(read, "parallelism", "pipeline_parallel_degree", 1, 1, &read->pp));
    TRY(titan_int(read, "parallelism", "context_parallel_degree", 1, 1, &read->cp));
    double ranks = (double)read->tp * read->pp * read->cp;
    if (ranks > read->num_gpus || read->num_gpus % (int)ranks != 0)
        return import_refuse(read->out, "parallelism.tensor_parallel_degree",
                             "tp %d x pp %d x cp %d does not divide the %d GPUs of --cluster",
                             read->tp, read->pp, read->cp, read->num_gpus);
    read->dp = read->num_gpus / (int)ranks;
    cJSON_AddNumberToObject(read->parallel, "tp", read->tp);
    cJSON_AddNumberToObject(read->parallel, "pp", read->pp);
    cJSON_AddNumberToObject(read->parallel, "cp", read->cp);
    cJSON_AddNumberToObject(read->parallel, "dp", read->dp);
    TRY(sharding_read(read));
    TRY(context_read(read));
    return experts_read(read);
}

Status import_torchtitan(const char *text, const ImportOptions *options, Imported *out) {
    char message[300];
    cJSON *config = toml_parse_text(text, message, sizeof message);
    if (!config) return status_at(STATUS_INVALID, out->file, "", "%s", message);
    json_own(out->arena, config);
    TitanRead read = {.out = out, .config = config};
    TRY(titan_read_model(&read));
    TRY(import_cluster(out, options, 0, &read.num_gpus));
    read.training = cJSON_AddObjectToObject(out->scenario, "training");
    read.parallel = cJSON_AddObjectToObject(out->scenario, "parallel");
    TRY(titan_read_degrees(&read));
    TRY(titan_read_training(&read));
    TRY(titan_read_pipeline(&read));
    return titan_refuse_unread(&read);
}
