// StepFun's Step 3.5 and 3.7 Flash (configuration_step3p5.py and modeling_step3p5.py beside the
// released weights): layers with a window may have more heads (attention_other_setting), each
// head's results may have a gate, and moe_layers_enum lists the layers with experts.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"
#include "config/model/model_read.h"

#include <stdlib.h>

// Layers that look at a window, where they have heads of their own.
static Status read_other_heads(const JsonNode *config, ModelDraft *draft) {
    static const char *const HEADS[] = {"num_attention_heads", NULL};
    static const char *const GROUPS[] = {"num_attention_groups", NULL};
    static const char *const DIM[] = {"head_dim", NULL};
    const JsonNode other = json_get(config, "attention_other_setting");
    if (!json_is_present(&other)) return status_ok();
    TRY(json_expect_object(&other));
    Mixer *m = &draft->other;
    *m = draft->mixer;
    TRY(key_read_size_or(&other, HEADS, MODEL_MAX_HEADS, m->num_heads, &m->num_heads));
    TRY(key_read_size_or(&other, GROUPS, MODEL_MAX_HEADS, m->num_kv_heads, &m->num_kv_heads));
    return key_read_size_or(&other, DIM, MODEL_MAX_HEAD_DIM, m->head_dim, &m->head_dim);
}

// "3,4,5": the layers with experts.
static Status read_expert_layers(const JsonNode *config, uint8_t *layers, int num_layers) {
    const JsonNode node = json_get(config, "moe_layers_enum");
    if (!json_is_present(&node)) return status_ok();
    const char *at = cJSON_GetStringValue(node.item);
    if (!at) return json_error(&node, "expected a text of numbers of layers");
    for (int i = 0; i < num_layers; i++) layers[i] |= LAYER_DENSE;
    while (*at) {
        char *end;
        const long layer = strtol(at, &end, 10);
        if (end == at || layer < 0)
            return json_error(&node, "\"%.20s\" is no number of a layer", at);
        if (layer < num_layers)
            layers[layer] =
                (uint8_t)((layers[layer] & ~LAYER_DENSE) | LAYER_EXPERTS); // further ones: MTP
        at = *end ? end + 1 : end;
    }
    return status_ok();
}

static Status step_adjust(const JsonNode *config, ModelDraft *draft) {
    bool gated = false;
    TRY(key_read_bool(config, "use_moe_router_bias", &draft->ffn.router_bias));
    TRY(key_read_bool(config, "use_head_wise_attn_gate", &gated));
    draft->mixer.output_gate = gated ? GATE_HEADS : GATE_NONE;
    TRY(read_other_heads(config, draft));
    TRY(model_read_layer_types(config, draft));
    const int num_layers = draft->model.num_layers;
    uint8_t *layers = ARENA_ARRAY(draft->arena, num_layers, uint8_t);
    for (int i = 0; i < num_layers; i++) {
        const int has = draft->layers ? draft->layers[i] : 0;
        layers[i] =
            (uint8_t)(draft->other.num_heads > 0 && has & LAYER_SLIDING ? has | LAYER_OTHER : has);
    }
    draft->layers = layers;
    return read_expert_layers(config, layers, num_layers);
}

#define STEP                                                                                       \
    .traits = {LLAMA_KIND(2),                                                                      \
               .mixer.num_kv_heads = 8,                                                            \
               .mixer.head_dim = 128,                                                              \
               .mixer.qk_norm = true,                                                              \
               .ffn.num_experts = 288,                                                             \
               .ffn.num_experts_per_tok = 8,                                                       \
               .ffn.moe_intermediate_size = 1280,                                                  \
               .ffn.shared_intermediate_size = 1280,                                               \
               .ffn.norm_topk_prob = true},                                                        \
    .window_rule = WINDOW_NONE, .adjust = step_adjust

const ModelFamily STEP_FAMILIES[] = {
    {.model_type = "step3p5", STEP},
    {.model_type = "step3p7", STEP},
    {0},
};
