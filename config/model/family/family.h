// config/model/family/family.h - traits that several families share. A file of this folder holds
// the families of one lineage, as rows that an empty one ends, and is named in
// config/model/families.def.
#pragma once

#include "config/model/model_family.h"

// Traits of the Llama kind: RMSNorm, SwiGLU, rotary positions, no biases.
#define LLAMA_KIND(norms)                                                                          \
    .model.position = POSITION_ROPE, .model.norm = NORM_RMSNORM, .model.norms_per_layer = (norms), \
    .model.final_norm = true, .ffn.gated = true

// Traits of the GPT-2 kind: LayerNorm with biases, two matrices in the MLP.
#define GPT2_KIND(biases, tied)                                                                    \
    .model.norm = NORM_LAYERNORM, .model.norm_bias = true, .model.norms_per_layer = 2,             \
    .model.final_norm = true, .mixer.qkv_bias = (biases), .mixer.out_bias = (biases),              \
    .ffn.bias = (biases), .model.tie_word_embeddings = (tied)
