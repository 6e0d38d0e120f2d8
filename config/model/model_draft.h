// config/model/model_draft.h - a model while its file is read: what all of its layers share, before
// they are told apart.
#pragma once

#include "config/model/model.h"

// What a layer has that the others may not have; 0: mixer and feed-forward as the draft and the
// rules of the family say.
enum {
    LAYER_SLIDING = 1,      // its attention looks at the window
    LAYER_CHUNKED = 2,      // or at chunks
    LAYER_NO_POSITIONS = 4, // it does not rotate queries and keys
    LAYER_OTHER = 8,        // it has the draft's other mixer
    LAYER_NO_MIXER = 16,
    LAYER_NO_FFN = 32,
    LAYER_DENSE = 64,   // its feed-forward has no experts,
    LAYER_EXPERTS = 128 // or has them, whatever the rules are
};

// Mixer and feed-forward are those of all layers, but for what differs from layer to layer.
typedef struct ModelDraft {
    Model model;
    Mixer mixer; // its chunk is that of LAYER_CHUNKED alone
    Mixer other; // of LAYER_OTHER ("linear_attention" of layer_types); num_heads 0: there
                 // are none
    FeedForward ffn;
    const uint8_t *layers; // [num_layers] as the family reads them; NULL: by layer_types, or its
                           // rules
    Arena *arena;
} ModelDraft;

// The feed-forward of layers without experts in a model where others have them.
FeedForward model_dense_ffn(const FeedForward *ffn);
