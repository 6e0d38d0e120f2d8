// What Megatron-LM must build: the architecture.
#include "base/data_dir.h"
#include "launch/megatron.h"

#include <string.h>

const cJSON *megatron_model_key(const Scenario *scenario, const char *key, Arena *arena) {
    const cJSON *model = scenario->model_document;
    if (cJSON_IsString(model)) {
        JsonNode preset;
        Status status = json_load(data_path(arena, "models", model->valuestring), arena, &preset);
        if (status.code != STATUS_OK) return NULL; // it was read before: gone since
        model = preset.item;
    }
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(model, key);
    return item && !cJSON_IsNull(item) ? item : NULL;
}

static double number_of_key(const Scenario *scenario, const char *key, Arena *arena,
                            double absent) {
    const cJSON *item = megatron_model_key(scenario, key, arena);
    return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

static Status refuse_unknown_layers(const Scenario *scenario) {
    const Model *model = &scenario->model;
    if (model->embedding_norm)
        return megatron_refuse(scenario, "model", "a model without it",
                               "a norm after the embedding has no flag");
    if (model->norms_per_layer != 2)
        return megatron_refuse(scenario, "model", "2 norms a layer",
                               "%d norms a layer have no flag", model->norms_per_layer);
    if (model->parallel_residual)
        return megatron_refuse(scenario, "model", "attention and MLP one after the other",
                               "a parallel residual has no flag");
    if (!model->final_norm)
        return megatron_refuse(scenario, "model", "a model with it",
                               "leaving out the final norm has no flag");
    if (model->lm_head_bias)
        return megatron_refuse(scenario, "model", "a head without it",
                               "a bias in the head has no flag");
    if (model->norm == NORM_LAYERNORM && !model->norm_bias)
        return megatron_refuse(scenario, "model", "RMSNorm, or LayerNorm with a bias",
                               "LayerNorm without a bias has no flag");
    return status_ok();
}

static Status activation_flags(const Scenario *scenario, FlagList *flags) {
    const cJSON *item = megatron_model_key(scenario, "hidden_act", flags->arena);
    const char *name = cJSON_IsString(item) ? item->valuestring : NULL;
    bool gated = scenario->model.gated_mlp;
    if (!name) name = gated ? "silu" : "gelu";
    if (gated && (strcmp(name, "silu") == 0 || strcmp(name, "swiglu") == 0)) {
        flag_switch(flags, "--swiglu");
        return status_ok();
    }
    if (!gated && strcmp(name, "relu2") == 0) {
        flag_switch(flags, "--squared-relu");
        return status_ok();
    }
    if (!gated && strncmp(name, "gelu", 4) == 0) return status_ok();
    return megatron_refuse(scenario, "model.hidden_act", gated ? "silu" : "gelu or relu2",
                           "\"%.40s\" in a%s MLP has no flag", name,
                           gated ? " gated" : "n ungated");
}

static Status bias_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    bool dense = false;
    for (int k = 0; k < model->num_kinds; k++) dense |= !model->kinds[k].moe;
    bool mlp = (!dense || model->mlp_bias) && (model->num_experts == 0 || model->expert_bias);
    bool no_mlp = (!dense || !model->mlp_bias) && (model->num_experts == 0 || !model->expert_bias);
    if (model->qkv_bias && model->attention_out_bias && mlp) return status_ok();
    if (model->attention_out_bias || !no_mlp)
        return megatron_refuse(scenario, "model", "a bias everywhere, nowhere, or in qkv alone",
                               "biases in some linear layers (qkv %d, attention output %d, MLP %d) "
                               "have no flag",
                               model->qkv_bias, model->attention_out_bias, !no_mlp);
    flag_switch(flags, "--disable-bias-linear");
    if (model->qkv_bias) flag_switch(flags, "--add-qkv-bias");
    return status_ok();
}

static Status position_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    int longest = model->max_position_embeddings;
    if (longest < scenario->training.seq_len) longest = (int)scenario->training.seq_len;
    flag_int(flags, "--max-position-embeddings", longest);
    switch (model->position) {
    case POSITION_ROPE:
        flag_text(flags, "--position-embedding-type", "rope");
        break;
    case POSITION_LEARNED:
        flag_text(flags, "--position-embedding-type", "learned_absolute");
        return status_ok();
    case POSITION_NONE:
        flag_text(flags, "--position-embedding-type", "none");
        return status_ok();
    case POSITION_ALIBI:
        return megatron_refuse(scenario, "model", "rope", "ALiBi positions have no flag");
    }
    double base = number_of_key(scenario, "rope_theta", flags->arena, 0);
    if (base > 0)
        flag_int(flags, "--rotary-base", (long long)base);
    else
        flag_raw(flags, "--rotary-base", "\"$ROTARY_BASE\"");
    double part = number_of_key(scenario, "partial_rotary_factor", flags->arena,
                                number_of_key(scenario, "rotary_pct", flags->arena, 1));
    if (part < 1) flag_number(flags, "--rotary-percent", part);
    return status_ok();
}

static void mla_flags(const Model *model, FlagList *flags) {
    flag_switch(flags, "--multi-latent-attention");
    if (model->q_lora_rank > 0) flag_int(flags, "--q-lora-rank", model->q_lora_rank);
    flag_int(flags, "--kv-lora-rank", model->kv_lora_rank);
    flag_int(flags, "--qk-head-dim", model->qk_nope_head_dim);
    flag_int(flags, "--qk-pos-emb-head-dim", model->qk_rope_head_dim);
    flag_int(flags, "--v-head-dim", model->v_head_dim);
    flag_int(flags, "--kv-channels", model->v_head_dim);
    flag_switch(flags, "--qk-layernorm");
}

// Which layers use the one window there may be: "[1,0]*12" is written out in full.
static Status window_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    int window = 0, num_windowed = 0;
    for (int l = 0; l < model->num_layers; l++) {
        int own = model->kinds[model->layer_kind[l]].window;
        if (own == 0) continue;
        if (window && own != window)
            return megatron_refuse(scenario, "model", "one window for all windowed layers",
                                   "windows of %d and %d tokens have no flag", window, own);
        window = own;
        num_windowed++;
    }
    if (window == 0) return status_ok();
    flag_text(flags, "--window-size", arena_printf(flags->arena, "%d,0", window - 1));
    if (num_windowed == model->num_layers) return status_ok();
    char *list = arena_alloc(flags->arena, 2 * (size_t)model->num_layers + 2), *at = list;
    for (int l = 0; l < model->num_layers; l++) {
        *at++ = l == 0 ? '[' : ',';
        *at++ = model->kinds[model->layer_kind[l]].window ? '1' : '0';
    }
    *at = ']';
    flag_text(flags, "--window-attn-skip-freq", list);
    return status_ok();
}

static Status attention_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    flag_int(flags, "--num-attention-heads", model->num_heads);
    if (model->attention == ATTENTION_MLA) {
        mla_flags(model, flags);
    } else {
        if (model->num_kv_heads != model->num_heads) {
            flag_switch(flags, "--group-query-attention");
            flag_int(flags, "--num-query-groups", model->num_kv_heads);
        }
        flag_int(flags, "--kv-channels", model->head_dim);
        if (model->qk_norm) flag_switch(flags, "--qk-layernorm");
    }
    if (model->attention_sinks) flag_text(flags, "--softmax-type", "learnable");
    return window_flags(scenario, flags);
}

Status megatron_model_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    TRY(refuse_unknown_layers(scenario));
    flag_int(flags, "--num-layers", model->num_layers);
    flag_int(flags, "--hidden-size", model->hidden_size);
    flag_int(flags, "--ffn-hidden-size",
             model->intermediate_size > 0 ? model->intermediate_size
                                          : model->moe_intermediate_size);
    TRY(attention_flags(scenario, flags));
    flag_int(flags, "--seq-length", scenario->training.seq_len);
    TRY(position_flags(scenario, flags));
    flag_text(flags, "--normalization", model->norm == NORM_RMSNORM ? "RMSNorm" : "LayerNorm");
    const char *epsilon = model->norm == NORM_RMSNORM ? "rms_norm_eps" : "layer_norm_eps";
    double value = number_of_key(scenario, epsilon, flags->arena, 0);
    if (value > 0) flag_number(flags, "--norm-epsilon", value);
    TRY(activation_flags(scenario, flags));
    TRY(bias_flags(scenario, flags));
    if (!model->tie_word_embeddings) flag_switch(flags, "--untie-embeddings-and-output-weights");
    if (model->num_mtp_layers > 0) flag_int(flags, "--mtp-num-layers", model->num_mtp_layers);
    if (!scenario->training.stack.dropout) {
        flag_int(flags, "--attention-dropout", 0);
        flag_int(flags, "--hidden-dropout", 0);
    }
    return status_ok();
}
