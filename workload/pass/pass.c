#include "workload/pass/pass.h"

#include <math.h>

Pass text_pass(const Scenario *scenario, const Plan *plan) {
    const TrainingJob *job = &scenario->training;
    return (Pass){
        .sequences = plan->micro_batch,
        .queries = (double)job->seq_len,
        .keys = (double)job->seq_len,
        .encoded = (double)job->encoder_seq_len,
        .causal = job->causal,
        .trains = true,
        .recompute = plan->recompute,
        .recompute_modules = plan->recompute_modules,
        .moe_imbalance = job->moe_imbalance,
        .capacity_factor = job->capacity_factor,
    };
}

double pass_average_keys(const Pass *pass, double window) {
    const double keys = pass->keys, queries = pass->queries;
    if (!pass->causal) return window > 0 ? fmin(window, keys) : keys;
    // The first query sees those before it and itself, the last one all.
    if (window <= 0 || window >= keys) return keys - (queries - 1) / 2;
    // In a continuum of queries: those that see less than a window are the first of the sequence.
    const double less = fmax(0, window - (keys - queries));
    return window - less * less / (2 * queries);
}
