// config/model/model_family.h - one row per Hugging Face model_type: what all models of a family
// share, and what an absent key means there.
//
// Source: configuration_*.py and modeling_*.py of Hugging Face transformers (4.57), for `mpt` also
//         llm-foundry, for `deepseek_v2` and `deepseek_v3` the code beside the released weights.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/model/model_draft.h"
#include "config/model/model_front.h"

// Which layers look at a sliding window where the file has no layer_types.
typedef enum {
    WINDOW_NONE,
    WINDOW_ALL,         // every layer
    WINDOW_FROM_LAYER,  // layer >= max_window_layers (Qwen2, Qwen3)
    WINDOW_EVEN_BEFORE, // even layers < max_window_layers (Qwen2-MoE)
    WINDOW_EVEN,        // layers 0, 2, 4, ... (Gemma 2, GPT-OSS)
    WINDOW_PATTERN,     // all but each sliding_window_pattern-th (Gemma 3, Cohere 2)
} WindowRule;

typedef struct ModelFamily {
    const char *model_type;

    // What every model of the family has. Sizes in here are the defaults of absent keys; 0 stands
    // for "derived" (num_kv_heads = num_heads, head_dim = hidden_size / num_heads) or, for the
    // sizes that make up a model, "must be there". Not 0: num_experts only where it has experts.
    ModelDraft traits;

    int intermediate_ratio;   // intermediate_size over hidden_size where absent; 0: required
    bool intermediate_unsaid; // a file need not say it, as all layers have experts (Qwen3.5-MoE)
    bool intermediate_fixed;  // the file's intermediate size is not used (BLOOM)
    bool moe_size_is_dense;   // experts take intermediate_size (Mixtral, GPT-OSS)
    int num_shared_experts;   // default of n_shared_experts, each of moe_intermediate_size
    int first_k_dense;        // default of first_k_dense_replace
    int position_extra_rows;  // rows of a learned table beyond max_position_embeddings (OPT)
    const char *qkv_bias_key; // switches that override the traits; NULL where there is none
    const char *out_bias_key;
    const char *mlp_bias_key;

    WindowRule window_rule;
    bool window_needs_switch; // sliding_window counts only with use_sliding_window (Qwen)
    int window_pattern;       // of WINDOW_PATTERN: default of sliding_window_pattern
    int window;               // default of sliding_window; 0 is none

    VisionKind vision; // what its vision_config describes

    // A key that is refused in other families and that adjust reads; NULL where there is none.
    const char *reads_key;

    // Which layers have positions, where not all do: a rotation costs next to nothing, but software
    // that rotates in every layer computes another function (ROPE_OTHER). NULL: all.
    const char *rope_name;

    // Reads what the fields above cannot say; NULL where nothing is left.
    Status (*adjust)(const JsonNode *config, ModelDraft *draft);
} ModelFamily;

// The row of a model_type, or NULL. Rows do not include `generic` (config/model/model_import.h),
// `t5` and `mt5` (config/model/model_front.h).
const ModelFamily *model_family_find(const char *model_type);

// All model_types with a row, then the others; ends with NULL.
const char *const *model_family_names(Arena *arena);
