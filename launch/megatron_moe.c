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

static void router_flags(const Scenario *scenario, FlagList *flags) {
    const struct {
        const char *key, *flag;
    } sizes[] = {{"n_group", "--moe-router-num-groups"}, {"topk_group", "--moe-router-group-topk"}};
    flag_int(flags, "--moe-router-topk", scenario->model.num_experts_per_tok);
    const cJSON *scores = megatron_model_key(scenario, "scoring_func", flags->arena);
    if (cJSON_IsString(scores) && strcmp(scores->valuestring, "sigmoid") == 0) {
        flag_text(flags, "--moe-router-score-function", "sigmoid");
        flag_switch(flags, "--moe-router-enable-expert-bias");
    }
    for (int i = 0; i < 2; i++) {
        const cJSON *item = megatron_model_key(scenario, sizes[i].key, flags->arena);
        if (cJSON_IsNumber(item) && item->valueint > 1)
            flag_int(flags, sizes[i].flag, item->valueint);
    }
    const cJSON *scale = megatron_model_key(scenario, "routed_scaling_factor", flags->arena);
    if (cJSON_IsNumber(scale) && scale->valuedouble != 1) {
        flag_switch(flags, "--moe-router-pre-softmax");
        flag_number(flags, "--moe-router-topk-scaling-factor", scale->valuedouble);
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
        return megatron_refuse(scenario, "model", "shared experts without a gate",
                               "a gate before the shared experts has no flag");
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
