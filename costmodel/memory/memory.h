// costmodel/memory/memory.h - bytes one GPU holds: the memory account of the contract.
//
// Sources: weights, gradients, optimizer by ZeRO stage: Rajbhandari et al. 2020, arXiv:1910.02054,
// section 3. Activations: Korthikanti et al. 2022, arXiv:2205.05198, section 4, then operator by
// operator from what is saved (workload/pass/block.h). Micro-batches in flight:
// plan/schedule/schedule.h.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"
#include "workload/pass/block.h"
#include "workload/step/program.h"

typedef struct {
    double weights_bytes;
    double frozen_bytes; // of them, those that are not trained
    double gradients_bytes;
    double optimizer_bytes;
    double activations_bytes; // at the peak; with what is on its way between chunks, and what is
                              // whole of the block that runs, where ZeRO gathers nothing ahead
    double buffers_bytes;     // gathered weights, gradient placeholders, workspaces; messages
                              // of passes over a spread vocabulary
    double peak_bytes;        // sum of the above: live tensors
    double reserved_bytes;    // with the allocator's slack, as far as there is room for it
    double device_bytes;      // with context and communication libraries
    double cached_bytes;      // the same with room for all the slack
    double needs_bytes;       // what there has to be for it to run, as likely as not
    double spread;            // scale of the log of the above (costmodel/memory/memory_interval.h)
    double counted_bytes;     // what there has to be for it to fit as surely as the scenario asks
                              // (fit_deviates): of a plan that fits at most what is available
} RankMemory;

// What rank `rank` holds at its peak, in closed form: microseconds, no Program needed.
RankMemory memory_closed_form(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              int rank);

// What rank `rank` holds at its peak, by running its instructions and adding what each keeps and
// gives back.
RankMemory memory_running_sum(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              const Program *program, int rank);

// Whether every rank of a plan misses.
//   activations_bytes  of memory_activations
bool memory_all_miss(const Scenario *scenario, const Plan *plan, const Workload *workload,
                     const double *activations_bytes);

// Weights, gradients where they are kept throughout the step, and optimizer of all ranks of a
// pipeline together: the same however layers are split over them.
double memory_states_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload);

// What of an account is held throughout the step, at least: neither activations nor, where the
// stack lets go of them, gradients.
double memory_lasting_bytes(const Scenario *scenario, const RankMemory *account);

// What there has to be for that alone, as RankMemory.counted_bytes.
double memory_lasting_counted_bytes(const Scenario *scenario, const Plan *plan,
                                    const RankMemory *account);

// Of a rank's GPUs, for one process.
double rank_memory_available_bytes(const Scenario *scenario, const Plan *plan, int rank);

// The account of the rank that needs most of what it has.
RankMemory memory_worst_rank(const Scenario *scenario, const Plan *plan, const Workload *workload,
                             int *rank);

// That account in two steps. First activations at the peak of each rank, [pp]: plans share them
// that differ in nothing but ZeRO stage below 2 and, there, zero_group. A rank that holds no more
// than the one before it, and so is not the worst, has MEMORY_NO_MORE. Then the accounts of which
// activations are part.
static const double MEMORY_NO_MORE = -1;
const double *memory_activations(const Scenario *scenario, const Plan *plan,
                                 const Workload *workload, Arena *arena);
RankMemory memory_worst_of(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           const double *activations_bytes, int *rank);
