// The MLP half of a layer: dense, or routed to experts.
#include "workload/pass/builder.h"
#include "workload/pass/expert_load.h"

#include <math.h>

// Activation (and gate) between two products; it keeps its input, and its output for the second.
static void build_activation(Builder *b, double tokens, double width) {
    const FeedForward *ffn = &b->kind->ffn;
    const Execution *execution = b->execution;
    bool fused = execution->stack.launch.fused_activation || execution->compile;
    double act = activation_bytes(execution), inputs = tokens * width * (ffn->gated ? 2 : 1);
    double outputs = tokens * width;
    // Unfused, activation and gate are kernels of their own, and the activation's result is kept.
    bool split = ffn->gated && !fused;
    double extra = split ? 2 * outputs * act : 0;
    MemoryWork work = {.name = ffn->gated ? "gated_activation" : "activation",
                       .bytes = (inputs + outputs) * act + extra,
                       .backward_bytes = (2 * inputs + outputs) * act + 2 * extra,
                       .kernels = split ? 2 : 1,
                       .backward_kernels = split ? 3 : 1,
                       .saved_bytes = inputs * act + outputs * b->input_bytes_per_value +
                                      (split ? outputs * act : 0),
                       .product_input_bytes = outputs * b->input_bytes_per_value,
                       .output_bytes = outputs * act,
                       .backward_alive_bytes = (inputs + outputs) * act};
    int module = b->module;
    if ((b->module & (MODULE_MOE | MODULE_SHARED_EXPERTS)) == MODULE_MOE)
        b->module |= MODULE_MOE_ACT;
    build_memory(b, &work);
    b->units[b->num_units - 1].kept_bytes = inputs * act;
    b->module = module;
}

void build_dense_mlp(Builder *b, double intermediate_size) {
    const Model *m = b->model;
    const FeedForward *ffn = &b->kind->ffn;
    double up = intermediate_size * (ffn->gated ? 2 : 1);
    build_linear(b, "fc1", SPLIT_COLUMN, b->tokens, up, m->hidden_size, 0);
    if (ffn->gated)
        build_parts(b, intermediate_size / b->split.tp, intermediate_size / b->split.tp, 0);
    build_activation(b, b->tokens, intermediate_size / b->split.tp);
    build_linear(b, "fc2", SPLIT_ROW, b->tokens, m->hidden_size, intermediate_size, 0);
    if (!ffn->bias) return;
    b->dense_parameters += up / b->split.tp;
    build_whole_parameters(b, m->hidden_size);
}

// One grouped product over this rank's experts.
static void build_grouped(Builder *b, const char *name, double experts, double tokens, double n,
                          double k, double saved) {
    const double dense = b->dense_parameters, partial = b->partial_parameters;
    build_linear(b, name, SPLIT_NONE, tokens, n, k, saved);
    b->dense_parameters = dense;
    b->partial_parameters = partial;
    b->expert_parameters += experts * n * k;
    Op *op = &b->units[b->num_units - 1].op;
    op->gemm.groups = experts;
    op->gemm.separate = experts > 1;
    op->gemm.m = tokens / experts;
    op->bytes += (experts - 1) * n * k * weight_read_bytes(b->execution);
    if (b->execution->stack.launch.host_expert_s == 0) return;
    op->num_kernels = (int)ceil(experts);
    if (precision_is_quantized(b->precision))
        b->units[b->num_units - 2].op.num_kernels = op->num_kernels;
}

// Between the etp ranks' gather and the experts: the rows of all of them, once more by expert; and
// back. Both orders are there meanwhile.
static void build_sort_by_expert(Builder *b, const char *name, double values) {
    double act = activation_bytes(b->execution), bytes = 2 * values * act;
    MemoryWork work = {.name = name,
                       .bytes = bytes,
                       .backward_bytes = bytes,
                       .kernels = 1,
                       .backward_kernels = 1,
                       .output_bytes = values * act};
    build_memory(b, &work);
    b->units[b->num_units - 1].op.transient_bytes += values * act;
}

// Moves every routed token's vector: out of order before the experts, back after them. What an
// all-to-all brings stands by the ranks that sent it and is sorted once more, by expert, here or,
// with etp, behind what gathers it
// (NVIDIA/Megatron-LM, megatron/core/transformer/moe/token_dispatcher.py, sort_chunks_by_idxs).
//   backward_alive_bytes  gradients it reads and makes
static void build_permutation(Builder *b, const ExpertLoad *load, const char *name, double values,
                              double backward_alive_bytes) {
    double act = activation_bytes(b->execution);
    const bool sorts = b->split.ep > 1 && b->split.etp == 1 && load->sorted_by_expert;
    double bytes = values * act * 2 * (1 + b->execution->stack.launch.moe_overhead_frac + sorts);
    MemoryWork work = {.name = name,
                       .bytes = bytes,
                       .backward_bytes = bytes,
                       .kernels = 2,
                       .backward_kernels = 2,
                       .output_bytes = values * act,
                       .backward_alive_bytes = backward_alive_bytes};
    build_memory(b, &work);
}

void build_experts_exchange(Builder *b, const ExpertLoad *load, bool dispatch,
                            double routed_bytes) {
    const Model *m = b->model;
    const int ep = b->split.ep;
    if (ep == 1) return;
    // The rank that receives most is waited for.
    double bytes = routed_bytes * load->imbalance * load->carried_frac;
    if (load->carries_all)
        bytes = b->tokens_sp * ep * m->hidden_size * activation_bytes(b->execution);
    const CollectiveKind kind = dispatch ? load->dispatch : load->combine,
                         backward = dispatch ? load->combine : load->dispatch;
    build_collective(b, dispatch ? "ep_dispatch" : "ep_combine", STREAM_EP, kind, backward,
                     GROUP_EP, bytes);
    Op *op = &b->units[b->num_units - 1].op;
    // Nobody keeps what is sent, copies in order or results of products.
    if (kind == COLLECTIVE_ALL_TO_ALL || kind == COLLECTIVE_COMBINE) op->transient_bytes += bytes;
    op->collective.routing = ffn_routing(&b->kind->ffn);
}

static void build_router(Builder *b) {
    const Model *m = b->model;
    const FeedForward *ffn = &b->kind->ffn;
    double act = activation_bytes(b->execution), tokens = b->tokens_sp;
    int precision = b->precision;
    b->precision = unquantized_precision(b->execution);
    build_linear(b, "router", SPLIT_NONE, tokens, ffn->num_experts, m->hidden_size, 0);
    b->precision = precision;
    b->units[b->num_units - 1].plain_gradient = true;
    if (ffn->router_bias) build_whole_parameters(b, ffn->num_experts);
    if (!b->pass.trains) return; // the rest is in the experts' operator
    double scores = tokens * ffn->num_experts;
    MemoryWork top = {.name = "router_top_k",
                      .bytes = scores * 16,
                      .backward_bytes = scores * 8,
                      .kernels = 8,
                      .backward_kernels = 4,
                      .saved_bytes = scores * 4,
                      .output_bytes = scores * act};
    build_memory(b, &top);
}

// Routed experts (Shazeer et al. 2017; GShard's all-to-all, arXiv:2006.16668, section 3).
static void build_experts(Builder *b) {
    const Model *m = b->model;
    const FeedForward *ffn = &b->kind->ffn;
    const Split *split = &b->split;
    const Execution *execution = b->execution;
    double act = activation_bytes(execution), hidden = m->hidden_size;
    const ExpertLoad load = expert_load(b);
    const double routed = load.routed;
    // The busiest rank receives more where the routing is skewed, less the more experts it holds.
    double experts = (double)ffn->num_experts / split->ep;
    double received = routed * split->etp * load.imbalance;
    double width = (double)ffn->moe_intermediate_size / split->etp;
    // The gradient of the tokens' results waits as the residual's.
    const double tokens_bytes = b->tokens_sp * hidden * act, routed_bytes = routed * hidden * act;
    build_permutation(b, &load, "permute", routed * hidden, routed_bytes + tokens_bytes);
    b->units[b->num_units - 1].op.awaited_by_host = load.host_awaits_counts;
    build_experts_exchange(b, &load, true, routed_bytes);
    if (split->etp > 1) {
        build_collective(b, "etp_all_gather", STREAM_TP, COLLECTIVE_ALL_GATHER,
                         COLLECTIVE_REDUCE_SCATTER, GROUP_ETP, received * hidden * act);
        if (load.sorted_by_expert) build_sort_by_expert(b, "sort_by_expert", received * hidden);
    }
    build_grouped(b, "experts_fc1", experts, received, width * (ffn->gated ? 2 : 1), hidden,
                  received * hidden * b->input_bytes_per_value);
    build_activation(b, received, width);
    build_grouped(b, "experts_fc2", experts, received, hidden, width, 0);
    if (ffn->expert_bias) b->expert_parameters += experts * (width * (ffn->gated ? 2 : 1) + hidden);
    if (split->etp > 1) {
        if (load.sorted_by_expert) build_sort_by_expert(b, "unsort_by_expert", received * hidden);
        build_collective(b, "etp_reduce_scatter", STREAM_TP, COLLECTIVE_REDUCE_SCATTER,
                         COLLECTIVE_ALL_GATHER, GROUP_ETP, received * hidden * act);
    }
    build_experts_exchange(b, &load, false, routed_bytes);
    build_permutation(b, &load, "unpermute", routed * hidden, routed_bytes);
    b->units[b->num_units - 1].op.transient_bytes += tokens_bytes; // the tokens' results
}

void build_moe(Builder *b) {
    const Model *m = b->model;
    const FeedForward *ffn = &b->kind->ffn;
    b->module = MODULE_MOE;
    build_router(b);
    if (b->pass.trains)
        build_experts(b);
    else
        build_served_experts(b);
    if (ffn->shared_intermediate_size > 0) {
        b->module = MODULE_MOE | MODULE_SHARED_EXPERTS;
        build_dense_mlp(b, ffn->shared_intermediate_size);
        if (ffn->shared_expert_gate) build_whole_parameters(b, m->hidden_size);
    }
    b->module = 0;
}

void build_mlp(Builder *b) {
    const Model *m = b->model;
    const FeedForward *ffn = &b->kind->ffn;
    double values = b->tokens_sp * m->hidden_size;
    if (ffn->none) return;
    // With a parallel residual its input is the layer's, which the first norm keeps.
    if (m->norms_per_layer > 1)
        build_norm(b, "pre_mlp_norm", values,
                   m->parallel_residual ? NORM_OUTPUT
                                        : NORM_INPUT | NORM_OUTPUT | NORM_BEGINS_BRANCH);
    if (kind_is_moe(b->kind)) {
        build_moe(b);
    } else {
        b->module = MODULE_MLP;
        build_dense_mlp(b, ffn->intermediate_size);
        b->module = 0;
    }
    if (m->norms_per_layer == 4) build_norm(b, "post_mlp_norm", values, NORM_INPUT);
    build_residual(b, values);
}

Block layer_build(const LayerWork *work, const LayerKind *kind, Arena *arena) {
    Builder b;
    builder_start(work, kind, arena, &b);
    build_mixer(&b);
    if (kind->cross) build_cross_attention(&b);
    b.mixer_parameters = b.dense_parameters;
    b.begins_model = kind->front;
    build_mlp(&b);
    build_whole_parameters(&b, model_kind_norm_parameters(work->model, kind));
    return builder_finish(&b, kind->front         ? "front_layer"
                              : kind_is_moe(kind) ? "moe_layer"
                                                  : "layer");
}
