// ByteDance's Seed-OSS (SeedOssConfig: a bias of its own behind the attention).
#include "config/model/family/family.h"

const ModelFamily SEED_FAMILIES[] = {
    {
        .model_type = "seed_oss",
        .traits = {LLAMA_KIND(2), .mixer.num_kv_heads = 8, .mixer.head_dim = 128,
                   .mixer.qkv_bias = true},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_out_bias",
        .mlp_bias_key = "mlp_bias",
    },
    {0},
};
