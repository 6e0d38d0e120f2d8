// MosaicML's MPT.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"

#include <string.h>

// Refuses a switch that is on and that nothing here can model.
static Status refuse_if_true(const JsonNode *config, const char *key, const char *what) {
    bool on = false;
    TRY(key_read_bool(config, key, &on));
    JsonNode node = json_get(config, key);
    return on ? json_error(&node, "%s is not supported yet", what) : status_ok();
}

// Position of an MPT: ALiBi before rotary before learned, as in llm-foundry.
static Status mpt_read_position(const JsonNode *config, const JsonNode *attention,
                                ModelDraft *draft) {
    bool alibi = true, rope = false, learned = true;
    TRY(key_read_bool(attention, "alibi", &alibi));
    TRY(key_read_bool(attention, "rope", &rope));
    TRY(key_read_bool(config, "learned_pos_emb", &learned));
    draft->model.position = alibi     ? POSITION_ALIBI
                            : rope    ? POSITION_ROPE
                            : learned ? POSITION_LEARNED
                                      : POSITION_NONE;
    static const char *const KEYS[] = {"max_seq_len", NULL};
    if (draft->model.position != POSITION_LEARNED) return status_ok();
    return key_read_size(config, &(SizeKey){KEYS, 1, MODEL_MAX_POSITIONS, 2048, 2048},
                         &draft->model.max_position_embeddings);
}

static Status mpt_read_attention(const JsonNode *config, ModelDraft *draft) {
    JsonNode attention = json_get(config, "attn_config");
    if (json_is_present(&attention)) TRY(json_expect_object(&attention));
    TRY(refuse_if_true(&attention, "qk_ln", "a norm over all heads of query and key"));
    TRY(refuse_if_true(&attention, "qk_gn", "a group norm of query and key"));
    TRY(refuse_if_true(&attention, "prefix_lm", "attention that is not causal"));

    static const char *const TYPES[] = {"multihead_attention", "multiquery_attention",
                                        "grouped_query_attention", NULL};
    static const char *const KV_KEYS[] = {"kv_n_heads", NULL};
    static const char *const WINDOW_KEYS[] = {"sliding_window_size", NULL};
    JsonNode type = json_get(&attention, "attn_type");
    int kind = 0, window;
    if (json_is_present(&type)) TRY(json_read_name(&type, TYPES, &kind));
    if (kind == 1) draft->mixer.num_kv_heads = 1;
    if (kind == 2)
        TRY(key_read_size(&attention,
                          &(SizeKey){KV_KEYS, 1, MODEL_MAX_HEADS, KEY_REQUIRED, KEY_REQUIRED},
                          &draft->mixer.num_kv_heads));
    TRY(key_read_size(&attention, &(SizeKey){WINDOW_KEYS, -1, MODEL_MAX_POSITIONS, 0, 0}, &window));
    JsonNode window_node = json_get(&attention, WINDOW_KEYS[0]);
    if (window > 0) return json_error(&window_node, "a sliding window is not supported yet");
    return mpt_read_position(config, &attention, draft);
}

static Status mpt_read_mlp(const JsonNode *config, ModelDraft *draft) {
    JsonNode ratio_node = json_get(config, "expansion_ratio");
    double ratio = 4.0;
    if (json_is_present(&ratio_node)) TRY(json_read_double(&ratio_node, 0.01, 64.0, &ratio));
    draft->ffn.intermediate_size = (int)(ratio * draft->model.hidden_size);

    JsonNode mlp = json_get(config, "ffn_config");
    JsonNode type = json_get(&mlp, "ffn_type");
    static const char *const KEYS[] = {"ffn_hidden_size", NULL};
    if (json_is_present(&type)) {
        if (!cJSON_IsString(type.item) || strcmp(type.item->valuestring, "mptmlp") != 0)
            return json_error(&type, "an MLP other than \"mptmlp\" is not supported yet");
    }
    int size = draft->ffn.intermediate_size;
    return key_read_size(&mlp, &(SizeKey){KEYS, 1, MODEL_MAX_INTERMEDIATE, size, size},
                         &draft->ffn.intermediate_size);
}

// MPT, configuration_mpt.py; the values that transformers ignores as llm-foundry reads them.
static Status mpt_adjust(const JsonNode *config, ModelDraft *draft) {
    bool no_bias = true;
    TRY(key_read_bool(config, "no_bias", &no_bias));
    draft->mixer.qkv_bias = draft->mixer.out_bias = draft->ffn.bias = !no_bias;
    draft->model.norm_bias = !no_bias;
    static const char *const NORMS[] = {"low_precision_layernorm", "layernorm",
                                        "low_precision_rmsnorm", "rmsnorm", NULL};
    JsonNode norm = json_get(config, "norm_type");
    int kind = 0;
    if (json_is_present(&norm)) TRY(json_read_name(&norm, NORMS, &kind));
    if (kind >= 2) {
        draft->model.norm = NORM_RMSNORM;
        draft->model.norm_bias = false;
    }
    TRY(mpt_read_mlp(config, draft));
    return mpt_read_attention(config, draft);
}

const ModelFamily MPT_FAMILIES[] = {
    {
        .model_type = "mpt",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_ALIBI},
        .intermediate_ratio = 4,
        .adjust = mpt_adjust,
    },
    {0},
};
