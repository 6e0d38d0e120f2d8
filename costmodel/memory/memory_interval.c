#include "costmodel/memory/memory_interval.h"

#include "base/student.h"

#include <math.h>

static const double QUANTILE_90 = 1.5332062740589; // of Student's law, base/student.h

bool plan_is_covered(const Scenario *scenario, const Plan *plan) {
    return evidence_covers(scenario->evidence, plan_ingredients(plan));
}

Ingredients plan_ingredients(const Plan *plan) {
    return evidence_ingredients(plan->zero_stage, plan->tp, plan->pp, plan->cp, plan->ep);
}

double memory_spread(const Scenario *scenario, const Plan *plan) {
    const Evidence *evidence = scenario->evidence;
    if (!evidence) return 0;
    const double own =
        plan_is_covered(scenario, plan) ? evidence->memory_spread : evidence->other_memory_spread;
    const double slack = scenario->execution.stack.residency.allocator_slack_frac;
    return sqrt(own * own + slack * slack / 12);
}

double memory_uneven_bytes(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           int rank, const RankMemory *account) {
    const TrainingJob *training = &scenario->training;
    if (plan->ep == 1 || training->capacity_factor > 0 || training->moe_imbalance > 1) return 0;
    double saved = 0, received = 0, again = 0, layers = 0;
    for (int k = 0; k < plan_rank_chunks(plan); k++) {
        const int *num_blocks = workload->chunks[plan_rank_chunk(plan, rank, k)].num_blocks;
        for (int i = 0; i < workload->num_blocks; i++) {
            const Block *block = &workload->blocks[i];
            if (num_blocks[i] == 0) continue;
            saved += num_blocks[i] * block->saved_bytes;
            received += num_blocks[i] * block->received_bytes;
            again = fmax(again, block->received_again_bytes);
            if (block->expert_parameters > 0) layers += num_blocks[i];
        }
    }
    if (layers == 0) return 0;
    const double experts = (double)model_ffn(&scenario->model)->num_experts / plan->ep;
    const double more = EXPERT_VARIATION * sqrt(2 * log(plan->ep) / experts);
    const double kept = saved > 0 ? account->activations_bytes * received / saved : 0;
    return more * (kept / sqrt(layers) + again);
}

double memory_fit_probability(const RankMemory *account, double available_bytes) {
    const double room = log(available_bytes / account->needs_bytes);
    if (account->spread > 0) return student_probability(room / account->spread);
    return account->needs_bytes <= available_bytes;
}

// The account's device_bytes where everything is so many times as large.
static double device_bytes(const RankMemory *account, double factor, double available_bytes) {
    return fmax(account->needs_bytes * factor,
                fmin(account->cached_bytes * factor, available_bytes));
}

void memory_interval(const RankMemory *account, double available_bytes, double *low_bytes,
                     double *high_bytes) {
    const double factor = exp(QUANTILE_90 * account->spread);
    *low_bytes = device_bytes(account, 1 / factor, available_bytes);
    *high_bytes = device_bytes(account, factor, available_bytes);
}
