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
    // A model that also sees images keeps its language model in text_config.
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(model, "text_config");
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(text, key);
    if (!item) item = cJSON_GetObjectItemCaseSensitive(model, key);
    return item && !cJSON_IsNull(item) ? item : NULL;
}

double megatron_model_number(const Scenario *scenario, const char *key, Arena *arena,
                             double absent) {
    const cJSON *item = megatron_model_key(scenario, key, arena);
    return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

double megatron_norm_epsilon(const Scenario *scenario, Arena *arena) {
    static const char *const KEYS[] = {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon",
                                       "norm_eps", "norm_epsilon"};
    for (int i = 0; i < 5; i++) {
        double value = megatron_model_number(scenario, KEYS[i], arena, 0);
        if (value > 0) return value;
    }
    return 0;
}

static void activation_flags(const Scenario *scenario, FlagList *flags) {
    const cJSON *item = megatron_model_key(scenario, "hidden_act", flags->arena);
    const char *name = cJSON_IsString(item) ? item->valuestring : "";
    // gpt-oss: x sigmoid(1.702 x) of a clamped gate, times the other half plus 1 (quick GELU).
    const double limit = scenario->model.functions.swiglu_limit;
    if (limit > 0) {
        flag_switch(flags, "--quick-geglu");
        flag_number(flags, "--activation-func-clamp-value", limit);
        flag_number(flags, "--glu-linear-offset", 1);
    } else if (model_ffn(&scenario->model)->gated) {
        flag_switch(flags, "--swiglu");
    } else if (strcmp(name, "relu2") == 0) {
        flag_switch(flags, "--squared-relu");
    }
}

static void bias_flags(const Model *model, FlagList *flags) {
    const Mixer *mixer = model_mixer(model);
    const FeedForward *ffn = model_ffn(model);
    bool dense = false;
    for (int k = 0; k < model->num_kinds; k++) dense |= !kind_is_moe(&model->kinds[k]);
    bool mlp = (!dense || ffn->bias) && (ffn->num_experts == 0 || ffn->expert_bias);
    if (mixer->qkv_bias && mixer->out_bias && mlp) return;
    flag_switch(flags, "--disable-bias-linear");
    if (mixer->qkv_bias) flag_switch(flags, "--add-qkv-bias");
}

static void latent_flags(const Mixer *mixer, FlagList *flags) {
    flag_switch(flags, "--multi-latent-attention");
    if (mixer->q_lora_rank > 0) flag_int(flags, "--q-lora-rank", mixer->q_lora_rank);
    flag_int(flags, "--kv-lora-rank", mixer->kv_lora_rank);
    flag_int(flags, "--qk-head-dim", mixer->qk_nope_head_dim);
    flag_int(flags, "--qk-pos-emb-head-dim", mixer->qk_rope_head_dim);
    flag_int(flags, "--v-head-dim", mixer->v_head_dim);
    flag_int(flags, "--kv-channels", mixer->v_head_dim);
    flag_switch(flags, "--qk-layernorm");
}

// Which layers use the one window there may be: "[1,0]*12" is written out in full.
static void window_flags(const Model *model, FlagList *flags) {
    int window = 0, num_windowed = 0;
    for (int l = 0; l < model->num_layers; l++) {
        int own = model->kinds[model->layer_kind[l]].mixer.window;
        if (own == 0) continue;
        window = own;
        num_windowed++;
    }
    if (window == 0) return;
    flag_text(flags, "--window-size", arena_printf(flags->arena, "%d,0", window - 1));
    if (num_windowed == model->num_layers) return;
    char *list = arena_alloc(flags->arena, 2 * (size_t)model->num_layers + 2), *at = list;
    for (int l = 0; l < model->num_layers; l++) {
        *at++ = l == 0 ? '[' : ',';
        *at++ = model->kinds[model->layer_kind[l]].mixer.window ? '1' : '0';
    }
    *at = ']';
    flag_text(flags, "--window-attn-skip-freq", list);
}

static void attention_flags(const Model *model, FlagList *flags) {
    const Mixer *mixer = model_mixer(model);
    flag_int(flags, "--num-attention-heads", mixer->num_heads);
    if (mixer_is_latent(mixer)) {
        latent_flags(mixer, flags);
    } else {
        if (mixer->num_kv_heads != mixer->num_heads) {
            flag_switch(flags, "--group-query-attention");
            flag_int(flags, "--num-query-groups", mixer->num_kv_heads);
        }
        flag_int(flags, "--kv-channels", mixer->head_dim);
        if (mixer->qk_norm) flag_switch(flags, "--qk-layernorm");
    }
    if (mixer->sinks) flag_text(flags, "--softmax-type", "learnable");
    window_flags(model, flags);
}

void megatron_model_flags(const Scenario *scenario, FlagList *flags) {
    const Model *model = &scenario->model;
    const FeedForward *ffn = model_ffn(model);
    flag_int(flags, "--num-layers", model->num_layers);
    flag_int(flags, "--hidden-size", model->hidden_size);
    flag_int(flags, "--ffn-hidden-size",
             ffn->intermediate_size > 0 ? ffn->intermediate_size : ffn->moe_intermediate_size);
    attention_flags(model, flags);
    flag_int(flags, "--seq-length", scenario->training.seq_len);
    megatron_position_flags(scenario, flags);
    flag_text(flags, "--normalization", model->norm == NORM_RMSNORM ? "RMSNorm" : "LayerNorm");
    double epsilon = megatron_norm_epsilon(scenario, flags->arena);
    if (epsilon > 0) flag_number(flags, "--norm-epsilon", epsilon);
    activation_flags(scenario, flags);
    bias_flags(model, flags);
    if (!model->tie_word_embeddings) flag_switch(flags, "--untie-embeddings-and-output-weights");
    if (model->num_mtp_layers > 0) flag_int(flags, "--mtp-num-layers", model->num_mtp_layers);
    if (!scenario->execution.stack.training.dropout) {
        flag_int(flags, "--attention-dropout", 0);
        flag_int(flags, "--hidden-dropout", 0);
    }
}
