// config/software/execution.h - by which software a model is run, and how: formats of numbers,
// kernels, techniques (CONTRACT.md, keys of section "training" that say nothing about what is
// trained).
//
// Every kind of job has one: nothing here says how much is computed.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/machine/gpu.h"
#include "config/software/dispatcher.h"
#include "config/software/stack.h"

#include <stdbool.h>

typedef enum {
    FP8_DELAYED,
    FP8_CURRENT,
    FP8_TENSORWISE,
    FP8_ROWWISE,
    FP8_BLOCK,
    FP8_MXFP8,
    FP8_NVFP4,
    NUM_FP8_RECIPES
} Fp8Recipe;
typedef enum { ATTENTION_FLASH, ATTENTION_UNFUSED, NUM_ATTENTIONS } AttentionImpl;
typedef enum {
    DISPATCH_ALLTOALL,
    DISPATCH_ALLGATHER,
    DISPATCH_DEEPEP,
    DISPATCH_HYBRIDEP,
    NUM_DISPATCHERS
} MoeDispatcher;

// What CUDA graphs capture, a bit set.
enum {
    GRAPH_NONE = 0,
    GRAPH_FULL = 1,
    GRAPH_LAYER = 2,
    GRAPH_ATTN = 4,
    GRAPH_MOE_ROUTER = 8,
    GRAPH_MOE_PREPROCESS = 16,
};

extern const char *const FP8_RECIPE_NAMES[];     // ends with NULL
extern const char *const ATTENTION_NAMES[];      // ends with NULL
extern const char *const MOE_DISPATCHER_NAMES[]; // ends with NULL

typedef struct {
    Stack stack;
    const char *stack_version; // NULL where not stated

    // Formats
    int precision;             // Precision of the matrix products; bf16 where absent
    int fp8_recipe;            // Fp8Recipe; by default delayed for fp8, and the precision's own
    int optimizer_precision;   // of the optimizer's moments: fp32 or bf16
    int grad_reduce_precision; // fp32 or bf16
    int grad_reduce;           // GradReduce

    // Kernels
    int attention; // AttentionImpl
    bool compile;
    bool cross_entropy_fused;
    int cuda_graphs;       // GRAPH_* bits
    int moe_dispatcher;    // MoeDispatcher
    Dispatcher dispatcher; // of DISPATCH_DEEPEP and DISPATCH_HYBRIDEP

    // Techniques that are on or off
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) bool key;
#include "config/software/techniques.def"
} Execution;

// What an object says by being read: its keys stack and stack_version are, and all others have the
// stack's defaults.
//   shelf  of stacks (config/software/kernel_shelf.h); NULL: none
struct KernelShelf;
Status execution_default(const JsonNode *value, struct KernelShelf *shelf, Arena *arena,
                         Execution *out);

// Reads those keys that are more than a name or a switch, and checks what the others say together.
// The GPU must support the precision.
Status execution_complete(const JsonNode *value, const Gpu *gpu, Arena *arena,
                          Execution *execution);

// Refuses a precision that another GPU of the job does not support.
Status execution_check_gpu(const JsonNode *value, const Gpu *gpu, const Execution *execution);
