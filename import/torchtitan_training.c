// Batch, precision, recomputation.
#include "import/torchtitan.h"

#include <stdlib.h>
#include <string.h>

static Status batch_read(TitanRead *read) {
    const char *section = "training";
    int local, micro, global, sequence;
    const char *key = titan_key(read, section, "batch_size") ? "batch_size" : "local_batch_size";
    TRY(titan_int(read, section, key, 1, 8, &local));
    TRY(titan_int(read, section, "global_batch_size", -1, -1, &global));
    TRY(titan_int(read, section, "seq_len", 1, 2048, &sequence));
    TRY(titan_int(read, "parallelism", "pipeline_parallel_microbatch_size", 1, 1, &micro));
    if (read->pp == 1) micro = local;
    double all = (double)local * read->dp;
    if (all > 2e9) return import_refuse(read->out, "training.local_batch_size", "is too large");
    if (global < 1) global = (int)all;
    if (read->pp > 1 && global != (int)all)
        return import_refuse(read->out, "training.global_batch_size",
                             "%d beside local_batch_size %d x %d replicas: several passes of a "
                             "pipeline in a step are not supported yet",
                             global, local, read->dp);
    cJSON_AddNumberToObject(read->training, "seq_len", sequence);
    cJSON_AddNumberToObject(read->training, "global_batch", global);
    cJSON_AddNumberToObject(read->parallel, "micro_batch", micro);
    return status_ok();
}

// "float8" or ["float8", ...].
static bool converts(const TitanRead *read, const char *name) {
    const cJSON *item = titan_key(read, "model", "converters"), *entry;
    if (cJSON_IsString(item)) return strstr(item->valuestring, name) != NULL;
    cJSON_ArrayForEach(entry, item) {
        if (cJSON_IsString(entry) && strcmp(entry->valuestring, name) == 0) return true;
    }
    return false;
}

static Status precision_read(TitanRead *read) {
    const char *param, *recipe;
    TRY(titan_text(read, "training", "mixed_precision_param", "bfloat16", &param));
    TRY(titan_text(read, "float8", "recipe_name", "tensorwise", &recipe));
    bool fp8 = converts(read, "float8"), mx = converts(read, "mx");
    const char *precision = fp8 ? "fp8" : mx ? "mxfp8" : "bf16";
    if (strcmp(param, "float32") == 0) precision = "fp32";
    cJSON_AddStringToObject(read->training, "precision", precision);
    if (fp8) {
        bool rowwise = strncmp(recipe, "rowwise", 7) == 0;
        cJSON_AddStringToObject(read->training, "fp8_recipe", rowwise ? "rowwise" : "tensorwise");
        if (titan_true(read, "float8", "enable_fsdp_float8_all_gather"))
            import_note(read->out, "float8.enable_fsdp_float8_all_gather is left out: weights are "
                                   "priced as gathered in bf16.");
        if (strcmp(recipe, "rowwise_with_gw_hp") == 0)
            import_note(read->out, "float8.recipe_name rowwise_with_gw_hp is priced as rowwise.");
    }
    return status_ok();
}

// Every n-th layer whole: activation_checkpoint.py counts from 1.
static Status every_layer_read(TitanRead *read, const char *option) {
    char *end;
    long every = strtol(option, &end, 10);
    if (*end || every < 1 || every > 10000)
        return import_refuse(read->out, "activation_checkpoint.selective_ac_option",
                             "\"%.40s\" is neither op nor a whole number", option);
    cJSON_AddStringToObject(read->parallel, "recompute", "none");
    cJSON *layers = cJSON_AddArrayToObject(read->parallel, "layers");
    for (int l = (int)every - 1; l < read->num_layers; l += (int)every) {
        cJSON *layer = cJSON_CreateObject();
        cJSON_AddNumberToObject(layer, "from", l);
        cJSON_AddNumberToObject(layer, "to", l);
        cJSON_AddStringToObject(layer, "recompute", "full");
        cJSON_AddItemToArray(layers, layer);
    }
    return status_ok();
}

static Status recompute_read(TitanRead *read) {
    const char *mode, *option, *section = "activation_checkpoint";
    TRY(titan_text(read, section, "mode", "selective", &mode));
    TRY(titan_text(read, section, "selective_ac_option", "2", &option));
    bool selective = strcmp(mode, "selective") == 0;
    if (!selective && strcmp(mode, "full") != 0 && strcmp(mode, "none") != 0)
        return import_refuse(read->out, "activation_checkpoint.mode",
                             "\"%.40s\" is unknown; expected selective, full or none", mode);
    if (selective && strcmp(option, "op") != 0) return every_layer_read(read, option);
    cJSON_AddStringToObject(read->parallel, "recompute", mode);
    return status_ok();
}

// Whether [compile] names a part: absent, it is all.
static bool compiles(const TitanRead *read, const char *part) {
    const cJSON *list = titan_key(read, "compile", "components"), *entry;
    if (titan_true(read, "training", "compile")) return true;
    if (!titan_true(read, "compile", "enable")) return false;
    cJSON_ArrayForEach(entry, list) {
        if (cJSON_IsString(entry) && strcmp(entry->valuestring, part) == 0) return true;
    }
    return list == NULL;
}

Status titan_read_training(TitanRead *read) {
    const char *optimizer;
    bool compile = compiles(read, "model");
    TRY(batch_read(read));
    TRY(precision_read(read));
    TRY(titan_text(read, "optimizer", "name", "AdamW", &optimizer));
    if (strncmp(optimizer, "Adam", 4) != 0)
        return import_refuse(read->out, "optimizer.name",
                             "\"%.40s\" is not supported yet; expected AdamW", optimizer);
    if (titan_true(read, "training", "enable_cpu_offload"))
        return import_refuse(read->out, "training.enable_cpu_offload", "is not supported yet");
    cJSON_AddStringToObject(read->training, "stack", "torchtitan");
    cJSON_AddBoolToObject(read->training, "compile", compile);
    cJSON_AddBoolToObject(read->training, "cross_entropy_fused", compiles(read, "loss"));
    cJSON_AddBoolToObject(read->training, "tp_comm_overlap",
                          compile && read->tp > 1 &&
                              titan_true(read, "parallelism", "enable_async_tensor_parallel"));
    return recompute_read(read);
}
