#include "workload/pass/split.h"

int plan_vocab_parts(const Plan *plan) {
    return plan->tp * (plan->vocab_barriers ? plan->pp : 1);
}

Split plan_split(const Plan *plan) {
    Split split = {
        .tp = plan->tp,
        .cp = plan->cp,
        .ep = plan->ep,
        .etp = plan->etp,
        .sequence_parallel = plan->sequence_parallel,
        .cp_method = plan->cp_method,
        .vocab_parts = plan_vocab_parts(plan),
        .zero_stage = plan->zero_stage,
        .scatters_gradients = plan_scatters_gradients(plan),
        .reshard_after_forward = plan->reshard_after_forward,
    };
    for (int kind = 0; kind < NUM_GROUPS; kind++)
        split.groups[kind] = plan_group(plan, (GroupKind)kind);
    return split;
}

int split_num_scattered(const Split *split) {
    return split->scatters_gradients ? split->groups[GROUP_ZERO].size : 1;
}

int plan_num_scattered(const Plan *plan) {
    return plan_scatters_gradients(plan) ? plan_group(plan, GROUP_ZERO).size : 1;
}
