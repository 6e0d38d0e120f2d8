// config/model/model_read.h - the parts of reading a model that all families and `generic` share.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/model/model_draft.h"
#include "config/model/model_family.h"

// The spellings of one size, see model_keys.h.
extern const char *const HIDDEN_KEYS[];
extern const char *const LAYERS_KEYS[];
extern const char *const HEADS_KEYS[];
extern const char *const KV_HEADS_KEYS[];
extern const char *const HEAD_DIM_KEYS[];
extern const char *const VOCAB_KEYS[];
extern const char *const INTERMEDIATE_KEYS[];
extern const char *const POSITIONS_KEYS[];
extern const char *const EXPERTS_KEYS[];
extern const char *const EXPERTS_PER_TOKEN_KEYS[];
extern const char *const WINDOW_KEYS[];

// Hidden size, layers, heads and vocabulary. What *draft holds is the default; 0 is "required".
Status model_read_sizes(const JsonNode *config, ModelDraft *draft);

// Key and value heads and head size; for MLA the ranks. What *draft holds is the default; 0
// derives it. With MLA, head_dim becomes the size of a query head.
Status model_read_attention(const JsonNode *config, ModelDraft *draft);

// Experts per token, their size and the shared experts of a model with num_experts > 0.
//   moe_size      default of moe_intermediate_size
//   num_shared    default of n_shared_experts
Status model_read_experts(const JsonNode *config, int moe_size, int num_shared, ModelDraft *draft);

// Groups of experts to which a token's choice is limited (DeepSeek's n_group, topk_group).
Status model_read_expert_groups(const JsonNode *config, ModelDraft *draft);

// What layer_types says of each layer, as draft->layers; left where the file has none. Needs
// draft->arena, the layers' number, and what the other mixer and the chunks are.
Status model_read_layer_types(const JsonNode *config, ModelDraft *draft);

// Which layers are MoE and which look at a window: fills the model's kinds, num_kinds and
// layer_kind.
typedef struct {
    int first_k_dense; // of first_k_dense_replace
    WindowRule rule;   // as in ModelFamily
    int window;        // what the file says; 0 is none
    int pattern;       // of sliding_window_pattern
} LayerDefaults;

Status model_read_layers(const JsonNode *config, const LayerDefaults *defaults, Arena *arena,
                         ModelDraft *draft);

// Multi-token-prediction layers, 0 where the file says nothing.
Status model_read_mtp(const JsonNode *config, ModelDraft *draft);

// Refuses keys that change the architecture in a way nothing here models; names all of them.
//   but  one that is read; NULL: none
Status model_refuse_unsupported(const JsonNode *config, const char *but, Arena *arena);

// Relations between the sizes: what must divide what, what may not exceed what.
Status model_check(const JsonNode *config, const Model *model);
