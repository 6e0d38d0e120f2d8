// workload/pass/pass.h - what one rank computes at once: so many tokens of so many sequences
// through layers, once. A micro-batch of a training, what an encoder or a tower reads, a chunk of a
// prompt and a step of decoding are all passes. The operators of a layer are built from a pass
// (workload/pass/builder.h), whatever job it belongs to.
#pragma once

#include "plan/plan.h"

#include <stdbool.h>

typedef struct {
    double sequences;
    double queries; // tokens of one sequence that are computed
    double keys;    // tokens of one sequence that attention may see, the queries the last of them:
                    // more than those are read from a KV cache
    double encoded; // tokens of an encoder that one sequence attends to across; 0: none
    bool causal;    // a query sees no key behind its own place
    bool trains;    // it is followed by its backward, and keeps what that reads
    Recompute recompute;   // what a pass that trains runs again
    int recompute_modules; // MODULE_* bits
    // How tokens are spread over experts
    double moe_imbalance;   // the busiest expert's tokens over the mean
    double capacity_factor; // tokens of an expert over the mean, dropped or padded; 0: as they come
} Pass;

// A micro-batch of the text, recomputed as the plan says.
Pass text_pass(const Scenario *scenario, const Plan *plan);

// Keys that a query sees on average, at most `window` (0: all). A causal query sees those before it
// and itself.
double pass_average_keys(const Pass *pass, double window);
