// Data, tensor, context and expert parallelism of torchtitan (parallel_dims.py).
#include "launch/titan.h"

#include "plan/rank_place.h"

#include <string.h>

static Status sharding_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    int ranks = plan->dp * plan->cp, alone = plan->tp * plan->pp * plan->cp;
    int shard = plan->dp;
    if (ranks > 1 && plan->zero_stage == 0) {
        if (alone > 1) // train.py, apply_ddp: "DDP has not supported > 1D parallelism"
            return titan_refuse(scenario, "parallel.zero_stage", "3",
                                "unsharded weights beside tp %d, pp %d, cp %d are not possible",
                                plan->tp, plan->pp, plan->cp);
        shard = 1;
    } else if (ranks > 1 && plan->zero_stage == 1) {
        return titan_refuse(scenario, "parallel.zero_stage", "2 or 3",
                            "sharding the optimizer alone has no key");
    } else if (ranks > 1) {
        if (plan->zero_group % plan->cp != 0)
            return titan_refuse(scenario, "parallel.zero_group", "a multiple of cp",
                                "shards over %d ranks with cp %d have no key", plan->zero_group,
                                plan->cp);
        shard = plan->zero_group / plan->cp;
    }
    key_int(keys, "parallelism", "data_parallel_replicate_degree", plan->dp / shard);
    key_int(keys, "parallelism", "data_parallel_shard_degree", shard);
    // Stage 2 is what FSDP2 does where it keeps the gathered weights (torchtitan's docs/fsdp.md).
    bool reshards = plan->zero_stage != 2 && plan->reshard_after_forward;
    key_text(keys, "parallelism", "fsdp_reshard_after_forward", reshards ? "always" : "never");
    return status_ok();
}

static Status tensor_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    const Training *training = &scenario->training;
    key_int(keys, "parallelism", "tensor_parallel_degree", plan->tp);
    if (plan->tp == 1) return status_ok();
    if (!plan->sequence_parallel)
        return titan_refuse(scenario, "parallel.sequence_parallel", "true",
                            "tp %d without sequence parallelism has no key", plan->tp);
    if (training->tp_comm_overlap && !training->compile)
        return titan_refuse(scenario, "training.tp_comm_overlap", "compile true",
                            "tensor-parallel overlap works in compiled blocks only");
    key_bool(keys, "parallelism", "disable_loss_parallel", false);
    key_bool(keys, "parallelism", "enable_async_tensor_parallel", training->tp_comm_overlap);
    return status_ok();
}

static Status context_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    key_int(keys, "parallelism", "context_parallel_degree", plan->cp);
    if (plan->cp == 1) return status_ok();
    if (plan->cp_method == CP_ULYSSES)
        return titan_refuse(scenario, "parallel.cp_method", "ring or all-gather",
                            "ulysses has no key");
    key_text(keys, "parallelism", "context_parallel_rotate_method",
             plan->cp_method == CP_RING ? "alltoall" : "allgather");
    return status_ok();
}

// "dp2ep": experts split the ranks of FSDP, and tp inside each.
static Status expert_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    const Training *training = &scenario->training;
    if (scenario->model.num_experts == 0) return status_ok();
    if (training->moe_dispatcher != DISPATCH_ALLTOALL)
        return titan_refuse(scenario, "training.moe_dispatcher", "alltoall", "%s has no key",
                            MOE_DISPATCHER_NAMES[training->moe_dispatcher]);
    if (training->capacity_factor > 0)
        return titan_refuse(scenario, "training.capacity_factor", "none",
                            "a capacity of experts has no key");
    if (training->ep_overlap)
        return titan_refuse(scenario, "training.ep_overlap", "false",
                            "overlapping expert messages has no key");
    if (plan->etp != plan->tp)
        return titan_refuse(scenario, "parallel.etp", arena_printf(keys->arena, "%d", plan->tp),
                            "etp %d beside tp %d has no key", plan->etp, plan->tp);
    if (plan->ep > 1 && (plan->ep < plan->cp || plan->ep > plan->zero_group))
        return titan_refuse(scenario, "parallel.ep", "one from cp to zero_group",
                            "ep %d with cp %d and zero_group %d is not possible", plan->ep,
                            plan->cp, plan->zero_group);
    key_int(keys, "parallelism", "expert_parallel_degree", plan->ep);
    return status_ok();
}

Status titan_parallel_keys(const Scenario *scenario, const Plan *plan, KeyList *keys) {
    if (plan_stages_alternate(plan))
        return titan_refuse(scenario, "parallel.order", "tp-cp-ep-dp-pp", "order %s has no key",
                            PLAN_ORDER_NAMES[plan->order]);
    TRY(sharding_keys(scenario, plan, keys));
    TRY(tensor_keys(scenario, plan, keys));
    TRY(context_keys(scenario, plan, keys));
    return expert_keys(scenario, plan, keys);
}
