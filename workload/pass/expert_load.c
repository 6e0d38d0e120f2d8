#include "workload/pass/expert_load.h"

#include "workload/technique/technique.h"

// Without a technique each copy of a token is sent by all-to-all. The splits of that and of the
// experts' products are numbers that the host passes.
ExpertLoad expert_load(const Builder *b) {
    const FeedForward *ffn = &b->kind->ffn;
    ExpertLoad load = {.routed = b->tokens_sp * ffn->num_experts_per_tok,
                       .imbalance = b->pass.moe_imbalance,
                       .dispatch = COLLECTIVE_ALL_TO_ALL,
                       .combine = COLLECTIVE_ALL_TO_ALL,
                       .carried_frac = 1,
                       .sorted_by_expert = ffn->num_experts > b->split.ep,
                       .host_awaits_counts = true};
    techniques_load(b, &load);
    return load;
}

void expert_load_once_per_rank(const Builder *b, ExpertLoad *load) {
    const Routing routing = ffn_routing(&b->kind->ffn);
    load->dispatch = COLLECTIVE_DISPATCH;
    load->combine = COLLECTIVE_COMBINE;
    load->carried_frac =
        routing_parts_reached(&routing, b->split.ep) / b->kind->ffn.num_experts_per_tok;
    load->sorted_by_expert = false;
}
