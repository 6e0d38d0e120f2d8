// Cohere's Command R7B and Command A (Cohere2Config, modeling_cohere2.py): attention and MLP read
// the same norm, which has no bias; every sliding_window_pattern-th layer sees all and has no
// positions.
#include "config/model/family/family.h"

const ModelFamily COHERE_FAMILIES[] = {
    {
        .model_type = "cohere2",
        .traits = {.model.position = POSITION_ROPE,
                   .model.norm = NORM_LAYERNORM,
                   .model.norms_per_layer = 1,
                   .model.final_norm = true,
                   .model.parallel_residual = true,
                   .model.tie_word_embeddings = true,
                   .ffn.gated = true},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_PATTERN,
        .window_pattern = 4,
        .window = 4096,
        .rope_name = "sliding layers alone",
    },
    {0},
};
