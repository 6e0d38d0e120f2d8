#include "workload/runtime_limits.h"

#include "plan/layer_plans.h"

#include <string.h>

static const char *unsupported_experts(const Model *m) {
    if (m->num_experts == 0) return NULL;
    if (m->num_expert_groups > 0) return "a choice of experts among some groups of them";
    if (m->shared_expert_gate) return "a gate of the shared experts";
    if (m->router_bias) return "a bias of the router";
    if (m->expert_bias) return "biases of the experts";
    return NULL;
}

static const char *unsupported_functions(const Model *m) {
    const ModelFunctions *f = &m->functions;
    if (f->activation == FUNCTION_OTHER) return "an activation but SiLU, GELU and ReLU";
    if (m->gated_mlp && f->activation == FUNCTION_RELU) return "a gate with ReLU";
    if (!m->gated_mlp && f->activation == FUNCTION_SILU) return "SiLU without a gate";
    if (m->position != POSITION_ROPE) return NULL;
    if (f->rotary_frac < 1) return "rotation of a part of each head";
    if (f->rope == ROPE_OTHER) return "a rope_scaling but linear and llama3";
    return NULL;
}

// A sentence about the model or NULL.
static const char *unsupported_model(const Model *m) {
    if (m->num_front_layers > 0) return "an encoder or a tower";
    if (m->attention == ATTENTION_MLA) return "multi-head latent attention";
    if (m->attention_sinks) return "attention sinks";
    if (m->norms_per_layer != 2) return "another number of norms a layer than 2";
    if (m->parallel_residual) return "a parallel residual";
    if (m->position == POSITION_ALIBI) return "ALiBi";
    if (m->embedding_norm) return "a norm of the embedding";
    if (m->lm_head_bias) return "a bias of the head";
    if (m->num_mtp_layers > 0) return "multi-token prediction";
    if (!m->final_norm) return "a model without a norm before its head";
    if (unsupported_functions(m)) return unsupported_functions(m);
    return unsupported_experts(m);
}

static const char *unsupported_training(const Training *t) {
    if (t->optimizer == OPTIMIZER_MUON) return "the optimizer muon";
    if (t->attention != ATTENTION_FLASH) return "unfused attention";
    if (t->overlap_grad_reduce || t->overlap_param_gather || t->tp_comm_overlap)
        return "overlap of collectives";
    if (t->optimizer_post_validation) return "a norm that is looked at after the optimizer";
    if (t->num_sequence_lengths > 0) return "sequences of several lengths";
    if (t->capacity_factor > 0) return "a capacity_factor (no token is dropped or padded)";
    if (t->moe_dispatcher != DISPATCH_ALLTOALL) return "another moe_dispatcher than alltoall";
    if (t->ep_overlap) return "overlap of the experts' all-to-all";
    return NULL;
}

static bool recomputes_selectively(const Plan *p) {
    if (!p->layer_recompute) return p->recompute == RECOMPUTE_SELECTIVE;
    for (int l = 0; l < plan_num_layers(p); l++)
        if (p->layer_recompute[l] == RECOMPUTE_SELECTIVE) return true;
    return false;
}

static const char *unsupported_plan(const Scenario *s, const Plan *p) {
    if (p->cp > 1 && p->cp_method == CP_ULYSSES && s->model.num_kv_heads % (p->tp * p->cp) != 0)
        return "a number of key-value heads that tp x cp does not divide, with cp_method ulysses";
    if (p->cp > 1024) return "context parallelism over more than 1024 ranks";
    if (p->ep > 1024 || p->etp > 1024) return "experts over more than 1024 ranks";
    if (p->cp > 1 && s->training.seq_len % (2 * p->cp) != 0)
        return "a seq_len that 2 cp does not divide";
    if (s->model.qk_norm && p->tp > 1 && !p->sequence_parallel)
        return "a norm of queries and keys with tp and without sequence_parallel";
    if (s->model.num_experts > 0 && p->tp > 1 && !p->sequence_parallel)
        return "experts with tp and without sequence_parallel";
    if (p->zero_stage == 3 && !p->reshard_after_forward)
        return "ZeRO-3 without reshard_after_forward";
    if (p->vocab_barriers) return "a vocabulary that is spread over the pipeline";
    if (p->tp > 1 && s->model.num_kv_heads < p->tp) return "fewer key-value heads than tp ranks";
    if (recomputes_selectively(p) && p->recompute_modules != MODULE_CORE_ATTN)
        return "selective recomputation of more than the core attention";
    return NULL;
}

static Status check_positions(const Scenario *s) {
    const Model *m = &s->model;
    if (m->position != POSITION_LEARNED || s->training.seq_len <= m->max_position_embeddings)
        return status_ok();
    return status_at(STATUS_INVALID, s->file, "training.seq_len",
                     "%lld; expected at most the %d learned positions of the model",
                     (long long)s->training.seq_len, m->max_position_embeddings);
}

Status runtime_supports(const Scenario *s, const Plan *plan) {
    if (strcmp(s->training.stack.name, "runtime") != 0)
        return status_at(STATUS_INVALID, s->file, "training.stack",
                         "meshwright-run executes plans of the stack \"runtime\", this one is of "
                         "\"%s\"",
                         s->training.stack.name);
    const char *what = unsupported_model(&s->model);
    if (what) return status_at(STATUS_INVALID, s->file, "model", "%s is not run yet", what);
    TRY(check_positions(s));
    what = unsupported_training(&s->training);
    if (what) return status_at(STATUS_INVALID, s->file, "training", "%s is not run yet", what);
    TRY(plan_refuse_layers(s, plan, "the bundled runtime"));
    what = unsupported_plan(s, plan);
    if (what) return status_at(STATUS_INVALID, s->file, "parallel", "%s: not run yet", what);
    const int64_t tokens = plan->micro_batch * s->training.seq_len / plan->cp;
    if (plan->sequence_parallel && tokens % plan->tp != 0)
        return status_at(STATUS_INVALID, s->file, "parallel.tp",
                         "%d does not divide the %lld tokens of a micro-batch", plan->tp,
                         (long long)tokens);
    return status_ok();
}
