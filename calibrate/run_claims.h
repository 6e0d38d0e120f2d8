// calibrate/run_claims.h - what a training log says of the run beside its steps: its sizes.
//
// Format: Megatron-LM begins with a sentence of sizes and a list of its arguments,
//    using world size: 16, data-parallel size: 2, ... tensor-model-parallel size: 4, ...
//      tensor_model_parallel_size ...................... 4
// (megatron/training/arguments.py: validate_args, _print_args). torchtitan says none of them in a
// form that lasts from version to version.
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"

typedef struct {
    const char *name; // "tensor-model-parallel size"
    const char *key;  // of the scenario: "parallel.tp"
    double said, expected;
} RunClaim;

// Whether a line states a size that is not that of the plan; then *out is the first one.
bool run_claim_differs(const char *line, const Scenario *scenario, const Plan *plan, RunClaim *out);
