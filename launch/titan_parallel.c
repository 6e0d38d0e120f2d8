// Data, tensor, context and expert parallelism of torchtitan (parallel_dims.py).
#include "launch/titan.h"

static void sharding_keys(const Plan *plan, KeyList *keys) {
    int ranks = plan->dp * plan->cp, shard = plan->dp;
    if (ranks > 1 && plan->zero_stage == 0)
        shard = 1;
    else if (ranks > 1)
        shard = plan->zero_group / plan->cp;
    key_int(keys, "parallelism", "data_parallel_replicate_degree", plan->dp / shard);
    key_int(keys, "parallelism", "data_parallel_shard_degree", shard);
    key_text(keys, "parallelism", "fsdp_reshard_after_forward",
             plan->reshard_after_forward ? "always" : "never");
}

static void tensor_keys(const Execution *execution, const Plan *plan, KeyList *keys) {
    key_int(keys, "parallelism", "tensor_parallel_degree", plan->tp);
    if (plan->tp == 1) return;
    key_bool(keys, "parallelism", "disable_loss_parallel", false);
    key_bool(keys, "parallelism", "enable_async_tensor_parallel", execution->tp_comm_overlap);
}

static void context_keys(const Plan *plan, KeyList *keys) {
    key_int(keys, "parallelism", "context_parallel_degree", plan->cp);
    if (plan->cp == 1) return;
    key_text(keys, "parallelism", "context_parallel_rotate_method",
             plan->cp_method == CP_RING ? "alltoall" : "allgather");
}

// "dp2ep": experts split the ranks of FSDP, and tp inside each.
void titan_parallel_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    sharding_keys(plan, keys);
    tensor_keys(&scenario->execution, plan, keys);
    context_keys(plan, keys);
    if (model_is_moe(&scenario->model))
        key_int(keys, "parallelism", "expert_parallel_degree", plan->ep);
}
