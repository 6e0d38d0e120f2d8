// config/model/model.h - the architecture of one transformer, read from a preset or a Hugging Face
// config.json (CONTRACT.md, section "model"), checked, with every default filled in.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/model/model_functions.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { NORM_RMSNORM, NORM_LAYERNORM } NormKind;
typedef enum { POSITION_ROPE, POSITION_LEARNED, POSITION_ALIBI, POSITION_NONE } PositionKind;

// What mixes the tokens of a sequence in a layer: config/model/mixers.def lists the kinds,
// config/model/mixer.h says what each is.
typedef enum {
#define X(kind, name) MIXER_##kind,
#include "config/model/mixers.def"
#undef X
    NUM_MIXERS
} MixerKind;

// What multiplies the results of the attention, before they are projected.
typedef enum { GATE_NONE, GATE_RESULTS, GATE_HEADS } OutputGate;

typedef struct {
    MixerKind kind;
    int num_heads;    // of queries; of values where there is a state
    int num_kv_heads; // equals num_heads for MHA and MLA; groups of keys where there is a state
    int head_dim;     // of a query head, and of a key
    // Of latent attention (mixer_is_latent), else 0
    int q_lora_rank; // 0: the query is projected directly
    int kv_lora_rank;
    int qk_nope_head_dim;
    int qk_rope_head_dim;
    int v_head_dim; // also of a head of values where there is a state
    // Of MIXER_SPARSE_LATENT_ATTENTION, else 0: an indexer's heads, and the keys that a query sees
    int index_num_heads;
    int index_head_dim; // of its queries, and of its one key
    int index_topk;
    bool qkv_bias, out_bias;
    bool qk_norm;       // a norm over each head of query and key (Qwen3, Gemma 3)
    bool qk_norm_whole; // it is over all heads at once (MiniMax-M2)
    bool qk_norm_plain; // it has no weights (Llama 4)
    bool sinks;         // one learned logit per head (GPT-OSS)
    OutputGate output_gate;
    bool no_positions; // of a layer among others that rotate queries and keys
    int window;        // sliding attention window in tokens; 0 is full attention
    int chunk;         // a query sees those of its own chunk of so many tokens; 0: no chunks
    // Where there is a state, else 0
    int conv_kernel; // tokens that the convolution before it reads
    int scan_chunk;  // tokens whose states are computed together in training
    bool conv_bias;
} Mixer;

// What follows the mixer in a layer: a dense MLP, or a mixture of experts.
typedef struct {
    int intermediate_size; // of a dense MLP; with experts, what the file says of such layers, even
                           // where there are none: launchers are asked for it. 0: it says nothing
    bool gated;            // three matrices (SwiGLU, GeGLU) instead of two, of each expert too
    bool bias;             // of a dense MLP and of shared experts

    // Mixture of experts; 0 experts: a dense MLP
    int num_experts;
    int num_experts_per_tok;
    bool norm_topk_prob;       // the weights of a token's experts are divided by their sum
    int num_expert_groups;     // of equal size; a token's experts are chosen among those
    int expert_groups_per_tok; // of so many groups; 0 and 0 without such a limit
    int moe_intermediate_size;
    int shared_intermediate_size; // of all shared experts together; 0 where there are none
    bool shared_expert_gate;      // a linear gate of one output (Qwen2-MoE)
    bool router_bias;             // one number an expert
    bool expert_bias;             // biases in the experts' matrices (GPT-OSS)

    bool none; // the layer ends with its mixer
} FeedForward;

// Layers of one kind are identical in shape; a model has few kinds.
typedef struct {
    Mixer mixer;
    FeedForward ffn;
    bool front; // one of Model.front, with the sizes and tokens of that
    bool cross; // it attends to what the encoder made, too
} LayerKind;

enum { MODEL_MAX_LAYERS = 16384, MODEL_MAX_LAYER_KINDS = 6 };

typedef struct {
    const char *name;       // preset name, the file's "name", or the file name
    const char *model_type; // as written
    const char *source;     // where the preset's figures are from; NULL for a user's file

    int num_layers; // those of the front included, where it is part of the model: the first
    int hidden_size;
    int vocab_size;
    int max_position_embeddings; // rows of a learned position table; 0 where there is none. Of a
                                 // scenario at least seq_len
    int stated_positions; // rows that the model's own file gives it, where they are fewer; else 0
    PositionKind position;
    bool tie_word_embeddings;
    bool embedding_norm; // a norm right after the embedding (BLOOM)

    NormKind norm;
    bool norm_bias;         // LayerNorm with a bias vector
    int norms_per_layer;    // 2; 4 for Gemma 2 and 3; 1 for Falcon-7B's shared norm
    bool final_norm;        // a norm before the head
    bool parallel_residual; // attention and MLP read the same input (GPT-NeoX, Falcon)
    bool lm_head_bias;

    LayerKind kinds[MODEL_MAX_LAYER_KINDS];
    int num_kinds;
    const uint8_t *layer_kind; // [num_layers] index into kinds
    int num_mtp_layers;        // multi-token-prediction layers (DeepSeek-V3, section 2.2)
    const LayerKind *mtp_kind; // of their layers; NULL: like the last one

    // What stands before the layers of the text (config/model/model_front.h); NULL where there is
    // none. A tower for images is part of the model once the training has images.
    const struct ModelFront *front;
    int num_front_layers;     // of num_layers, the first; 0 where the front is no part
    int num_relative_buckets; // of learned distances, one number a head each (T5); 0: none

    ModelFunctions functions;
} Model;

// Reads a scenario's model: a preset's name, a path (relative to the file of value), or an object.
Status model_load(const JsonNode *value, Arena *arena, Model *out);

// Reads a preset by name; the error lists the nearest names.
Status model_load_preset(const char *name, Arena *arena, Model *out);

// The mixer and the feed-forward of the layers that are not the front's, for software that gives
// all layers the same. They are those of the first such layer with experts, where any has them,
// else of the first; the mixer is attention where any layer has attention. What may differ between
// layers (window, dense layers among others) is read by layer.
const Mixer *model_mixer(const Model *model);
const FeedForward *model_ffn(const Model *model);

// The kind of the layer inside a layer of multi-token prediction.
static inline const LayerKind *model_mtp_kind(const Model *model) {
    return model->mtp_kind ? model->mtp_kind
                           : &model->kinds[model->layer_kind[model->num_layers - 1]];
}

static inline bool mixer_is_latent(const Mixer *mixer) {
    return mixer->kind == MIXER_LATENT_ATTENTION || mixer->kind == MIXER_SPARSE_LATENT_ATTENTION;
}
static inline bool mixer_is_attention(const Mixer *mixer) {
    return mixer->kind == MIXER_ATTENTION || mixer_is_latent(mixer);
}
// Most keys that a query sees; 0: all.
static inline int mixer_most_keys(const Mixer *mixer) {
    return mixer->window > 0 ? mixer->window : mixer->index_topk;
}
// Whether a layer of the kind has experts, and whether any layer of the model has.
static inline bool kind_is_moe(const LayerKind *kind) {
    return kind->ffn.num_experts > 0;
}
static inline bool model_is_moe(const Model *model) {
    return model_ffn(model)->num_experts > 0;
}

// Parameter counts (exact integers held in double). Embedding and head count once where tied.
double model_mixer_parameters(const Model *model, const Mixer *mixer);      // no norms
double model_mlp_parameters(const Model *model, const FeedForward *ffn);    // one dense MLP
double model_expert_parameters(const Model *model, const FeedForward *ffn); // one routed expert
double model_router_parameters(const Model *model, const FeedForward *ffn); // and shared gate
double model_shared_expert_parameters(const Model *model, const FeedForward *ffn); // all of them
double model_norm_parameters(const Model *model); // one norm of the hidden size
double model_heads_norm_parameters(const Model *model, const Mixer *mixer);   // queries and keys
double model_layer_norm_parameters(const Model *model, const Mixer *mixer);   // all of one layer
double model_kind_norm_parameters(const Model *model, const LayerKind *kind); // the same, of a kind
double model_layer_parameters(const Model *model, const LayerKind *kind);     // one whole layer
double model_embedding_parameters(const Model *model); // word and position tables, embedding norm
double model_head_parameters(const Model *model);      // head and final norm; 0 head where tied
double model_cross_parameters(const Model *model, const Mixer *mixer); // cross attention, and norm
double model_front_parameters(const Model *model);  // of the front, all but its layers
double model_mtp_parameters(const Model *model);    // all MTP layers
double model_num_parameters(const Model *model);    // without MTP layers
double model_active_parameters(const Model *model); // that one token multiplies: without the word
                                                    // table and MTP layers

// Layers that are not the front's.
static inline int model_own_layers(const Model *model) {
    return model->num_layers - model->num_front_layers;
}

// A line of `meshwright models`.
typedef struct {
    const char *name;
    const char *model_type;
    double num_parameters;
    double active_parameters;
    double published_parameters; // 0 where the preset states none
    const char *source;
} ModelSummary;

// All bundled presets, sorted by name.
Status model_list(Arena *arena, ModelSummary **out, int *num_models);
