// config/machine/core.h - what one core of a CPU takes for an operator: section `core` of a GPU
// file, of each precision that its peak_flops_per_s has, checked. costmodel/kernel/core_op.h has
// the formulas; `meshwright profile --device cpu` measures and fits the constants.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

// As workload/pass/operator.h has its phases: forward, gradient of the input, gradient of the
// weight.
enum { CORE_NUM_PRODUCTS = 3 };

typedef struct {
    double flops_per_s;            // of huge products
    double half_m, half_n, half_k; // sizes at which one of them alone halves it
    double call_s;                 // each
} CoreProduct;

typedef struct {
    double flops_per_s;   // of long sequences and huge heads; causal flops, backward 2.5 x forward
    double half_tokens;   // sequence length that alone halves it: masked parts of blocks
    double half_head_dim; // head size that alone halves it: an exponential for each score
    double call_s;
} CoreAttention;

// Operators by the loops that they run, not by memory alone.
typedef enum {
    CORE_ADD, // and all that has no row of its own
    CORE_RMSNORM,
    CORE_LAYERNORM,
    CORE_ACTIVATION,
    CORE_GATED_ACTIVATION,
    CORE_ROPE,
    CORE_EMBEDDING,
    CORE_CROSS_ENTROPY,
    CORE_OPTIMIZER,
    NUM_CORE_LOOPS
} CoreLoop;

extern const char *const CORE_LOOP_NAMES[NUM_CORE_LOOPS + 1];       // ends with NULL
extern const char *const CORE_PRODUCT_NAMES[CORE_NUM_PRODUCTS + 1]; // ends with NULL

// Of one precision.
typedef struct {
    bool present;
    CoreProduct products[CORE_NUM_PRODUCTS];
    CoreAttention attention[2];            // forward, backward
    double bytes_per_s[NUM_CORE_LOOPS][2]; // forward, backward; of the Program's bytes
    double angle_s;                        // beside them, for each sine and cosine
    double call_s;                         // of one of these loops
} CoreLaws;

// Reads the section into out [num_precisions], by their names (which end with NULL).
Status core_read(const JsonNode *node, const char *const *precisions, Arena *arena, CoreLaws *out);

// A precision's part of the section again.
cJSON *core_to_json(const CoreLaws *laws);
