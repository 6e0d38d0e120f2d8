// config/model/model_limits.h - the largest sizes a model may have. Far beyond anything built; they
// only keep a slip of the pen (a size in bytes, a missing comma) from being priced.
#pragma once

enum {
    MODEL_MAX_WIDTH = 1 << 20, // hidden_size and ranks
    MODEL_MAX_HEADS = 1 << 14,
    MODEL_MAX_HEAD_DIM = 1 << 14,
    MODEL_MAX_INTERMEDIATE = 1 << 24,
    MODEL_MAX_VOCAB = 1 << 26,
    MODEL_MAX_POSITIONS = 1 << 30,
    MODEL_MAX_EXPERTS = 1 << 16,
    MODEL_MAX_MTP_LAYERS = 64,
};

// More parameters than a double counts exactly in every product that follows.
#define MODEL_MAX_PARAMETERS 1e15
