// The experts: layers, routing, dispatch.
#include "launch/megatron.h"

#include <string.h>

// Layers with experts, as runs: "([0]*3+[1]*58)".
static const char *layer_pattern(const Model *model, Arena *arena) {
    const char *text = "";
    for (int first = 0; first < model->num_layers;) {
        bool moe = model->kinds[model->layer_kind[first]].moe;
        int next = first;
        while (next < model->num_layers && model->kinds[model->layer_kind[next]].moe == moe) next++;
        text = arena_printf(arena, "%s%s[%d]*%d", text, first ? "+" : "", moe, next - first);
        first = next;
    }
    return arena_printf(arena, "(%s)", text);
}

static bool key_is(const Scenario *scenario, const char *key, const char *value, Arena *arena) {
    const cJSON *item = megatron_model_key(scenario, key, arena);
    return cJSON_IsString(item) && strcmp(item->valuestring, value) == 0;
}

// How scores choose experts and weigh them.
static void score_flags(const Scenario *scenario, FlagList *flags) {
    Arena *arena = flags->arena;
    bool sigmoid = key_is(scenario, "scoring_func", "sigmoid", arena);
    bool biased = key_is(scenario, "topk_method", "noaux_tc", arena) ||
                  !megatron_model_key(scenario, "topk_method", arena);
    double scale = megatron_model_number(scenario, "routed_scaling_factor", arena, 1);
    bool plain = cJSON_IsFalse(megatron_model_key(scenario, "norm_topk_prob", arena));
    if (sigmoid) {
        flag_text(flags, "--moe-router-score-function", "sigmoid");
        if (biased) flag_switch(flags, "--moe-router-enable-expert-bias");
    }
    // After the selection, softmax makes the weights of the chosen experts add up to 1.
    if (plain || (sigmoid && scale != 1)) flag_switch(flags, "--moe-router-pre-softmax");
    if (scale != 1) flag_number(flags, "--moe-router-topk-scaling-factor", scale);
}

static void router_flags(const Scenario *scenario, FlagList *flags) {
    double groups = megatron_model_number(scenario, "n_group", flags->arena, 1);
    double chosen = megatron_model_number(scenario, "topk_group", flags->arena, groups);
    flag_int(flags, "--moe-router-topk", scenario->model.num_experts_per_tok);
    score_flags(scenario, flags);
    if (groups > 1) {
        flag_int(flags, "--moe-router-num-groups", (long long)groups);
        flag_int(flags, "--moe-router-group-topk", (long long)chosen);
    }
    flag_text(flags, "--moe-router-load-balancing-type", "aux_loss");
    flag_raw(flags, "--moe-aux-loss-coeff", "\"$MOE_AUX_LOSS_COEFF\"");
}

static Status dispatcher_flags(const Scenario *scenario, FlagList *flags) {
    switch (scenario->training.moe_dispatcher) {
    case DISPATCH_ALLTOALL:
        flag_text(flags, "--moe-token-dispatcher-type", "alltoall");
        break;
    case DISPATCH_ALLGATHER:
        flag_text(flags, "--moe-token-dispatcher-type", "allgather");
        break;
    case DISPATCH_DEEPEP:
        flag_text(flags, "--moe-token-dispatcher-type", "flex");
        flag_switch(flags, "--moe-enable-deepep");
        break;
    default:
        return megatron_refuse(scenario, "training.moe_dispatcher", "deepep",
                               "hybridep has no flag in this version");
    }
    if (scenario->training.capacity_factor > 0) {
        flag_number(flags, "--moe-expert-capacity-factor", scenario->training.capacity_factor);
        flag_switch(flags, "--moe-pad-expert-input-to-capacity");
    }
    return status_ok();
}

static Status overlap_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    if (!scenario->training.ep_overlap || plan->ep == 1) return status_ok();
    if (plan->pp > 1 && plan->vpp == 1)
        return megatron_refuse(
            scenario, "training.ep_overlap", "vpp 2 or more, or ep_overlap false",
            "overlapping expert messages with pp %d needs interleaving", plan->pp);
    if (plan->recompute == RECOMPUTE_FULL)
        return megatron_refuse(scenario, "training.ep_overlap", "recompute selective",
                               "expert messages do not overlap with full recomputation");
    flag_switch(flags, "--overlap-moe-expert-parallel-comm");
    return status_ok();
}

Status megatron_moe_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Model *model = &scenario->model;
    if (model->num_experts == 0) return status_ok();
    if (model->shared_expert_gate)
        return megatron_lacks(scenario, "a gate before the shared experts");
    if (plan->tp > 1 && !plan->sequence_parallel)
        return megatron_refuse(scenario, "parallel.sequence_parallel", "true",
                               "experts with tp %d need sequence parallelism", plan->tp);
    if (scenario->training.precision == PRECISION_FP16 && plan->ep > 1)
        return megatron_refuse(scenario, "training.precision", "bf16",
                               "expert parallelism is not possible in fp16");
    flag_int(flags, "--num-experts", model->num_experts);
    flag_int(flags, "--moe-ffn-hidden-size", model->moe_intermediate_size);
    bool all = true;
    for (int l = 0; l < model->num_layers; l++) all &= model->kinds[model->layer_kind[l]].moe;
    if (!all) flag_text(flags, "--moe-layer-freq", layer_pattern(model, flags->arena));
    if (model->shared_intermediate_size > 0)
        flag_int(flags, "--moe-shared-expert-intermediate-size", model->shared_intermediate_size);
    router_flags(scenario, flags);
    TRY(dispatcher_flags(scenario, flags));
    if (scenario->training.precision != PRECISION_FP16 &&
        scenario->training.precision != PRECISION_FP32) // grouped products need bf16
        flag_switch(flags, "--moe-grouped-gemm");
    flag_switch(flags, "--moe-permute-fusion");
    return overlap_flags(scenario, plan, flags);
}
