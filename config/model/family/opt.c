// Meta's OPT.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"

// OPT: post-norm models and some conversions have no norm before the head.
static Status opt_adjust(const JsonNode *config, ModelDraft *draft) {
    bool norm_before = true, final_norm_removed = false, norm_has_weights = true;
    TRY(key_read_bool(config, "do_layer_norm_before", &norm_before));
    TRY(key_read_bool(config, "_remove_final_layer_norm", &final_norm_removed));
    TRY(key_read_bool(config, "layer_norm_elementwise_affine", &norm_has_weights));
    draft->model.final_norm = norm_before && !final_norm_removed;
    JsonNode affine = json_get(config, "layer_norm_elementwise_affine");
    if (!norm_has_weights)
        return json_error(&affine, "a norm without weights is not supported yet");

    static const char *const KEYS[] = {"word_embed_proj_dim", NULL};
    int width;
    TRY(key_read_size(
        config,
        &(SizeKey){KEYS, 1, MODEL_MAX_WIDTH, draft->model.hidden_size, draft->model.hidden_size},
        &width));
    JsonNode node = json_get(config, KEYS[0]);
    if (width != draft->model.hidden_size)
        return json_error(&node,
                          "%d differs from hidden_size %d; a projected embedding is not "
                          "supported yet",
                          width, draft->model.hidden_size);
    return status_ok();
}

const ModelFamily OPT_FAMILIES[] = {
    {
        .model_type = "opt",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_LEARNED,
                   .model.max_position_embeddings = 2048},
        .position_extra_rows = 2,
        .qkv_bias_key = "enable_bias",
        .out_bias_key = "enable_bias",
        .mlp_bias_key = "enable_bias",
        .adjust = opt_adjust,
    },
    {0},
};
