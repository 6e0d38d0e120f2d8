// config/model/model_functions.h - what of a model changes its numbers but no cost: for runtime/.
//
// Source: Hugging Face transformers, the configurations' own names; rotary frequencies:
//         modeling_rope_utils.py (_compute_linear_scaling_rope_parameters,
//         _compute_llama3_parameters).
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

typedef enum {
    ROPE_PLAIN,
    ROPE_LINEAR, // all frequencies divided by factor
    ROPE_LLAMA3, // long wavelengths divided by factor, short ones not, between them a mixture
    ROPE_OTHER   // one that nothing here computes
} RopeKind;

typedef enum {
    FUNCTION_UNSTATED, // of gated MLPs SiLU, of others GELU
    FUNCTION_SILU,
    FUNCTION_GELU, // in any of its forms
    FUNCTION_RELU,
    FUNCTION_OTHER
} FunctionKind;

typedef struct {
    FunctionKind activation;
    const char *activation_name; // "silu", "gelu_new", ...; NULL: not stated
    double swiglu_limit;         // of gpt-oss's clamped quick GELU; 0: the MLP has none
    double norm_epsilon;         // of all norms
    double rope_theta;           // base of the rotary frequencies
    double rotary_frac;          // of a head that is rotated, 0 to 1
    RopeKind rope;
    const char *rope_name;     // as the file has it; NULL where plain
    double rope_factor;        // of ROPE_LINEAR and ROPE_LLAMA3, >= 1
    double low_freq_factor;    // wavelengths above original_positions / this are divided,
    double high_freq_factor;   // those below original_positions / this are not
    double original_positions; // tokens
    double max_positions;      // max_position_embeddings; 0 where the file does not say
    double stated_factor;      // of the scaling, whatever its kind; 1 where there is none
    double scaled_from;        // original_max_position_embeddings; 0 where the file does not say
} ModelFunctions;

// What the file says; where it says nothing: 1e-5, 10000, the whole head, plain.
Status model_read_functions(const JsonNode *config, Arena *arena, ModelFunctions *out);

// The same of a family whose positions nothing here computes, whatever they are.
Status model_read_stated(const JsonNode *config, Arena *arena, ModelFunctions *out);
