// MiniMax-M2 (configuration_minimax_m2.py and modeling_minimax_m2.py beside the released weights).
#include "config/model/family/family.h"

#include "config/model/model_keys.h"

#include <string.h>

// qk_norm_type "per_layer" is one norm over all heads of a layer. Rotated are rotary_dim numbers of
// a head. Each of num_mtp_modules predicts one token further.
static Status minimax_m2_adjust(const JsonNode *config, ModelDraft *draft) {
    static const char *const ROTARY[] = {"rotary_dim", NULL};
    static const char *const MODULES[] = {"num_mtp_modules", NULL};
    static const char *const TYPES[] = {"per_layer", "per_head", NULL};
    Mixer *mixer = &draft->mixer;
    int type = 0, rotary, modules;
    const JsonNode node = json_get(config, "qk_norm_type");
    if (json_is_present(&node)) TRY(json_read_name(&node, TYPES, &type));
    TRY(key_read_bool(config, "use_qk_norm", &mixer->qk_norm));
    mixer->qk_norm_whole = mixer->qk_norm && type == 0;
    TRY(key_read_bool(config, "use_routing_bias", &draft->ffn.router_bias));
    TRY(key_read_size(
        config, &(SizeKey){ROTARY, 1, mixer->head_dim, mixer->head_dim, mixer->head_dim}, &rotary));
    draft->model.functions.rotary_frac = (double)rotary / mixer->head_dim;
    bool predicts = false;
    TRY(key_read_bool(config, "use_mtp", &predicts));
    TRY(key_read_size(config, &(SizeKey){MODULES, 0, 64, 0, 0}, &modules));
    draft->model.num_mtp_layers = predicts ? modules : 0;
    return status_ok();
}

const ModelFamily MINIMAX_FAMILIES[] = {
    {
        .model_type = "minimax_m2",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 8, .mixer.head_dim = 128,
                   .mixer.qk_norm = true, .mixer.qk_norm_whole = true, .ffn.num_experts = 256,
                   .ffn.num_experts_per_tok = 8, .ffn.norm_topk_prob = true,
                   .ffn.router_bias = true},
        .moe_size_is_dense = true,
        .adjust = minimax_m2_adjust,
    },
    {0},
};
