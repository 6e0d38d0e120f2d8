// TII's Falcon.
#include "config/model/family/family.h"

#include "config/model/model_keys.h"
#include "config/model/model_limits.h"

// Falcon, modeling_falcon.py: FalconAttention (key and value heads), FalconDecoderLayer (norms).
static Status falcon_adjust(const JsonNode *config, ModelDraft *draft) {
    bool new_architecture = false, multi_query = true, alibi = false;
    draft->model.parallel_residual = true;
    TRY(key_read_bool(config, "new_decoder_architecture", &new_architecture));
    TRY(key_read_bool(config, "multi_query", &multi_query));
    TRY(key_read_bool(config, "parallel_attn", &draft->model.parallel_residual));
    TRY(key_read_bool(config, "alibi", &alibi));
    draft->model.position = alibi ? POSITION_ALIBI : POSITION_ROPE;
    if (multi_query && !new_architecture) draft->mixer.num_kv_heads = 1;

    static const char *const KEYS[] = {"num_ln_in_parallel_attn", NULL};
    int norms = new_architecture ? 2 : 1;
    TRY(key_read_size(config, &(SizeKey){KEYS, 1, 2, norms, norms}, &norms));
    draft->model.norms_per_layer = draft->model.parallel_residual ? norms : 2;
    return status_ok();
}

#define FALCON                                                                                     \
    .traits = {GPT2_KIND(false, true), .model.position = POSITION_ROPE}, .intermediate_ratio = 4,  \
    .qkv_bias_key = "bias", .out_bias_key = "bias", .mlp_bias_key = "bias",                        \
    .adjust = falcon_adjust

const ModelFamily FALCON_FAMILIES[] = {
    {.model_type = "falcon", FALCON},
    {.model_type = "RefinedWebModel", FALCON}, // Falcon 7B as first released
    {0},
};
