// Tencent's Hunyuan, dense (HunYuanDenseV1Config; modeling_hunyuan_v1_dense.py norms the heads of
// queries and keys behind the rotation).
#include "config/model/family/family.h"

const ModelFamily HUNYUAN_FAMILIES[] = {
    {
        .model_type = "hunyuan_v1_dense",
        .traits = {LLAMA_KIND(2), .mixer.qk_norm = true},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .mlp_bias_key = "mlp_bias",
    },
    {0},
};
