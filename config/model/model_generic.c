#include "config/model/model_import.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

#include <string.h>

// Every key of a generic model; each is read below or in model_read.c. Those from rope_theta on
// have no price; launch/ writes them.
#define GENERIC_KEY_LIST(X)                                                                        \
    X("model_type")                                                                                \
    X("name")                                                                                      \
    X("source")                                                                                    \
    X("published_parameters")                                                                      \
    X("parameters_source")                                                                         \
    X("hidden_size")                                                                               \
    X("intermediate_size")                                                                         \
    X("num_hidden_layers")                                                                         \
    X("num_attention_heads")                                                                       \
    X("num_key_value_heads")                                                                       \
    X("head_dim")                                                                                  \
    X("vocab_size")                                                                                \
    X("tie_word_embeddings")                                                                       \
    X("hidden_act")                                                                                \
    X("sliding_window")                                                                            \
    X("use_sliding_window")                                                                        \
    X("layer_types")                                                                               \
    X("mlp_only_layers")                                                                           \
    X("max_position_embeddings")                                                                   \
    X("num_experts")                                                                               \
    X("num_local_experts")                                                                         \
    X("n_routed_experts")                                                                          \
    X("num_experts_per_tok")                                                                       \
    X("moe_intermediate_size")                                                                     \
    X("n_shared_experts")                                                                          \
    X("shared_expert_intermediate_size")                                                           \
    X("first_k_dense_replace")                                                                     \
    X("decoder_sparse_step")                                                                       \
    X("num_nextn_predict_layers")                                                                  \
    X("q_lora_rank")                                                                               \
    X("kv_lora_rank")                                                                              \
    X("qk_nope_head_dim")                                                                          \
    X("qk_rope_head_dim")                                                                          \
    X("v_head_dim")                                                                                \
    X("gated_mlp")                                                                                 \
    X("norm")                                                                                      \
    X("position")                                                                                  \
    X("linear_bias")                                                                               \
    X("qkv_bias")                                                                                  \
    X("qk_norm")                                                                                   \
    X("attention_sinks")                                                                           \
    X("swiglu_limit")                                                                              \
    X("n_group")                                                                                   \
    X("topk_group")                                                                                \
    X("rope_theta")                                                                                \
    X("rope_scaling")                                                                              \
    X("partial_rotary_factor")                                                                     \
    X("rms_norm_eps")                                                                              \
    X("layer_norm_eps")                                                                            \
    X("scoring_func")                                                                              \
    X("topk_method")                                                                               \
    X("norm_topk_prob")                                                                            \
    X("routed_scaling_factor")

#define FIELD(name) {.key = (name)},
static const JsonField GENERIC_KEYS[] = {GENERIC_KEY_LIST(FIELD)};

#define NAME(name) name,
const char *const MODEL_TEXT_KEYS[] = {GENERIC_KEY_LIST(NAME) NULL};

bool model_key_is_known(const char *key) {
    for (size_t i = 0; i < sizeof GENERIC_KEYS / sizeof *GENERIC_KEYS; i++)
        if (strcmp(GENERIC_KEYS[i].key, key) == 0) return true;
    return false;
}

// gated_mlp, norm, position, linear_bias, qkv_bias (that of linear_bias), qk_norm, attention_sinks
// and tie_word_embeddings: defaults of the GPT-2 kind.
static Status read_kind(const JsonNode *config, ModelDraft *draft) {
    static const char *const NORMS[] = {"rmsnorm", "layernorm", NULL}; // as NormKind
    static const char *const POSITIONS[] = {"rope", "learned", "alibi", "none", NULL};
    // The names of Hugging Face for element-wise functions that cost alike.
    static const char *const ACTIVATIONS[] = {
        "gelu",       "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
        "quick_gelu", "relu",     "relu2",     "silu",
        "swish",      "tanh",     NULL};
    int norm = NORM_LAYERNORM, position = POSITION_LEARNED, activation;
    bool bias = true;
    JsonNode norm_node = json_get(config, "norm"), position_node = json_get(config, "position");
    JsonNode act_node = json_get(config, "hidden_act");
    if (json_is_present(&act_node)) TRY(json_read_name(&act_node, ACTIVATIONS, &activation));
    if (json_is_present(&norm_node)) TRY(json_read_name(&norm_node, NORMS, &norm));
    if (json_is_present(&position_node)) TRY(json_read_name(&position_node, POSITIONS, &position));
    TRY(key_read_bool(config, "linear_bias", &bias));
    TRY(key_read_bool(config, "gated_mlp", &draft->ffn.gated));
    TRY(key_read_bool(config, "tie_word_embeddings", &draft->model.tie_word_embeddings));
    draft->model.norm = (NormKind)norm;
    draft->model.norm_bias = draft->model.norm == NORM_LAYERNORM;
    draft->model.position = (PositionKind)position;
    draft->mixer.qkv_bias = draft->mixer.out_bias = bias;
    draft->ffn.bias = draft->ffn.expert_bias = bias;
    TRY(key_read_bool(config, "qkv_bias", &draft->mixer.qkv_bias));
    TRY(key_read_bool(config, "qk_norm", &draft->mixer.qk_norm));
    TRY(key_read_bool(config, "attention_sinks", &draft->mixer.sinks));
    return status_ok();
}

// Learned positions without a number of rows: 0, as many as the training's seq_len needs.
static Status read_positions(const JsonNode *config, ModelDraft *draft) {
    int rows;
    TRY(key_read_size(config, &(SizeKey){POSITIONS_KEYS, 1, MODEL_MAX_POSITIONS, 0, 0}, &rows));
    draft->model.max_position_embeddings = draft->model.position == POSITION_LEARNED ? rows : 0;
    return status_ok();
}

// A model with any of the MLA keys has MLA, and then needs all of them but q_lora_rank.
static Status read_attention(const JsonNode *config, ModelDraft *draft) {
    static const char *const MLA_KEYS[] = {"kv_lora_rank",     "q_lora_rank", "qk_nope_head_dim",
                                           "qk_rope_head_dim", "v_head_dim",  NULL};
    JsonNode node = key_find(config, MLA_KEYS);
    draft->mixer.kind = json_is_present(&node) ? MIXER_LATENT_ATTENTION : MIXER_ATTENTION;
    return model_read_attention(config, draft);
}

// Balancing by a number an expert, beside sigmoid scores (DeepSeek-V3's noaux_tc).
static bool scores_are_biased(const JsonNode *config) {
    const JsonNode score = json_get(config, "scoring_func"),
                   method = json_get(config, "topk_method");
    const char *of_score = cJSON_GetStringValue(score.item);
    const char *of_method = cJSON_GetStringValue(method.item);
    return of_score && strcmp(of_score, "sigmoid") == 0 &&
           (!of_method || strcmp(of_method, "noaux_tc") == 0);
}

static Status read_moe(const JsonNode *config, ModelDraft *draft) {
    static const char *const MOE_KEYS[] = {"num_experts_per_tok", "moe_intermediate_size",
                                           "n_shared_experts", "shared_expert_intermediate_size",
                                           NULL};
    JsonNode any = key_find(config, MOE_KEYS);
    const int absent = json_is_present(&any) ? KEY_REQUIRED : 0;
    TRY(key_read_size(config, &(SizeKey){EXPERTS_KEYS, 0, MODEL_MAX_EXPERTS, absent, absent},
                      &draft->ffn.num_experts));
    draft->ffn.norm_topk_prob = true;
    if (draft->ffn.num_experts > 0)
        TRY(model_read_experts(config, draft->ffn.intermediate_size, 0, draft));
    if (draft->ffn.num_experts == 0) draft->ffn.expert_bias = false;
    draft->ffn.router_bias =
        draft->ffn.num_experts > 0 && (draft->ffn.expert_bias || scores_are_biased(config));
    return status_ok();
}

static Status read_intermediate(const JsonNode *config, int *size) {
    return key_read_size(config, &(SizeKey){INTERMEDIATE_KEYS, 1, MODEL_MAX_INTERMEDIATE, 0, 0},
                         size);
}

// The MLP's size may be left out where every layer is a mixture of experts.
static Status check_intermediate(const JsonNode *config, const ModelDraft *draft) {
    JsonNode node = json_get(config, "intermediate_size");
    if (draft->ffn.intermediate_size > 0) return status_ok();
    for (int i = 0; i < draft->model.num_kinds; i++)
        if (!kind_is_moe(&draft->model.kinds[i]))
            return json_error(&node, "missing; expected a whole number");
    return status_ok();
}

Status model_import_generic(const JsonNode *config, Arena *arena, Model *model) {
    ModelDraft own = {.model = {.tie_word_embeddings = true,
                                .norms_per_layer = 2,
                                .final_norm = true}},
               *draft = &own;
    TRY(json_refuse_unknown(config, GENERIC_KEYS, sizeof GENERIC_KEYS / sizeof *GENERIC_KEYS));
    TRY(read_kind(config, draft));
    TRY(model_read_sizes(config, draft));
    TRY(read_attention(config, draft));
    TRY(read_intermediate(config, &draft->ffn.intermediate_size));
    TRY(read_moe(config, draft));
    TRY(model_read_expert_groups(config, draft));
    TRY(read_positions(config, draft));
    TRY(model_read_mtp(config, draft));
    TRY(model_read_functions(config, arena, &draft->model.functions));

    bool window_used = true;
    int window;
    TRY(key_read_bool(config, "use_sliding_window", &window_used));
    TRY(key_read_size(config, &(SizeKey){WINDOW_KEYS, 0, MODEL_MAX_POSITIONS, 0, 0}, &window));
    TRY(model_read_layers(config,
                          &(LayerDefaults){.rule = WINDOW_ALL, .window = window_used ? window : 0},
                          arena, draft));
    TRY(check_intermediate(config, draft));
    *model = draft->model;
    return model_check(config, model);
}
