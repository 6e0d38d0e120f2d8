// runtime/chunk_state.h - the flat buffers of one chunk's parameters on the device.
//
// Weights that products read are in the format of activations; masters, gradients and moments are
// wide. Where both are one format the weights are the masters. With ZeRO-1 a rank has masters and
// moments of its shard only, with ZeRO-2 gradients too, with ZeRO-3 weights (Rajbhandari et al.
// 2020, arXiv:1910.02054, section 5). Then each block has buffers of its own, of which the whole is
// there while a micro-batch is in the block (runtime/sharding.h).
#pragma once

#include "backend/backend.h"
#include "config/job/training.h"
#include "runtime/parameter.h"
#include "runtime/tensor.h"

typedef struct {
    FlatLayout layout;
    int zero_stage;                   // 0 where one rank has all shards
    int64_t shard_begin, shard_count; // elements that this rank updates; those from layout.count
                                      // on are padding
    void *weights;                    // act [capacity]; of ZeRO-3 [shard_count]
    void *gradients;                  // wide [capacity]; from ZeRO-2 on [shard_count]
    void *masters;                    // wide [shard_count]
    void *moment, *variance;          // wide [shard_count]; of SGD no variance
    Tensor *whole_weights, *whole_gradients; // [capacity] while they are needed; else NULL
    // In the input part of a split backward, where whole gradients are still to come: those of
    // REGION_WHOLE_VECTORS, which it makes (of norms). Else NULL.
    Tensor *vector_gradients;
} FlatState;

typedef struct {
    ChunkParameters list;
    FlatState *blocks; // [list.num_blocks]
    bool masters_are_weights;
} ChunkState;

// Allocates all and sets the first values; gradients and moments are 0. After a failure *out has
// what was allocated.
typedef struct {
    Optimizer optimizer;
    int zero_stage;
    int shard, num_shards;               // of this rank's zero group; 0 and 1 without ZeRO
    int expert_shard, num_expert_shards; // and of experts
    uint64_t seed;
} ChunkStart;

Status chunk_state_create(Backend *backend, const ChunkParameters *list, const ChunkStart *start,
                          Arena *arena, ChunkState *out);

void chunk_state_free(Backend *backend, ChunkState *chunk); // accepts a zeroed one

// The place of a parameter in the weights, and of its gradient: in the whole, where that is there.
// NULL of a gradient that is made in another part of the backward.
void *chunk_weight(const Backend *backend, const ChunkState *chunk, const Parameter *parameter);
void *chunk_gradient(const Backend *backend, const ChunkState *chunk, const Parameter *parameter);

// Elements [*begin, *end) of a block, cut to this rank's shard.
bool shard_cut(const FlatState *block, int64_t *begin, int64_t *end);

// The gradient of an element that this rank has, by its place in the block.
void *gradient_at(const Backend *backend, const FlatState *block, int64_t element);

// An element of a wide buffer, or of one of activations.
void *wide_at(const Backend *backend, void *array, int64_t element);
void *act_at(const Backend *backend, void *array, int64_t element);
