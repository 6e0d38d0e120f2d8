#include "runtime/rank_shape.h"

// As workload/pass/workload.c pads them.
static int64_t vocab_rows(const Model *m, int tp) {
    const int64_t multiple = 128 * (int64_t)tp;
    return tp == 1 ? m->vocab_size : (m->vocab_size + multiple - 1) / multiple * multiple / tp;
}

RankShape rank_shape(const Scenario *scenario, const Plan *plan) {
    enum { LOGITS_MULTIPLE = 64 }; // columns of a product that tensor cores like
    const Model *m = &scenario->model;
    const Mixer *mixer = model_mixer(m);
    const FeedForward *ffn = model_ffn(m);
    RankShape s = {.sequences = plan->micro_batch,
                   .seq_len = scenario->training.seq_len / plan->cp,
                   .hidden = m->hidden_size,
                   .heads = mixer->num_heads / plan->tp,
                   .kv_heads = mixer->num_kv_heads / plan->tp,
                   .head_dim = mixer->head_dim};
    s.tokens = s.sequences * s.seq_len;
    s.tokens_sp = plan->sequence_parallel ? s.tokens / plan->tp : s.tokens;
    s.attended = (int64_t)s.heads * s.head_dim;
    s.qkv = s.attended + 2 * (int64_t)s.kv_heads * s.head_dim;
    s.inner = ffn->intermediate_size / plan->tp;
    s.up = ffn->gated ? 2 * s.inner : s.inner;
    s.experts = ffn->num_experts / plan->ep;
    s.experts_per_token = ffn->num_experts_per_tok;
    s.expert_inner = ffn->moe_intermediate_size / plan->etp;
    s.shared_inner = ffn->shared_intermediate_size / plan->tp;
    s.expert_up = ffn->gated ? 2 * s.expert_inner : s.expert_inner;
    s.shared_up = ffn->gated ? 2 * s.shared_inner : s.shared_inner;
    s.routed = s.tokens_sp * s.experts_per_token;
    s.vocab_rows = vocab_rows(m, plan->tp);
    s.logits = (s.vocab_rows + LOGITS_MULTIPLE - 1) / LOGITS_MULTIPLE * LOGITS_MULTIPLE;
    return s;
}

bool rank_shares_table(const Scenario *scenario, const Plan *plan, int rank) {
    bool embedding = false, loss = false;
    for (int k = 0; k < plan->vpp; k++) {
        const PlanChunk *place = &plan->chunks[plan_rank_chunk(plan, rank, k)];
        embedding |= place->embedding;
        loss |= place->loss;
    }
    return scenario->model.tie_word_embeddings && embedding && loss;
}
