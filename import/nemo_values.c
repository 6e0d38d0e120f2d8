#include "import/nemo_values.h"

#include "import/name_pattern.h"

#include <string.h>

// The member of an enumeration, which counts from 1; NULL where it is not known.
static const char *member_name(const char *enumeration, int number) {
    static const struct {
        const char *enumeration, *members[9];
    } ROWS[] = {
        {"AttnBackend", {"flash", "fused", "unfused", "local", "auto"}},
        {"CudaGraphScope",
         {"full_iteration", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba",
          "full_iteration_inference"}},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (strcmp(ROWS[i].enumeration, enumeration) == 0)
            return number >= 1 && number <= 8 ? ROWS[i].members[number - 1] : NULL;
    return NULL;
}

static const char *last_component(const char *text) {
    const char *dot = strrchr(text, '.');
    return dot ? dot + 1 : text;
}

// What a table stands for; NULL where it is no such table.
static const char *table_value(const cJSON *table) {
    const cJSON *target = cJSON_GetObjectItemCaseSensitive(table, "_target_"), *item;
    if (!cJSON_IsString(target)) return NULL;
    cJSON_ArrayForEach(item, table) if (item->string[0] != '_') return NULL;
    const char *name = last_component(target->valuestring);
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(table, "_name_");
    const cJSON *value = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(table, "_args_"), 0);
    if (cJSON_IsString(member)) return member->valuestring;
    if (cJSON_IsString(value)) return value->valuestring;
    if (cJSON_IsNumber(value)) return member_name(name, value->valueint);
    return value ? NULL : name;
}

static const char *text_value(const char *text) {
    static const char *const prefixes[] = {"torch.", "AttnBackend.", "CudaGraphScope."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) return last_component(text);
    return NULL;
}

static void children_unwrap(cJSON *parent, Arena *arena) {
    for (cJSON *child = parent->child, *next; child; child = next) {
        next = child->next;
        const char *value = cJSON_IsString(child)   ? text_value(child->valuestring)
                            : cJSON_IsObject(child) ? table_value(child)
                                                    : NULL;
        if (!value) {
            children_unwrap(child, arena);
            continue;
        }
        cJSON *plain = cJSON_CreateString(value);
        if (child->string)
            cJSON_ReplaceItemInObjectCaseSensitive(parent, arena_strdup(arena, child->string),
                                                   plain);
        else
            cJSON_ReplaceItemViaPointer(parent, child, plain);
    }
}

void nemo_values_unwrap(cJSON *config, Arena *arena) {
    cJSON *section;
    cJSON_ArrayForEach(section, config) children_unwrap(section, arena);
}

// Values that stand in every complete file, by section and key.
static const struct {
    const char *section, *key, *value; // value NULL: any
} OWN_KEYS[] = {
    {"model", "autocast_dtype", NULL},
    {"model", "barrier_with_L1_time", NULL},
    {"model", "batch_p2p_sync", NULL},
    {"model", "bf16", NULL},
    {"model", "fp16", NULL},
    {"model", "clone_scatter_output_in_embedding", NULL},
    {"model", "config_logger_dir", NULL},
    {"model", "cuda_graph_use_single_mempool", NULL},
    {"model", "cuda_graph_warmup_steps", NULL},
    {"model", "embedding_init_method*", NULL},
    {"model", "finalize_model_grads_func", NULL},
    {"model", "fp4_recipe", NULL},
    {"model", "fp8_amax*", NULL},
    {"model", "fp8_interval", NULL},
    {"model", "fp8_margin", NULL},
    {"model", "fp8_recipe", NULL},
    {"model", "generation_config", NULL},
    {"model", "grad_scale_func", NULL},
    {"model", "grad_sync_func", NULL},
    {"model", "hf_model_id", NULL},
    {"model", "high_freq_factor", NULL},
    {"model", "inference_*", NULL},
    {"model", "init_method*", NULL},
    {"model", "low_freq_factor", NULL},
    {"model", "make_vocab_size_divisible_by", NULL},
    {"model", "mamba_*", NULL},
    {"model", "moe_aux_loss_coeff", NULL},
    {"model", "moe_router_bias_update_rate", NULL},
    {"model", "no_sync_func", NULL},
    {"model", "old_context_len", NULL},
    {"model", "output_layer_init_method", NULL},
    {"model", "param_sync_func", NULL},
    {"model", "params_dtype", NULL},
    {"model", "perform_initialization", NULL},
    {"model", "pipeline_dtype", NULL},
    {"model", "scale_factor", NULL},
    {"model", "timers", NULL},
    {"model", "tp_comm_bootstrap_backend", NULL},
    {"model", "cpu_offloading_activations", "true"},
    {"model", "deallocate_pipeline_outputs", "true"},
    {"model", "fp8_wgrad", "true"},
    {"model", "masked_softmax_fusion", "true"},
    {"model", "moe_token_drop_policy", "probs"},
    {"model", "parallel_output", "true"},
    {"model", "rotary_percent", "1"},
    {"model", "scatter_embedding_sequence_parallel", "true"},
    {"model", "transformer_impl", "transformer_engine"},
    {"model", "tp_comm_bulk_dgrad", "true"},
    {"model", "tp_comm_bulk_wgrad", "true"},
    {"model", "tp_comm_overlap_ag", "true"},
    {"model", "tp_comm_overlap_rs", "true"},
    {"model", "tp_comm_split_ag", "true"},
    {"model", "tp_comm_split_rs", "true"},
    {"model", "use_mamba_mem_eff_path", "true"},
    {"model", "mlp_chunks_for_prefill", "1"},
    {"optimizer", "adam_*", NULL},
    {"optimizer", "barrier_with_L1_time", NULL},
    {"optimizer", "bf16", NULL},
    {"optimizer", "fp16", NULL},
    {"optimizer", "clip_grad", NULL},
    {"optimizer", "config_logger_dir", NULL},
    {"optimizer", "decoupled_*", NULL},
    {"optimizer", "fp8_recipe", NULL},
    {"optimizer", "hysteresis", NULL},
    {"optimizer", "initial_loss_scale", NULL},
    {"optimizer", "log_num_zeros_in_grad", NULL},
    {"optimizer", "loss_scale*", NULL},
    {"optimizer", "lr", NULL},
    {"optimizer", "min_loss_scale", NULL},
    {"optimizer", "min_lr", NULL},
    {"optimizer", "params_dtype", NULL},
    {"optimizer", "sgd_momentum", NULL},
    {"optimizer", "timers", NULL},
    {"optimizer", "weight_decay", NULL},
    {"optimizer", "main_grads_dtype", "float32"},
    {"optimizer", "main_params_dtype", "float32"},
    {"optimizer", "pin_cpu_grads", "true"},
    {"optimizer", "pin_cpu_params", "true"},
    {"optimizer", "store_param_remainders", "true"},
    {"mixed_precision", "autocast_dtype", NULL},
    {"mixed_precision", "fp32", NULL},
    {"mixed_precision", "fp8_amax*", NULL},
    {"mixed_precision", "fp8_margin", NULL},
    {"mixed_precision", "hysteresis", NULL},
    {"mixed_precision", "initial_loss_scale", NULL},
    {"mixed_precision", "loss_scale*", NULL},
    {"mixed_precision", "min_loss_scale", NULL},
    {"mixed_precision", "first_last_layers_bf16", NULL},
    {"mixed_precision", "fp8_wgrad", "true"},
};

static bool value_is(const cJSON *item, const char *value) {
    if (cJSON_IsTrue(item)) return strcmp(value, "true") == 0;
    if (cJSON_IsNumber(item)) return item->valuedouble == 1 && strcmp(value, "1") == 0;
    return cJSON_IsString(item) && strcmp(item->valuestring, value) == 0;
}

bool nemo_key_is_own(const char *section, const cJSON *item) {
    for (size_t i = 0; i < sizeof OWN_KEYS / sizeof *OWN_KEYS; i++)
        if (strcmp(OWN_KEYS[i].section, section) == 0 && name_fits(item->string, OWN_KEYS[i].key))
            return !OWN_KEYS[i].value || value_is(item, OWN_KEYS[i].value);
    return false;
}
