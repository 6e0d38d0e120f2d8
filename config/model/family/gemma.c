// Google's Gemma.
#include "config/model/family/family.h"

// Sizes are in text_config, and released files leave many of them out.
#define GEMMA3_TEXT                                                                                \
    .traits = {LLAMA_KIND(4),                                                                      \
               .mixer.qk_norm = true,                                                              \
               .model.tie_word_embeddings = true,                                                  \
               .model.hidden_size = 2304,                                                          \
               .ffn.intermediate_size = 9216,                                                      \
               .model.num_layers = 26,                                                             \
               .mixer.num_heads = 8,                                                               \
               .mixer.num_kv_heads = 4,                                                            \
               .mixer.head_dim = 256,                                                              \
               .model.vocab_size = 262208},                                                        \
    .qkv_bias_key = "attention_bias", .out_bias_key = "attention_bias",                            \
    .window_rule = WINDOW_PATTERN, .window_pattern = 6, .window = 4096

const ModelFamily GEMMA_FAMILIES[] = {
    {
        .model_type = "gemma2",
        .traits = {LLAMA_KIND(4), .model.tie_word_embeddings = true, .mixer.num_kv_heads = 4,
                   .mixer.head_dim = 256},
        .qkv_bias_key = "attention_bias",
        .out_bias_key = "attention_bias",
        .window_rule = WINDOW_EVEN,
        .window = 4096,
    },
    {.model_type = "gemma3", GEMMA3_TEXT, .vision = VISION_SIGLIP},
    {.model_type = "gemma3_text", GEMMA3_TEXT},
    {0},
};
