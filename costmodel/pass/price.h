// costmodel/pass/price.h - seconds of everything a Program may contain, each priced once.
//
// Two accounts of the same seconds: by term of the answer's breakdown (what the GPU waits for) and
// by part of a step (what is predicted by one model with one error, config/job/calibration.h). An
// operator takes its part's factor times as long before overlap is worked out. Time that a
// collective leaves exposed is of the part of what was waited for last; what overlap adds to
// computation is split as the computation is. A chunk that waits for the host is the host's.
#pragma once

#include "base/arena.h"
#include "config/job/calibration.h"
#include "costmodel/network/pricing_context.h"
#include "plan/plan.h"
#include "workload/pass/block.h"
#include "workload/step/program.h"

// The terms of the contract's breakdown.
typedef enum {
    TERM_COMPUTE,
    TERM_TP,
    TERM_CP,
    TERM_EP,
    TERM_DP,
    TERM_PP,
    TERM_BUBBLE,
    TERM_OPTIMIZER,
    TERM_OTHER, // the host could not launch fast enough; per-step work outside the model
    NUM_TERMS
} Term;

extern const char *const TERM_NAMES[NUM_TERMS]; // keys of breakdown_s

typedef struct {
    double time_s;
    double term_s[NUM_TERMS]; // adds up to time_s
    double part_s[NUM_PARTS]; // and so does this
} Price;

typedef struct {
    const Price *forward;            // [num_chunks]
    const Price *backward;           // [num_chunks] whole; where all are split: one part after the
                                     // other
    const Price *backward_input;     // [num_chunks] NULL where nothing is split: neither by the
                                     // schedule nor in passes over a spread vocabulary
    const Price *backward_weight;    // [num_chunks]
    const double *message_s;         // [num_ranks] from pipeline rank r to r + 1 (and back)
    const double *message_alpha_s;   // [num_ranks] its latency part
    const double *copies_s;          // [num_ranks] a message to the rank that holds the copies of a
    const double *copies_alpha_s;    // rank's chunks, and its latency; NULL where there are none
    const double *collective_s;      // [num_collectives] of the Program; NULL before program_price
    const double *stretch_s[2];      // [num_chunks] of a piece of the forward (backward) that
                                     // collectives of the Program run beside; NULL as above
    const double *optimizer_s;       // [num_ranks]
    double step_s;                   // per step on the host, once
    const StepPart *message_part;    // [num_ranks] inside or across domains
    const StepPart *collective_part; // [num_collectives]
} Prices;

// Prices the chunks by running their operator templates on the streams of one rank.
Prices chunks_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                    Arena *arena);

// Prices the chunks of one of several plans that share their blocks (plans_share_blocks): `blocks`
// keeps for the others what is priced for it, [num_pools].
typedef struct BlockPrices BlockPrices;
BlockPrices *block_prices_new(const Cluster *cluster, Arena *arena);
BlockPrices *block_prices_of_pool(BlockPrices *blocks, int pool);
Prices chunks_price_shared(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           BlockPrices *blocks, Arena *arena);

// Seconds of the optimizer on each rank: [pp]. Of prices that plans share which differ in ZeRO
// stage below 2 and zero_group, all that is each one's own.
const double *optimizers_price(const Scenario *scenario, const Plan *plan, const Workload *workload,
                               Arena *arena);

// A pass over one block. A chunk's takes no less than the sum of its blocks' seconds on the device.
// But for the weight part of a backward it takes no less than the sum of their seconds on the host
// and pass_host_s.
typedef struct {
    double device_s, host_s;
} PassPrice;

//   block  of workload->blocks; one without operators takes nothing
PassPrice block_pass_price(const PricingContext *context, const Workload *workload,
                           BlockPrices *blocks, WorkKind work, int block);
double pass_host_s(const Execution *execution, const Calibration *calibration);

// Seconds of the optimizer for weights that a rank holds before ZeRO: it is bound by the bytes of
// gradients, moments and weights.
double optimizer_update_s(const Scenario *scenario, const Plan *plan, const Gpu *gpu,
                          double dense_parameters, double expert_parameters);

// Whether the price of a chunk's whole backward is the sum of its two parts.
bool backward_is_parts(const Plan *plan, int chunk);

// Seconds of each of a Program's collectives, and the parts of a step that they are.
const double *collectives_price(const Scenario *scenario, const Plan *plan,
                                const ProgramCollective *collectives, int num_collectives,
                                Arena *arena, const StepPart **parts);

// Adds the Program's collectives.
void program_price(const Scenario *scenario, const Plan *plan, const Program *program, Arena *arena,
                   Prices *prices);

// The boundary that a message between neighbouring pipeline ranks crosses, as in Prices.message_s.
int message_boundary(int rank, int peer);

typedef struct {
    double time_s;
    double alpha_s, transfer_s; // its latency, and its bytes after that
    double
        share_frac; // of its way: less than 1 of gradients that go to copies of two chunks at once
} MessagePrice;

// A message that a rank sends or receives.
MessagePrice instruction_message_price(const Program *program, const Prices *prices, int rank,
                                       const Instruction *message);

// Seconds by which collectives beside it stretch a compute instruction; 0 where it is no piece.
double piece_stretch_s(const Prices *prices, const Instruction *instruction);

// What a pass over a chunk costs, all its pieces together; NULL of any other instruction.
const Price *instruction_price(const Prices *prices, const Instruction *instruction);

// Seconds of one compute instruction (a piece is its equal share, and stretched).
double instruction_compute_s(const Prices *prices, const Instruction *instruction, int rank);
