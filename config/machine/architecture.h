// config/machine/architecture.h - what all GPUs of an architecture share:
// hw-profiles/architectures/NAME.json, checked. Each number's source stands in its file.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

enum { MAX_OLDER_ATTENTION = 8 };

// A fused attention kernel in one direction, over the newest for the architecture, whose rates are
// the GPU's own (config/machine/gpu.h, GpuEfficiency).
typedef struct {
    double frac;        // of its rate, with heads of 128 and long sequences
    double half_tokens; // sequence length at which half of that is reached; 0: as the newest
    double head64_frac; // rate with heads of 64 over that with 128; 0: as the newest
} AttentionShare;

typedef struct {
    int generation; // StackLaunch.attention_generation
    AttentionShare forward, backward;
} OlderAttention;

typedef struct {
    const char *name;
    double backward_192_frac; // attention's backward: rate with heads of 192 over that with 128
    int num_older;            // kernels that are not the newest
    OlderAttention older[MAX_OLDER_ATTENTION];
    // Rate of products in 16 bits over that of aligned ones. One is where the rows of an operand or
    // of the result are no multiple of 16 bytes (8 numbers), the other where they are a multiple of
    // no more than one number.
    double unaligned_frac, odd_frac;
    bool fp8_sums_along_rows_only; // products of 8 bits take both operands with the summed index
                                   // contiguous
} GpuArchitecture;

// Those of "other" where there is no file of that name: then out->name is not the name asked for.
Status architecture_load(const char *name, Arena *arena, const GpuArchitecture **out);
