// config/model/model_draft.h - a model while its file is read: what all of its layers share, before
// they are told apart.
#pragma once

#include "config/model/model.h"

// Mixer and feed-forward are those of all layers, but for what differs from layer to layer: the
// window, and whether there are experts.
typedef struct ModelDraft {
    Model model;
    Mixer mixer;
    FeedForward ffn;
} ModelDraft;

// The feed-forward of layers without experts in a model where others have them.
FeedForward model_dense_ffn(const FeedForward *ffn);
