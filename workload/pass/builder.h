// workload/pass/builder.h - collects the forward operators of one block, then derives its backward.
// Used by the block_*.c files only.
#pragma once

#include "workload/pass/block.h"
#include "workload/pass/bytes.h"
#include "workload/pass/pass.h"
#include "workload/pass/split.h"

enum { BUILDER_MAX_OPS = 160 };

// How a matrix's weights are split over the tensor-parallel group.
typedef enum {
    SPLIT_NONE,   // every rank holds all of it
    SPLIT_COLUMN, // outputs are split: the input must be whole, its gradient is summed
    SPLIT_ROW,    // inputs are split: the output is summed
} WeightSplit;

// One forward operator and what its backward needs to know.
typedef struct {
    Op op;
    int module;        // MODULE_* bit that recomputes it, or 0
    bool recomputed;   // run again before the backward
    double kept_bytes; // of op.saved_bytes: kept even so where it is the first of those run again
    double part_n[3];  // OP_GEMM that stands for several products: outputs of each; 0: none
    double again_frac; // of the work that is run again; 0 stands for all
    bool all_kept;     // nothing of it is, though what surrounds it is
    double kept_outputs_bytes;  // kept in the forward though it is run again (in part)
    double product_input_bytes; // of op.saved_bytes: given back by the product that reads it
    double shared_input_bytes;  // of its input: kept by an operator before for its own backward too
    bool begins_branch;         // its input is also added to the branch's result (residual)
    bool drops_input;           // what it saves does not hold its input
    double scale_input_bytes;   // of op.saved_bytes: read by the gradient of a norm's scale alone
    double residual_bytes;      // > 0: an addition; its gradient waits for the start of the branch
    bool ends_backward;         // nothing that is trained stands before it: it has no backward
    bool has_weight;            // OP_GEMM: its backward has a weight part
    WeightSplit weight_split;   // OP_GEMM with a weight
    // OP_GEMM with a weight (workload/pass/adapters.h)
    bool frozen;              // the weight is not trained: no gradient of it
    double dequantize_bytes;  // moved to make it of the numbers it is stored in, at each use,
    int dequantize_kernels;   // by so many
    double dequantized_bytes; // of it then, at most at a time
    int gather;               // > 0: of the unit that gathers its input over tp, once more in the
                              // backward; that of the unit itself says nothing of it
    bool plain_gradient; // OP_GEMM: its weight gradient is a tensor of its own, whatever the stack
    double quantize_bytes;  // OP_GEMM: moved to quantize the gradient of its output; 0: it is not
    double transpose_bytes; // OP_GEMM: moved to transpose what was gathered quantized
    int backward_kernels;
    double backward_bytes;       // OP_MEMORY, OP_ATTENTION, OP_SCAN
    double backward_flops;       // OP_ATTENTION, OP_SCAN
    double backward_alive_bytes; // OP_MEMORY, OP_ATTENTION, OP_SCAN: gradients it reads and makes
    double backward_state_flops; // OP_SCAN
    // OP_COLLECTIVE: what the backward does with the gradient; NUM_COLLECTIVES is nothing
    CollectiveKind backward_collective;
    double backward_frac; // its bytes over those of the forward's
    bool gather_again;    // the backward gathers the forward's input once more
    bool backward_async;  // the backward collective runs beside the weight gradient
} Unit;

// What operators are built from.
typedef struct {
    const Model *model;
    const Gpu *gpu; // on which 8-bit products are laid out
    const Execution *execution;
    Pass pass;
    Split split;
    const FineTuning *tuning; // which weights are trained; NULL: all
} LayerWork;

typedef struct Builder {
    const Model *model;
    const Gpu *gpu;
    const Execution *execution;
    Pass pass;
    Split split;
    const FineTuning *tuning; // or NULL
    Arena *arena;
    const LayerKind *kind;           // NULL for embedding and head
    double tokens;                   // of the pass on this rank, after cp
    double tokens_sp;                // the same after sequence parallelism
    double gathered_bytes_per_value; // of it where it is gathered over tp
    double input_bytes_per_value;    // of a GEMM's saved input: 2, or 1 where it is kept in 8 bits
    int precision;                   // of the linear layers
    int module;                      // MODULE_* bit of what is being built now
    bool compiled;                   // what is built now is compiled with its block
    double unusable_bytes;           // see Block
    bool lasting_gathers; // products gather their inputs into a buffer that is never freed
    int num_units;
    int recomputable_begin, recomputable_end; // units that may be recomputed; 0, 0: all
    double dense_parameters, expert_parameters;
    double partial_parameters;   // see Block
    FrozenBytes frozen;          // set once all units are there (workload/pass/adapters.h)
    double frozen_table_bytes;   // of shared_table, where that is not trained
    bool begins_model;           // no weights stand before it, but a front's before its own
    int num_front_units;         // of the first, those of a front
    double front_parameters;     // of dense_parameters
    double mixer_parameters;     // of dense_parameters, once the mixer is there
    double shared_table;         // parameters of the embedding's block that are gathered here too;
    bool table_stays;            // in the backward they stay until the embedding's own turn
    Unit units[BUILDER_MAX_OPS]; // [num_units], the others are not set
} Builder;

void builder_start(const LayerWork *work, const LayerKind *kind, Arena *arena, Builder *out);

// Linear layer with its collectives. n, k of the whole matrix; tokens of this rank.
//   saved_input_bytes  kept for the weight gradient; 0 where the operator before keeps it
void build_linear(Builder *b, const char *name, WeightSplit split, double tokens, double n,
                  double k, double saved_input_bytes);

// Each head of a query times a matrix of its own, k x n, in 16 bits or more.
void build_linear_of_heads(Builder *b, const char *name, double n, double k,
                           double saved_input_bytes);

// Parameters beside the products' that every tp rank holds whole; and of what is counted elsewhere
// those whose gradients are partial (Block) with sequence parallelism.
void build_whole_parameters(Builder *b, double parameters);
void build_partial_parameters(Builder *b, double parameters);

// The product just built stands for two or three: outputs of each on this rank.
void build_parts(Builder *b, double first_n, double second_n, double third_n);

// Batched product without weights (unfused attention): groups x (m x k times k x n).
void build_batched_gemm(Builder *b, const char *name, double groups, double m, double n, double k,
                        double saved_bytes);

// Memory-bound operator.
//   bytes, kernels            of the forward
//   backward_bytes, _kernels  of the backward; 0 kernels: none
//   saved_bytes               kept for the backward; output_bytes alive until the next operator,
//                             unless that is a product that keeps it
//   product_input_bytes       of what it saves: the input of the next product with weights
//   backward_alive_bytes      gradients read and made; 0 stands for twice output_bytes
typedef struct {
    const char *name;
    double bytes, backward_bytes;
    int kernels, backward_kernels;
    double saved_bytes, product_input_bytes, output_bytes, backward_alive_bytes;
} MemoryWork;
void build_memory(Builder *b, const MemoryWork *work);

// The chunks of sequences behind a state (block_scan.c).
//   kernels, flops, bytes, state_flops  of the forward; backward_* of the backward
//   saved_bytes   kept for the backward; output_bytes alive until the next operator
typedef struct {
    const char *name;
    double num_chunks; // of a sequence, one after the other
    int kernels, backward_kernels;
    double flops, backward_flops, state_flops, backward_state_flops;
    double bytes, backward_bytes;
    double saved_bytes, output_bytes, transient_bytes, backward_alive_bytes;
} ScanWork;
void build_scan(Builder *b, const ScanWork *work);

// Routed experts of a pass that does not train, behind the router's product: exchanges of tokens
// and one operator between them (block_served_experts.c).
void build_served_experts(Builder *b);

// Tokens to their experts (dispatch) or back.
struct ExpertLoad;
void build_experts_exchange(Builder *b, const struct ExpertLoad *load, bool dispatch,
                            double routed_bytes);

// An operator of one forward pass, as it stands.
void build_operator(Builder *b, Op op);

// Collective whose backward is another one (NUM_COLLECTIVES: none).
void build_collective(Builder *b, const char *name, Stream stream, CollectiveKind kind,
                      CollectiveKind backward_kind, GroupKind group, double message_bytes);

// A norm over `values` numbers.
//   keeps  NORM_INPUT unless another operator keeps it; NORM_OUTPUT where a product follows;
//          NORM_BEGINS_BRANCH where its input is also added to what comes of it
enum { NORM_INPUT = 1, NORM_OUTPUT = 2, NORM_BEGINS_BRANCH = 4 };
void build_norm(Builder *b, const char *name, double values, int keeps);

bool drops_out(const Builder *b); // the pass has dropout

// Residual addition, with dropout where the stack trains with it.
void build_residual(Builder *b, double values);

// Rows of the word table, which is split by tp, for `tokens` of this rank (workload.c).
void build_embedding_lookup(Builder *b, const char *name, double tokens);

Block layer_build(const LayerWork *work, const LayerKind *kind, Arena *arena); // block_mlp.c

// From the input norm to the residual: of b->kind's mixer (block_mixer.c), and of each kind, which
// config/model/mixers.def lists.
void build_mixer(Builder *b);
#define X(kind, name) void build_##name(Builder *b);
#include "config/model/mixers.def"
#undef X
void build_cross_attention(Builder *b); // of what attends to the encoder

// Attention of queries, keys and values that `project` makes of the normed tokens
// (block_attention.c). Where a row of its heads' results is no head's values yet, `results` makes
// them; `select` says which keys are seen. Both may be NULL.
typedef struct {
    void (*project)(Builder *b);
    void (*select)(Builder *b);
    void (*results)(Builder *b);
} AttentionParts;
void build_attention_behind(Builder *b, const AttentionParts *parts);

// Down projections of latent attention, and their norms (block_latent_attention.c).
void build_latents(Builder *b);

void build_dense_mlp(Builder *b, double intermediate_size); // block_mlp.c
void build_moe(Builder *b); // block_mlp.c: router, dispatch, experts, combine
void build_mlp(Builder *b); // norm, MLP or MoE by b->kind, residual

// Derives the backward of a pass that trains, adds ZeRO-3 gathers, sums the memory.
Block builder_finish(Builder *b, const char *name);

// The backward operators of b->units, in order. Returns their number (<= 3 BUILDER_MAX_OPS).
int backward_derive(const Builder *b, Op *backward);
