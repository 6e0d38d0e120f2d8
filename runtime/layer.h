// runtime/layer.h - one transformer layer of a micro-batch on one rank, forward and backward.
//
// The residual stream is handed on in two parts, what was added up and the branch that is still to
// be added: the next norm adds them as it reads them. What a layer keeps is what its Block in
// workload/pass/block.h says is saved.
#pragma once

#include "runtime/experts.h"

// What a forward leaves for the backward.
typedef enum {
    KEEP_ALL,
    KEEP_ATTENTION_OUTPUT, // not what else the attention made: it runs again
    KEEP_INPUT,            // the layer's input alone: all of it runs again
} Keep;

typedef struct {
    Keep keep;
    Tensor *x;             // the layer's input
    Tensor *statistics[2]; // wide [2][tokens_sp] of the norms: mean, 1 / deviation
    Tensor *norm[2];       // their results: [tokens_sp][hidden]
    Tensor *qkv;           // [tokens][qkv], rotated
    Tensor *heads[2];      // queries and keys before their norms, [tokens][heads][head_dim], and
    Tensor *heads_statistics[2]; // wide [tokens][heads]; NULL where the model has none
    Tensor *o, *lse;             // [tokens][attended], wide [sequences][heads][seq_len]
    // Where Ulysses exchanged them, and nothing runs again any more, qkv is of some heads of all cp
    // ranks' tokens, and so is heads_o, the output before it was exchanged back; else NULL.
    Tensor *heads_o;
    Tensor *middle;     // input and attention added up
    Tensor *up, *inner; // [tokens][up], [tokens][inner]; of a layer with experts the shared ones'
    ExpertStash experts;
} LayerStash;

// The stream between two layers: its value is sum + branch; branch NULL: sum.
typedef struct {
    Tensor *sum, *branch; // [tokens_sp][hidden]
} Residual;

// Norms the stream, which becomes one sum, held by it and by *kept.
typedef struct {
    const void *weight, *bias; // act [hidden]
    void *dweight, *dbias;     // wide
} NormWeights;

Tensor *residual_norm(Rank *rank, const NormWeights *weights, Residual *stream, Tensor **kept,
                      Tensor **statistics);

// Gradient of the stream before a norm: of dy through it, and of what went past it (NULL: none).
Tensor *residual_norm_backward(Rank *rank, const NormWeights *weights, const Tensor *x,
                               const Tensor *statistics, const Tensor *dy, const Tensor *past);

NormWeights norm_weights(const Rank *rank, const ChunkState *chunk, const Parameter *weight,
                         const Parameter *bias);

// Layer `index` of a chunk, from 0.
void layer_forward(Rank *rank, const ChunkState *chunk, int index, Residual *stream,
                   LayerStash *stash);

// Takes the gradient of the layer's result, leaves that of its input; the stash is empty then.
void layer_backward(Rank *rank, const ChunkState *chunk, int index, LayerStash *stash,
                    Tensor **gradient, WeightQueue *queue);
