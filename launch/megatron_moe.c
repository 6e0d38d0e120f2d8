// The experts: layers, routing, dispatch.
#include "launch/megatron.h"

#include <string.h>

static bool layer_is_moe(const Model *model, int layer) {
    return kind_is_moe(&model->kinds[model->layer_kind[layer]]);
}

// Layers with experts, as runs: "([0]*3+[1]*58)".
static const char *layer_pattern(const Model *model, Arena *arena) {
    const char *text = "";
    for (int first = 0; first < model->num_layers;) {
        bool moe = layer_is_moe(model, first);
        int next = first;
        while (next < model->num_layers && layer_is_moe(model, next) == moe) next++;
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
    const FeedForward *ffn = model_ffn(&scenario->model);
    // A bias of its own, beside linear layers without: of DeepSeek-V3's kind, whose files may leave
    // the names of its scores out.
    const bool biased = ffn->router_bias && !ffn->expert_bias;
    const bool stated = megatron_model_key(scenario, "scoring_func", arena) != NULL;
    const bool sigmoid = stated ? key_is(scenario, "scoring_func", "sigmoid", arena) : biased;
    double scale = megatron_model_number(scenario, "routed_scaling_factor", arena, 1);
    bool plain = cJSON_IsFalse(megatron_model_key(scenario, "norm_topk_prob", arena));
    if (sigmoid) {
        flag_text(flags, "--moe-router-score-function", "sigmoid");
        if (biased) flag_switch(flags, "--moe-router-enable-expert-bias");
    }
    // After the selection, softmax makes the weights of the chosen experts add up to 1.
    // Of one expert they would all be 1, which Megatron-LM refuses (TransformerConfig).
    const bool one = !sigmoid && ffn->num_experts_per_tok == 1;
    if (plain || one || (sigmoid && scale != 1)) flag_switch(flags, "--moe-router-pre-softmax");
    if (scale != 1) flag_number(flags, "--moe-router-topk-scaling-factor", scale);
}

static void router_flags(const Scenario *scenario, FlagList *flags) {
    double groups = megatron_model_number(scenario, "n_group", flags->arena, 1);
    double chosen = megatron_model_number(scenario, "topk_group", flags->arena, groups);
    flag_int(flags, "--moe-router-topk", model_ffn(&scenario->model)->num_experts_per_tok);
    score_flags(scenario, flags);
    if (groups > 1) {
        flag_int(flags, "--moe-router-num-groups", (long long)groups);
        flag_int(flags, "--moe-router-group-topk", (long long)chosen);
    }
    flag_text(flags, "--moe-router-load-balancing-type", "aux_loss");
    flag_raw(flags, "--moe-aux-loss-coeff", "\"$MOE_AUX_LOSS_COEFF\"");
}

static void dispatcher_flags(const Scenario *scenario, FlagList *flags) {
    const int dispatcher = scenario->execution.moe_dispatcher;
    const double capacity_factor = scenario->training.capacity_factor;
    const bool deepep = dispatcher == DISPATCH_DEEPEP;
    const bool gathers = dispatcher == DISPATCH_ALLGATHER;
    flag_text(flags, "--moe-token-dispatcher-type",
              deepep    ? "flex"
              : gathers ? "allgather"
                        : "alltoall");
    if (deepep) flag_switch(flags, "--moe-enable-deepep");
    if (capacity_factor > 0) {
        flag_number(flags, "--moe-expert-capacity-factor", capacity_factor);
        flag_switch(flags, "--moe-pad-expert-input-to-capacity");
    }
}

// Grouped products with a bias add it by themselves (megatron/core/transformer/moe/experts.py,
// TEGroupedMLP: "bias_dropout_fusion is not supported in TEGroupedMLP when add_bias_linear=True").
static void grouped_flags(const FeedForward *ffn, FlagList *flags) {
    flag_switch(flags, "--moe-grouped-gemm");
    if (ffn->expert_bias) flag_switch(flags, "--no-bias-dropout-fusion");
}

void megatron_moe_flags(const Scenario *scenario, const Plan *plan, FlagList *flags) {
    const Model *model = &scenario->model;
    const FeedForward *ffn = model_ffn(model);
    if (ffn->num_experts == 0) return;
    flag_int(flags, "--num-experts", ffn->num_experts);
    flag_int(flags, "--moe-ffn-hidden-size", ffn->moe_intermediate_size);
    bool all = true;
    for (int l = 0; l < model->num_layers; l++) all &= layer_is_moe(model, l);
    if (!all) flag_text(flags, "--moe-layer-freq", layer_pattern(model, flags->arena));
    if (ffn->shared_intermediate_size > 0)
        flag_int(flags, "--moe-shared-expert-intermediate-size", ffn->shared_intermediate_size);
    router_flags(scenario, flags);
    dispatcher_flags(scenario, flags);
    if (scenario->execution.precision != PRECISION_FP16 &&
        scenario->execution.precision != PRECISION_FP32) // grouped products need bf16
        grouped_flags(ffn, flags);
    flag_switch(flags, "--moe-permute-fusion");
    if (scenario->execution.ep_overlap && plan->ep > 1)
        flag_switch(flags, "--overlap-moe-expert-parallel-comm");
}
