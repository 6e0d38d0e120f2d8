// workload/pass/block.h - the operator template of one kind of layer (or embedding, head, MTP
// layer) as one rank runs it under a plan. It is forward and backward lists with what each operator
// waits for, keeps and gives back.
//
// The backward list begins with the operators that are recomputed. It interleaves gradients of
// inputs and of weights as autograd does; the phase of each operator tells them apart, so that a
// schedule can delay the weight part.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/layer_plans.h"
#include "workload/pass/operator.h"

// Weights that are not trained, in bytes as they are stored. They have no gradient and no
// optimizer, and are gathered like others where ZeRO 3 cuts them.
typedef struct {
    double dense, expert;
} FrozenBytes;

typedef struct {
    const char *name;  // "dense", "moe", "embedding", "head", "mtp", ...
    const Op *forward; // [num_forward]
    int num_forward;
    const Op *backward; // [num_backward]
    int num_backward;

    // Of weights that are trained
    double dense_parameters;   // held by this rank before ZeRO, replicated over GROUP_DP
    double expert_parameters;  // held by this rank before ZeRO, replicated over GROUP_EDP
    double partial_parameters; // of dense_parameters: those that every tp rank holds whole, though
                               // it makes their gradients of its own tokens (sequence parallelism)
                               // or heads only: tp ranks add them up
    FrozenBytes frozen;        // beside them, replicated likewise
    Phase gradients_phase; // of a split backward, in which the gradients of its weights are whole
    int sharding;          // of its layers (plan/layer_plans.h)
    double unusable_bytes; // free at the peak of its backward, but in pieces too small for it
    // Of its experts' products, which grow with the tokens that the rank's experts are sent:
    double received_bytes;       // of saved_bytes
    double received_again_bytes; // kept while it is recomputed

    // Running sums of the lists (bytes)
    double saved_bytes;         // kept after the forward
    double forward_peak_bytes;  // most above the start during the forward, saved part included
    double backward_peak_bytes; // most above (start + saved_bytes) during the backward
    // Where the backward is split in two parts
    double deferred_bytes;    // kept from the input part to the weight part: what products read and
                              // the gradients of their results
    double input_peak_bytes;  // most above (start + saved_bytes) during the input part
    double weight_peak_bytes; // most above (start + deferred_bytes) during the weight part
} Block;

// Blocks of a plan: one for each layer kind and strategy (plan/layer_plans.h), those of the ends,
// and the changes of the layout of activations between layers, which have no parameters. Sums over
// blocks are made in this order: embedding; kind by kind, and of a kind strategy by strategy, the
// layers of the first NEAR_STRATEGIES, which nearly all plans make do with; MTP layers, head and
// vocabulary; layers of further strategies; changes. Use workload_layer_block and
// workload_change_block.
enum {
    NEAR_STRATEGIES = 3,
    BLOCK_EMBEDDING = 0,
    BLOCK_FIRST_LAYER,
    BLOCK_MTP = BLOCK_FIRST_LAYER + NEAR_STRATEGIES * MODEL_MAX_LAYER_KINDS,
    BLOCK_HEAD,
    BLOCK_VOCAB_INPUT,  // the word table, and
    BLOCK_VOCAB_OUTPUT, // logits and loss, where the vocabulary is spread over all pipeline ranks:
                        // BLOCK_EMBEDDING and BLOCK_HEAD are then what else those do
    MAX_BLOCKS          // of a plan with no more strategies than that and one layout
};

// What a rank holds of a chunk's weights before ZeRO.
typedef struct {
    double dense, expert;
    double partial; // of dense, see Block
    FrozenBytes frozen;
} HeldParameters;

// How many blocks of each kind one chunk holds.
typedef struct {
    const int *num_blocks;                      // [Workload.num_blocks]
    const HeldParameters *of_sharding;          // [plan_num_shardings]; NULL where that is 1
    int num_layers;                             // transformer layers, MTP layers not counted
    double dense_parameters, expert_parameters; // sums over its blocks, this rank's share
    double partial_parameters;
    FrozenBytes frozen;
    double saved_bytes; // per micro-batch, after its forward
    // Over its blocks run in order; with the whole weights and gradients of the block that runs,
    // where ZeRO-2 and -3 cut them and no block is gathered ahead.
    double forward_peak_bytes;
    double backward_peak_bytes;
    double unusable_bytes; // free at that of the backward, but in pieces too small for it
    double deferred_bytes; // of a split backward, and the peaks of its parts, as of a Block
    double input_peak_bytes, weight_peak_bytes;
} Chunk;

// Everything that is the same for all micro-batches and data-parallel replicas.
typedef struct {
    const Block *blocks; // [num_blocks] unused ones are zero
    int num_blocks;      // at least MAX_BLOCKS
    int first_change;    // changes of layout are from here on
    int num_chunks;
    const Chunk *chunks;   // [num_chunks] in pipeline order, then those of the vocabulary
    double message_bytes;  // of them that one rank sends: its share where the receivers gather
    double boundary_bytes; // activations one rank sends to the next chunk per micro-batch
    double tokens_per_microbatch; // of one rank after cp: micro_batch x seq_len / cp
    double model_flops;           // of the whole step over all GPUs
} Workload;

// Splits the model by the plan; the plan was checked (plan_check).
Workload workload_build(const Scenario *scenario, const Plan *plan, Arena *arena);

// Workload.model_flops, the same for all plans.
double workload_model_flops(const Scenario *scenario);

// Workload.message_bytes of a plan.
double workload_message_bytes(const Scenario *scenario, const Plan *plan);

// workload_build for a plan that shares its blocks with that of `like`: only its chunks are made
// anew. What is of `like` stays in the arena that it was built in.
Workload workload_build_like(const Scenario *scenario, const Plan *plan, const Workload *like,
                             Arena *arena);

// workload_build_like with the chunks of one pipeline rank alone, for what that rank holds; the
// others are zero.
Workload workload_rank_like(const Scenario *scenario, const Plan *plan, const Workload *like,
                            int rank, Arena *arena);

// What a plan that recomputes the first layers of each stage holds at least, and all that recompute
// fewer. It is its chunks without the backward of what is recomputed, without the parts of
// backwards that are split, and without what a head leaves in pieces. Of these every chunk holds no
// more the more layers are recomputed, if a recomputed layer keeps no more than another and its
// forward needs no more (workload_layers_hold_less). Turning one layer into a recomputed one lowers
// what each block before or after it finds kept, and the forward's peak. What is left out is not
// so: a recomputed layer's backward finds one input more kept for each further layer that is
// recomputed.
//   like  the plan's workload
Workload workload_layers_floor(const Scenario *scenario, const Plan *plan, const Workload *like,
                               Arena *arena);
bool workload_layers_hold_less(const Scenario *scenario, const Workload *workload);

// Whether a gathered word table that a tied head reads too stays from the head's backward until the
// embedding's, which ends the same pass. Else each gathers it, and scatters its gradient, for
// itself.
bool workload_table_stays(const Plan *plan);

// Whether the blocks of two plans of one scenario are the same. The plans may differ in chunks,
// schedule, ZeRO stage below 2 and its zero_group. They may also differ in how many first layers of
// a stage are recomputed, where both say so. From 2 on every backward scatters its gradients, from
// 3 on weights are gathered in every pass. Lists of what layers do are alike only where they are
// one.
bool plans_share_blocks(const Plan *a, const Plan *b);

// The block of a layer kind with a strategy, of which there are layers, or which is the plan's own.
const Block *workload_layer_block(const Workload *workload, int layer_kind, int strategy);

// The change from one sharding's layout of activations to another's, which are not alike.
const Block *workload_change_block(const Workload *workload, const Plan *plan, int from, int to);

// What of a chunk's weights layers with a sharding hold.
HeldParameters chunk_held(const Chunk *chunk, int sharding);

// Equal blocks that a chunk runs one after the other.
typedef struct {
    int block, count;
} BlockRun;

// What a chunk runs, in the order of its forward.

//   returns  how many; *runs lives in arena
int workload_runs(const Scenario *scenario, const Plan *plan, int chunk, Arena *arena,
                  const BlockRun **runs);
