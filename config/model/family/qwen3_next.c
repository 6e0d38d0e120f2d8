// Alibaba's Qwen3-Next, and Qwen3.5, whose text is alike: three layers of four are of the gated
// delta rule, every full_attention_interval-th is attention with an output gate
// (configuration_qwen3_next.py, configuration_qwen3_5.py, configuration_qwen3_5_moe.py of Hugging
// Face transformers). The tower of Qwen3.5 is that of Qwen3-VL without deep mergers.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

enum { CHUNK = 64 }; // of flash-linear-attention, fla/ops/gated_delta_rule/chunk.py

static Status read_delta(const JsonNode *config, Mixer *m) {
    static const char *const KERNEL[] = {"linear_conv_kernel_dim", NULL};
    static const char *const KEY_DIM[] = {"linear_key_head_dim", NULL};
    static const char *const VALUE_DIM[] = {"linear_value_head_dim", NULL};
    static const char *const KEYS[] = {"linear_num_key_heads", NULL};
    static const char *const VALUES[] = {"linear_num_value_heads", NULL};
    *m = (Mixer){.kind = MIXER_GATED_DELTA, .scan_chunk = CHUNK};
    TRY(key_read_size_or(config, KERNEL, 1024, 4, &m->conv_kernel));
    TRY(key_read_size_or(config, KEY_DIM, MODEL_MAX_HEAD_DIM, 128, &m->head_dim));
    TRY(key_read_size_or(config, VALUE_DIM, MODEL_MAX_HEAD_DIM, 128, &m->v_head_dim));
    TRY(key_read_size_or(config, KEYS, MODEL_MAX_HEADS, 16, &m->num_kv_heads));
    TRY(key_read_size_or(config, VALUES, MODEL_MAX_HEADS, 32, &m->num_heads));
    if (m->num_heads % m->num_kv_heads == 0) return status_ok();
    const JsonNode node = json_get(config, VALUES[0]);
    return json_error(&node, "%d is not a multiple of linear_num_key_heads %d", m->num_heads,
                      m->num_kv_heads);
}

static Status delta_adjust(const JsonNode *config, ModelDraft *draft) {
    static const char *const INTERVAL[] = {"full_attention_interval", NULL};
    const int num_layers = draft->model.num_layers;
    int interval;
    TRY(read_delta(config, &draft->other));
    bool gated = true;
    TRY(key_read_bool(config, "attn_output_gate", &gated));
    draft->mixer.output_gate = gated ? GATE_RESULTS : GATE_NONE;
    TRY(key_read_size_or(config, INTERVAL, MODEL_MAX_LAYERS, 4, &interval));
    TRY(model_read_layer_types(config, draft));
    if (draft->layers) return status_ok();
    uint8_t *layers = ARENA_ARRAY(draft->arena, num_layers, uint8_t);
    for (int i = 0; i < num_layers; i++) layers[i] = (i + 1) % interval ? LAYER_OTHER : 0;
    draft->layers = layers;
    return status_ok();
}

#define DELTA(kv_heads)                                                                            \
    LLAMA_KIND(2), .mixer.num_kv_heads = (kv_heads), .mixer.head_dim = 256, .mixer.qk_norm = true
#define DELTA_SWITCHES                                                                             \
    .qkv_bias_key = "attention_bias", .out_bias_key = "attention_bias", .adjust = delta_adjust
#define DELTA_EXPERTS(experts, chosen)                                                             \
    .ffn.num_experts = (experts), .ffn.num_experts_per_tok = (chosen),                             \
    .ffn.moe_intermediate_size = 512, .ffn.shared_intermediate_size = 512,                         \
    .ffn.shared_expert_gate = true, .ffn.norm_topk_prob = true

#define QWEN3_5 .traits = {DELTA(4)}, DELTA_SWITCHES
#define QWEN3_5_MOE                                                                                \
    .traits = {DELTA(2), DELTA_EXPERTS(256, 8)}, DELTA_SWITCHES, .intermediate_unsaid = true

const ModelFamily QWEN3_NEXT_FAMILIES[] = {
    {.model_type = "qwen3_next",
     .traits = {DELTA(2), DELTA_EXPERTS(512, 10)},
     DELTA_SWITCHES,
     .intermediate_unsaid = true},
    {.model_type = "qwen3_5", QWEN3_5, .vision = VISION_QWEN3},
    {.model_type = "qwen3_5_text", QWEN3_5},
    {.model_type = "qwen3_5_moe", QWEN3_5_MOE, .vision = VISION_QWEN3},
    {.model_type = "qwen3_5_moe_text", QWEN3_5_MOE},
    {0},
};
