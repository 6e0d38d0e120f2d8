// config/training.h - what is trained and by which software (CONTRACT.md, section "training").
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/dispatcher.h"
#include "config/gpu.h"
#include "config/stack.h"

#include <stdbool.h>
#include <stdint.h>

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
typedef enum { OPTIMIZER_ADAM, OPTIMIZER_SGD, OPTIMIZER_MUON, NUM_OPTIMIZERS } Optimizer;
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
extern const char *const OPTIMIZER_NAMES[];      // ends with NULL
extern const char *const ATTENTION_NAMES[];      // ends with NULL
extern const char *const MOE_DISPATCHER_NAMES[]; // ends with NULL

// Sequences of one length.
typedef struct {
    int64_t length; // tokens, at most seq_len
    double frac;    // of all sequences
} LengthShare;

typedef struct {
    int64_t seq_len;           // tokens
    int64_t global_batch;      // sequences
    int precision;             // Precision of the matrix products; bf16 where absent
    int fp8_recipe;            // Fp8Recipe; by default delayed for fp8, and the precision's own
    int optimizer;             // Optimizer
    int optimizer_precision;   // of the optimizer's moments: fp32 or bf16
    int grad_reduce_precision; // fp32 or bf16
    Stack stack;
    const char *stack_version; // NULL where not stated
    int attention;             // AttentionImpl
    bool overlap_grad_reduce;
    bool overlap_param_gather;
    bool tp_comm_overlap;
    bool ep_overlap;
    bool compile;
    bool cross_entropy_fused;
    bool optimizer_post_validation; // the gradient norm is looked at after the optimizer's step
    int cuda_graphs;                // GRAPH_* bits
    bool causal;
    int images_per_sequence;             // for the model's tower; 0: it is left out
    int image_size;                      // pixels a side; the tower's own where absent
    int64_t encoder_seq_len;             // tokens the encoder reads; seq_len where absent
    double moe_imbalance;                // busiest expert's tokens over the mean; 1 is balanced
    int moe_dispatcher;                  // MoeDispatcher
    Dispatcher dispatcher;               // of DISPATCH_DEEPEP and DISPATCH_HYBRIDEP
    double capacity_factor;              // 0: no tokens are dropped or padded
    const LengthShare *sequence_lengths; // [num_sequence_lengths] fractions add up to 1
    int num_sequence_lengths;            // 0: all are of seq_len
} Training;

// Reads the training object; switches that are absent take the stack's defaults.
// The GPU must support the precision.
//   shelf  of stacks (config/kernel_shelf.h); NULL: none
struct KernelShelf;
Status training_load(const JsonNode *value, const Gpu *gpu, struct KernelShelf *shelf, Arena *arena,
                     Training *out);

// Refuses a precision that another GPU of the job does not support.
Status training_check_gpu(const JsonNode *value, const Gpu *gpu, const Training *training);
