// runtime/chunk_state.h - the flat buffers of one chunk's parameters on the device.
//
// Weights that products read are in the format of activations; masters, gradients and moments are
// wide. Where both are one format the weights are the masters. With ZeRO-1 a rank has masters and
// moments of its shard only (Rajbhandari et al. 2020, arXiv:1910.02054, section 5.1).
#pragma once

#include "backend/backend.h"
#include "config/training.h"
#include "runtime/parameter.h"

typedef struct {
    ChunkParameters list;
    void *weights;                    // act [list.capacity]
    void *gradients;                  // wide [list.capacity]
    int64_t shard_begin, shard_count; // elements that this rank updates; those from list.count
                                      // on are padding
    void *masters;                    // wide [shard_count]
    void *moment, *variance;          // wide [shard_count]; of SGD no variance
    bool masters_are_weights;
} ChunkState;

// Allocates all and sets the first values; gradients and moments are 0. After a failure *out has
// what was allocated.
//   shard, num_shards  of this rank's zero group; 0 and 1 without ZeRO
Status chunk_state_create(Backend *backend, const ChunkParameters *list, Optimizer optimizer,
                          int shard, int num_shards, uint64_t seed, ChunkState *out);

void chunk_state_free(Backend *backend, ChunkState *chunk); // accepts a zeroed one

// The place of a parameter in the weights, and of its gradient.
void *chunk_weight(const Backend *backend, const ChunkState *chunk, const Parameter *parameter);
void *chunk_gradient(const Backend *backend, const ChunkState *chunk, const Parameter *parameter);

// An element of a wide buffer.
void *wide_at(const Backend *backend, void *array, int64_t element);
