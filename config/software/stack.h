// config/software/stack.h - what a software stack fuses, overlaps, stores and defaults to:
// stacks/NAME.json.
//
// Every number is a property of the software with a unit and a source in the file; none belongs to
// one model, cluster or measurement.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

// Where a product leaves the gradient of its weight.
typedef enum {
    WEIGHT_GRADIENT_SEPARATE,    // in a tensor of its own, which is then added to the buffer
    WEIGHT_GRADIENT_IN_PLACE,    // added to the gradient buffer as it is made
    WEIGHT_GRADIENT_PLACEHOLDER, // in place; autograd is handed an unused 16-bit tensor, of which
                                 // one for each shape of weight stays allocated
} WeightGradient;

// How ZeRO-2 and -3 lay out what they gather and scatter.
typedef enum {
    SHARDING_PLAIN,         // gradients are copied into what is scattered
    SHARDING_FLAT,          // FSDP1: one flat tensor per block, of which weights are views
    SHARDING_PER_PARAMETER, // FSDP2: tensors of their own, copied out of what was gathered
    SHARDING_SUMMED, // products add to a block's zeroed gradients, of which a rank's share is
                     // added to those that it keeps once they are scattered
} Sharding;

// When ZeRO-2 and -3 reduce gradients over the replicas. Stages 0 and 1 keep whole gradients and
// reduce them once a step on every stack.
typedef enum {
    GRAD_REDUCE_STEP,        // once: whole gradients are added up until then
    GRAD_REDUCE_MICRO_BATCH, // in every backward: none stays whole
    GRAD_REDUCE_PIPELINE,    // of stacks alone: once a step with a pipeline, else in every backward
} GradReduce;

extern const char *const GRAD_REDUCE_NAMES[];       // "step", "micro_batch"; ends with NULL
extern const char *const STACK_GRAD_REDUCE_NAMES[]; // and "pipeline_step"

// Which products gather their inputs over tp into one buffer that is never freed.
typedef enum {
    LASTING_GATHERS_NONE,
    LASTING_GATHERS_HEAD, // only the output layer
    LASTING_GATHERS_ALL,
} LastingGathers;

// Low-rank adapters, and what the frozen weights beside them are stored in
// (config/job/fine_tuning.h).
typedef enum { ADAPTER_NONE, ADAPTER_LORA, ADAPTER_DORA, NUM_ADAPTER_KINDS } AdapterKind;
typedef enum { BASE_FP32, BASE_BF16, BASE_NF4, BASE_FP4, NUM_BASE_DTYPES } BaseDtype;
extern const char *const ADAPTER_NAMES[];    // from ADAPTER_LORA on; ends with NULL
extern const char *const BASE_DTYPE_NAMES[]; // ends with NULL

// Which of them the software has; none where its file says nothing.
typedef struct {
    bool kinds[NUM_ADAPTER_KINDS];
    bool base_dtypes[NUM_BASE_DTYPES];
    int base_dtype; // BaseDtype of a scenario that says nothing of it
} StackAdapters;

// Kernels, and the time of the host.
typedef struct {
    bool fused_norm;           // one kernel per RMSNorm, saving its input only
    bool fused_activation;     // bias and activation (and gate) in one kernel
    int attention_generation;  // fused attention kernels, see costmodel/kernel/compute.c: 1 to 4
    bool fused_softmax;        // scale, mask and softmax in one kernel (unfused attention)
    bool fused_rope;           // rotary embedding in one kernel
    double host_launch_s;      // host time per kernel launched eagerly
    double host_compiled_frac; // host launches left under torch.compile
    double host_layer_s;       // host time per layer and pass beyond the launches: Python, autograd
    double host_step_s;        // per step: data, gradient norm, logging
    // host time, beyond its launch, for each product of an expert where these are kernels of their
    // own; 0: all experts' are one grouped kernel
    double host_expert_s;
    // a forward of a layer of experts: the host waits for the device to say how many tokens each
    // gets, and then the device for the host
    double moe_sync_s;
    // bytes moved by memory-bound operators over their minimum, minus one, where they are not
    // compiled: casts, copies, generic kernels
    double eager_overhead_frac;
    double quantize_overhead_frac;  // the same of kernels that quantize,
    double transpose_overhead_frac; // and of those that also write what they quantize transposed
    double moe_overhead_frac;       // bytes moved by routing and permutation over their minimum
} StackLaunch;

// How it communicates.
typedef struct {
    bool p2p_overlap;             // messages of some schedules are hidden (workload/step/program.h)
    bool p2p_scatter_gather;      // a stage of tp ranks sends each value once and gathers it
    double overlap_slowdown_frac; // how much slower compute runs while a collective runs beside it
} StackCommunication;

// What the process holds, beside what the operators of a pass need (workload/).
typedef struct {
    int lasting_gathers;         // LastingGathers
    bool keeps_gathered_inputs;  // products keep their inputs as gathered over tp
    bool adds_in_place;          // a branch's result becomes its sum with the residual
    bool copies_attention_steps; // of gathered keys: results of two steps are kept beside a copy
    // queries, keys and values are tensors of their own, and so are their gradients; or they stay
    // where their product wrote them, rotated in place
    bool splits_heads;
    double workspace_bytes;         // of its matrix products, allocated like tensors
    double grouped_workspace_bytes; // more of them where it has experts
    double allocator_slack_frac;    // reserved over allocated, minus one
    double context_bytes;           // CUDA context and libraries
    double comm_bytes_per_group;    // NCCL channels and buffers per communicator
} StackResidency;

// What only trains: what is stored per parameter, gradients, recomputation, loss, optimizer.
typedef struct {
    double weight_bytes_per_param; // the weights that are trained: 2 (bf16) or 4 (fp32)
    double master_bytes_per_param; // fp32 copy in the optimizer; 0 where the weights are fp32
    double grad_bytes_per_param;   // gradient buffer; 0: as the gradient reduction's precision
    // of 16-bit gradients that autograd leaves until a backward ends, beside that buffer; as much
    // again in DDP's buckets where there are replicas. 0: each is gone once it was added
    double grad_copy_bytes_per_param;
    int weight_gradient;           // WeightGradient
    bool keeps_gradients;          // from step to step; or the backward makes them anew
    bool gathers_in_compute_dtype; // sharded fp32 weights are cast before the all-gather (FSDP)
    int sharding;                  // Sharding
    // context-parallel ranks always share the shards; a zero_group of dp ranks is then all of dp x
    // cp
    bool shards_over_cp;
    bool gathers_ahead;          // ZeRO-3: the next block's weights while one runs
    bool checkpoint_early_stop;  // recomputation ends with the last tensor that the backward needs
    bool selective_per_operator; // selective recompute saves GEMM outputs only, not core attention
    // what is scattered of a product's input gradient is there while the weight's is made
    bool scatters_beside_weights;
    // with sequence parallelism the gradient of learned positions is one of a tp rank's tokens or
    // of one rank only, and added up over tp
    bool splits_positions;
    // from ZeRO 2 on gradients of which tp ranks have parts are added up over tp before each
    // scatter; else their shards once a step
    bool sums_in_backward;
    double bucket_bytes; // gradient bucket of one reduction
    // ZeRO 1 shares whole tensors out: gradients are all-reduced, and each rank broadcasts the
    // weights that it updates
    bool weights_by_broadcast;
    bool tp_backward_overlap;      // input-gradient collectives run beside the weight-gradient GEMM
    bool loss_in_place;            // the gradient of a fused loss takes the place of the logits
    bool loss_gradient_in_forward; // a fused loss makes its gradient at once
    // of a logit, beside the fp32 softmax, while an unfused loss makes its gradient; the second
    // where the vocabulary is split by tp
    double loss_gradient_bytes, parallel_loss_gradient_bytes;
    bool dropout;             // trained with dropout: masks are stored
    bool fused_optimizer;     // one multi-tensor kernel
    double host_microbatch_s; // host time per micro-batch and pipeline rank beyond the launches
} StackTraining;

// Switches of a training scenario that says nothing of them.
typedef struct {
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate)                                      \
    bool key; // false of one that stacks do not state
#include "config/software/techniques.def"
    bool compile;
    bool cross_entropy_fused;
    int grad_reduce;                // GradReduce
    int grad_reduce_precision;      // index into PRECISION_NAMES: fp32 or bf16 (any 16 bits)
    int fp16_grad_reduce_precision; // of training in fp16
    int default_zero_stage;         // 0-3
    bool sequence_parallel;         // where tp > 1
} StackDefaults;

typedef struct {
    const char *name;
    const char *title;
    const struct RuleTable *rules; // what it can run (config/software/rules.h); NULL: not known
    JsonNode releases; // what is different before or from a release; absent where nothing is said

    StackLaunch launch;
    StackCommunication communication;
    StackResidency residency;
    bool trains; // the rest is there; an inference engine has none of it
    StackTraining training;
    StackDefaults defaults;
    StackAdapters adapters;
} Stack;

// Whether ZeRO 3 may keep what it gathered until the backward (FSDP's SHARD_GRAD_OP, FSDP2's
// reshard_after_forward false), so that a search has the choice.
bool stack_keeps_gathered(const Stack *stack);

// The name of a bundled stack.
Status stack_read_name(const JsonNode *value, Arena *arena, const char **out);

// Refuses, at the node, what cannot be a release of a stack that has `releases`: not numbers with
// dots. The names of others are theirs.
Status stack_check_version(const JsonNode *node, const Stack *stack, const char *version);

// The stack of a release: of the entries of `releases` that stand "before" a later one, the
// earliest applies; of those that hold "from" one that is not later, the latest. No version, or one
// that is not numbers with dots: as the file says outside `releases`.
Status stack_at_release(const Stack *usual, const char *version, Arena *arena, Stack *out);
Status stack_load_named(const char *name, Arena *arena, Stack *out);
Status stack_read(const JsonNode *root, Arena *arena, Stack *out); // root: a whole stack file
Status stack_names(Arena *arena, const char *const **names);       // ends with NULL

// Reads "fp32" or "bf16" as a Precision: the formats that gradients and moments are kept in.
Status dtype_read(const JsonNode *node, int *precision);
