// config/model/model_front.h - layers that stand before those of the text and whose sizes and
// tokens are others: the encoder of an encoder-decoder (T5), or the tower that makes tokens of
// images.
//
// Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
//         Text-to-Text Transformer", arXiv:1910.10683, section 2.1; Gemma 3, arXiv:2503.19786,
//         section 2.1; Qwen2-VL, arXiv:2409.12191, section 2.1; Qwen2.5-VL, arXiv:2502.13923,
//         section 2.1; Qwen3-VL, arXiv:2511.21631, section 2; Kimi-VL, arXiv:2504.07491, section
//         2.1; modeling_*.py of Hugging Face transformers (4.57) and of the releases of Kimi.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/model/model.h"

typedef enum { FRONT_ENCODER, FRONT_VISION } FrontKind;

typedef struct ModelFront {
    FrontKind kind;
    const Model *model; // the sizes of its layers, all of which see all tokens; no vocabulary

    // FRONT_VISION. An image is cut into patches, and each becomes a token of the tower.
    int image_size;          // pixels a side; 0: any, the training says
    int patch_size;          // pixels a side
    int temporal_patch_size; // frames of one patch; an image is shown so often
    int num_channels;
    bool patch_bias;
    int num_positions; // rows of a table of learned positions; 0: none
    // What follows its layers makes fewer tokens of them, of the text's width.
    int tokens_per_image;  // that an image becomes in any case; 0: merge_size^2 patches become one
    int merge_size;        // patches a side whose numbers are laid side by side; 1: none
    bool merge_norm_bias;  // of the norm before
    int merge_hidden_size; // of two matrices with biases; 0: one without
    int num_deep_mergers;  // more of these, whose tokens are added to the text's first layers
                           // (DeepStack, arXiv:2406.04334); their norms are over all that is merged
} ModelFront;

// Families whose files describe a tower.
typedef enum {
    VISION_NONE,
    VISION_SIGLIP,
    VISION_QWEN2,
    VISION_QWEN2_5,
    VISION_QWEN3,
    VISION_MOONVIT, // of Kimi-VL and Kimi-K2.5
} VisionKind;

// Reads vision_config, where the file has one, as model->front; it is no part of the model yet.
Status model_read_vision(const JsonNode *config, VisionKind kind, Arena *arena, Model *model);

// Reads a file of the T5 family, whose model_type is t5 or mt5.
Status model_import_t5(const JsonNode *config, const char *model_type, Arena *arena, Model *model);

// Makes the front a part of the model: its layers become the first ones.
void model_add_front(Arena *arena, Model *model);

// What layers are counted of, for a message: "the tower's 32 + num_hidden_layers 36". Returns text.
enum { FRONT_LAYERS_TEXT = 80 };
const char *front_layers_text(const Model *model, char text[FRONT_LAYERS_TEXT]);

// Of one image with so many pixels a side: tokens of the tower, and of the text.
int64_t front_image_patches(const ModelFront *front, int image_size);
int64_t front_image_tokens(const ModelFront *front, int image_size);
