// workload/pass/operator.h - one operator of a layer as one rank executes it: the unit that is
// priced.
#pragma once

#include "workload/pass/group.h"
#include "workload/pass/routing.h"

typedef enum {
    OP_GEMM,       // groups x (m x k times k x n)
    OP_ATTENTION,  // fused scaled-dot-product attention
    OP_SCAN,       // chunks of a sequence, some of the work one after the other (linear attention)
    OP_EXPERTS,    // what an engine runs of routed experts, from the scores to the sum of results
    OP_MEMORY,     // bound by the bytes it moves: norms, activations, copies
    OP_COLLECTIVE, // among the ranks of a group
} OpKind;

typedef enum {
    PHASE_FORWARD,
    PHASE_BACKWARD_INPUT,  // gradients of activations (and what cannot be delayed)
    PHASE_BACKWARD_WEIGHT, // gradients of weights
    NUM_PHASES
} Phase;

// Queues of one rank; what is on one stream runs in order.
typedef enum {
    STREAM_COMPUTE,
    STREAM_TP,
    STREAM_CP,
    STREAM_EP,
    STREAM_DP,
    STREAM_PP,
    NUM_STREAMS
} Stream;

extern const char *const STREAM_NAMES[NUM_STREAMS];

typedef enum {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_GATHER,     // message_bytes: the gathered whole
    COLLECTIVE_REDUCE_SCATTER, // message_bytes: the whole before
    COLLECTIVE_ALL_TO_ALL,     // message_bytes: what one rank holds, own part included
    COLLECTIVE_RING_EXCHANGE,  // size - 1 steps around the ring; message_bytes in each step
    COLLECTIVE_BROADCAST,      // message_bytes: what one rank sends to all others
    COLLECTIVE_DISPATCH, // by kernels of their own (costmodel/network/exchange.h); message_bytes:
                         // one
    COLLECTIVE_COMBINE,  // copy of each token for each rank it goes to, and all back
    NUM_COLLECTIVES
} CollectiveKind;

extern const char *const COLLECTIVE_NAMES[NUM_COLLECTIVES];

enum {
    WAIT_PREVIOUS = -1, // data of the operator before it in the list
    WAIT_NOTHING = -2,  // may start as soon as its stream is free
};

// Several batched or grouped products.
typedef struct {
    double groups, m, n, k; // m tokens, n outputs, k inputs of each
    int aligned;            // largest of 1, 2, 4, 8 that divides the forward's n and k, along which
                            // its operands' rows lie
    bool separate;          // each is a kernel of its own (experts), else one batched kernel
    int fp8_recipe;         // Fp8Recipe, where the operator's precision is quantized
    double epilogue_bytes;  // read and written by the product's own epilogue: a gradient added up
    double after_bytes;     // read and written by a kernel that follows: the same as one of its own
} GemmOp;

// Fused attention; where a context-parallel rank takes several steps, each of them.
typedef struct {
    double sequences;
    double heads, kv_heads; // of this rank
    double queries, keys;   // tokens of one sequence
    double window;          // keys that a query sees at most; 0: all
    double head_dim;        // of query and key
    double v_head_dim;
    double latent_dim; // numbers of a token that latent attention caches; 0: it is none
    bool causal;
    bool served;    // of a pass that does not train: an engine's kernel runs it
    int generation; // of the kernel: StackLaunch.attention_generation
} AttentionOp;

// Kernels that work on the chunks of sequences at once, and one or two that carry a state from
// chunk to chunk.
typedef struct {
    double num_chunks;  // of a sequence
    double state_flops; // of Op.flops: of those that carry the state
} ScanOp;

// Top-k, order, the grouped products around their activation, and the weighted sum: one operator of
// a pass that does not train. A rank has num_experts / num_ranks of the experts.
typedef struct {
    double tokens;      // that enter the layer on all ranks that share its experts, times what the
                        // busiest rank receives over an even share
    double hidden_size; // of a token
    double inter_size;  // of an expert on this rank, after its split
    int num_experts, experts_per_token, num_ranks;
    bool gated;         // two up-projections
    bool group_limited; // chosen among some groups of experts
    int fp8_recipe;     // Fp8Recipe, where the operator's precision is quantized
    double pass_bytes;  // read and written beside the products
} ExpertsOp;

// Bound by the bytes it moves.
typedef struct {
    double angles;       // of which sine and cosine are taken
    bool subtracts_mean; // a norm that does, LayerNorm
} MemoryOp;

// Beside what a collective runs, other than what stands around it in its list. None of it ends the
// list unless it takes longer than all of that.
typedef enum {
    BESIDE_NOTHING,
    BESIDE_MICROBATCH, // the compute of another micro-batch
    BESIDE_BLOCKS,     // the blocks before and after it of the same pass (shards of ZeRO)
} Beside;

typedef struct {
    CollectiveKind kind;
    GroupKind group;
    double message_bytes;
    Routing routing; // of COLLECTIVE_DISPATCH and COLLECTIVE_COMBINE
    Beside beside;   // what its list does not wait for
} CollectiveOp;

typedef struct Op {
    const char *name; // as the field calls it: "qkv_proj", "core_attn", ...
    OpKind kind;
    Phase phase;
    Stream stream;
    int wait; // index of the operator of this list that must be done, or WAIT_*

    // The one of its kind.
    union {
        GemmOp gemm;
        AttentionOp attention;
        ScanOp scan;
        ExpertsOp experts;
        MemoryOp memory;
        CollectiveOp collective;
    };

    int precision;        // Precision
    bool backward;        // attention, scan, memory: runs in the backward, at the rates of that
    double flops;         // executed
    double bytes;         // read and written in device memory
    int num_kernels;      // launched, >= 1
    bool awaited_by_host; // the host waits for what it makes, and then the device for the host:
                          // StackLaunch.moe_sync_s
    int pipelined_with;   // index of the GEMM it is overlapped with piece by piece, or -1
    bool again;           // recomputed: a forward operator in the backward list

    // memory of this rank
    double saved_bytes;    // kept from here until this micro-batch's backward (forward operators)
    double released_bytes; // of what the forward saved, given back after it (backward operators)
    double shared_bytes;   // of what a weight gradient reads, kept by an operator that releases it
    double residual_bytes; // of a gradient that a weight gradient reads and that is the residual's,
                           // held already; of the operator that ends the residual's: the same bytes
    double placeholder_bytes;    // stays allocated once for each shape (m, n) of a weight gradient
    double lasting_bytes;        // of a buffer that is never freed; all operators share the largest
    double transient_bytes;      // alive during this operator only, beside what is kept
    double input_gradient_bytes; // of these, that a weight gradient finds as it follows the input's
                                 // at once
    double regathered_bytes;     // of these, of an input gradient: gathered again for the weight's,
                                 // which follows at once
} Op;

// Whether it is a collective of this kind; what its list does not wait for.
static inline bool op_is_collective(const Op *op, CollectiveKind kind) {
    return op->kind == OP_COLLECTIVE && op->collective.kind == kind;
}
static inline Beside op_beside(const Op *op) {
    return op->kind == OP_COLLECTIVE ? op->collective.beside : BESIDE_NOTHING;
}

// Keys that a kernel of attention goes over for a query at most.
double attention_op_tokens(const AttentionOp *attention);
