// Keys that are not read: the user's own, and those that nobody here knows.
#include "import/name_pattern.h"
#include "import/torchtitan.h"

#include <string.h>

// What is read, by section and key.
static const char *const READ_KEYS[] = {"activation_checkpoint.mode",
                                        "activation_checkpoint.selective_ac_option",
                                        "compile.components",
                                        "compile.enable",
                                        "float8.enable_fsdp_float8_all_gather",
                                        "float8.recipe_name",
                                        "model.converters",
                                        "model.flavor",
                                        "model.name",
                                        "optimizer.name",
                                        "parallelism.context_parallel_degree",
                                        "parallelism.context_parallel_rotate_method",
                                        "parallelism.data_parallel_replicate_degree",
                                        "parallelism.data_parallel_shard_degree",
                                        "parallelism.enable_async_tensor_parallel",
                                        "parallelism.expert_parallel_degree",
                                        "parallelism.expert_tensor_parallel_degree",
                                        "parallelism.fsdp_reshard_after_forward",
                                        "parallelism.module_fqns_per_model_part",
                                        "parallelism.pipeline_parallel_degree",
                                        "parallelism.pipeline_parallel_first_stage_less_layers",
                                        "parallelism.pipeline_parallel_last_stage_less_layers",
                                        "parallelism.pipeline_parallel_layers_per_stage",
                                        "parallelism.pipeline_parallel_microbatch_size",
                                        "parallelism.pipeline_parallel_schedule",
                                        "parallelism.pipeline_parallel_split_points",
                                        "parallelism.tensor_parallel_degree",
                                        "training.batch_size",
                                        "training.compile",
                                        "training.enable_cpu_offload",
                                        "training.global_batch_size",
                                        "training.local_batch_size",
                                        "training.mixed_precision_param",
                                        "training.seq_len",
                                        NULL};

// What changes neither the price of a step nor the model: names, or beginnings ("job.*").
static const char *const OWN_KEYS[] = {
    "activation_checkpoint.early_stop",
    "activation_checkpoint.per_op_sac_force_recompute*",
    "checkpoint.*",
    "comm.*",
    "debug.*",
    "eval.*",
    "experimental.custom_args_module",
    "experimental.custom_import",
    "float8.filter_fqns",
    "float8.precompute_float8_dynamic_scale_for_fsdp", // of the gather that is noted
    "job.*",
    "lr_scheduler.*",
    "memory_estimation.*",
    "metrics.*",
    "model.hf_assets_path",
    "model.print_after_conversion",
    "model.tokenizer_path",
    "mx.filter_fqns",
    "mx.recipe_name",
    "optimizer.beta*",
    "optimizer.eps",
    "optimizer.implementation",
    "optimizer.lr",
    "optimizer.weight_decay",
    "parallelism.fsdp_gradient_divide_factor",
    "profiling.*",
    "training.data*",
    "training.deterministic",
    "training.gc_*",
    "training.max_norm",
    "training.mixed_precision_reduce",
    "training.seed",
    "training.steps",
    "training.warmup_steps",
    "validation.*",
    NULL};

static bool is_off(const cJSON *item) {
    return cJSON_IsFalse(item) || cJSON_IsNull(item) ||
           (cJSON_IsArray(item) && cJSON_GetArraySize(item) == 0) ||
           (cJSON_IsString(item) && item->valuestring[0] == '\0');
}

// A degree that stands where older versions had it, or has another name, would change the plan.
static Status degree_refuse(const TitanRead *read, const char *place, const char *key) {
    const char *known = arena_printf(read->out->arena, "parallelism.%s", key);
    return import_refuse(read->out, place, "is not known; expected %s",
                         name_is_among(known, READ_KEYS) ? known : "a key of job_config.py");
}

Status titan_refuse_unread(const TitanRead *read) {
    Arena *arena = read->out->arena;
    NoteNames names = {.length = 0};
    const cJSON *section, *item;
    cJSON_ArrayForEach(section, read->config) {
        if (!cJSON_IsObject(section)) continue;
        cJSON_ArrayForEach(item, section) {
            const char *place = arena_printf(arena, "%s.%s", section->string, item->string);
            if (name_is_among(place, READ_KEYS) || name_is_among(place, OWN_KEYS) || is_off(item))
                continue;
            const size_t length = strlen(item->string);
            if (length > 7 && strcmp(item->string + length - 7, "_degree") == 0)
                return degree_refuse(read, place, item->string);
            note_names_add(&names, place, "");
        }
    }
    if (names.length > 0)
        import_note(read->out, "Not read, for meshwright does not know what they change: %s.",
                    note_names_text(&names, arena));
    return status_ok();
}
