// Routed experts as inference engines run them: one operator (ExpertsOp) between the exchanges.
#include "workload/pass/builder.h"
#include "workload/pass/expert_load.h"

#include <math.h>

static ExpertsOp experts_of(const Builder *b, const ExpertLoad *load) {
    const FeedForward *ffn = &b->kind->ffn;
    const Split *split = &b->split;
    return (ExpertsOp){
        .tokens = b->tokens_sp * split->ep * split->etp * load->imbalance,
        .hidden_size = b->model->hidden_size,
        .inter_size = (double)ffn->moe_intermediate_size / split->etp,
        .num_experts = ffn->num_experts,
        .experts_per_token = ffn->num_experts_per_tok,
        .num_ranks = split->ep,
        .gated = ffn->gated,
        .group_limited = ffn_routing(ffn).num_groups > 1,
        .fp8_recipe = b->execution->fp8_recipe,
    };
}

// Scores, rows out of order and back, the activation between the products.
static double pass_bytes(const Builder *b, const ExpertsOp *experts, double rows) {
    const double act = activation_bytes(b->execution), inputs = experts->gated ? 2 : 1;
    const double scores = b->tokens_sp * experts->num_experts * act;
    return scores +
           act * (4 * rows * experts->hidden_size + rows * experts->inter_size * (inputs + 1));
}

static void build_experts_operator(Builder *b, const ExpertLoad *load, double rows) {
    enum { KERNELS = 7 }; // top-k, order, two copies, two products, activation
    const FeedForward *ffn = &b->kind->ffn;
    const double act = activation_bytes(b->execution);
    ExpertsOp experts = experts_of(b, load);
    experts.pass_bytes = pass_bytes(b, &experts, rows);
    const double up = experts.inter_size * (ffn->gated ? 2 : 1), hidden = experts.hidden_size;
    const double held = (double)experts.num_experts / experts.num_ranks;
    const double weights = held * (up + experts.inter_size) * hidden;
    b->expert_parameters += weights;
    if (ffn->expert_bias) b->expert_parameters += held * (up + hidden);
    build_operator(b, (Op){.name = "experts",
                           .kind = OP_EXPERTS,
                           .stream = STREAM_COMPUTE,
                           .experts = experts,
                           .precision = b->precision,
                           .flops = 2 * rows * (up + experts.inter_size) * hidden,
                           .bytes = weights * weight_read_bytes(b->execution) + experts.pass_bytes,
                           .num_kernels = KERNELS,
                           .transient_bytes = rows * (hidden + up) * act});
}

void build_served_experts(Builder *b) {
    const Split *split = &b->split;
    const ExpertLoad load = expert_load(b);
    const double act = activation_bytes(b->execution), hidden = b->model->hidden_size;
    const double routed_bytes = load.routed * hidden * act;
    const double rows = load.routed * split->etp * load.imbalance;
    build_experts_exchange(b, &load, true, routed_bytes);
    if (split->etp > 1)
        build_collective(b, "etp_all_gather", STREAM_TP, COLLECTIVE_ALL_GATHER,
                         COLLECTIVE_REDUCE_SCATTER, GROUP_ETP, rows * hidden * act);
    build_experts_operator(b, &load, rows);
    if (split->etp > 1)
        build_collective(b, "etp_reduce_scatter", STREAM_TP, COLLECTIVE_REDUCE_SCATTER,
                         COLLECTIVE_ALL_GATHER, GROUP_ETP, rows * hidden * act);
    build_experts_exchange(b, &load, false, routed_bytes);
}
