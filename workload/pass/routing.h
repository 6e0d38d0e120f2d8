// workload/pass/routing.h - to how many ranks, or domains of ranks, a token goes.
//
// Model:  a token's experts are a random choice, all different, among those of some groups of
//         experts, themselves a random choice (group-limited routing); without a limit there is
//         one group. The experts lie on the ranks evenly and in order.
// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv:2412.19437, section 2.1.2
// (node-limited
//         routing); hypergeometric distribution.
// Limits: real routers prefer groups with high scores; which experts a group offers then differs,
//         how many does not.
#pragma once

#include "config/model/model.h"

typedef struct {
    int num_experts, experts_per_token;
    int num_groups, groups_per_token; // 1 and 1: no limit
} Routing;

// Of layers with experts.
Routing ffn_routing(const FeedForward *ffn);

// Of num_parts equal parts of the experts, in how many a token's experts lie, on average.
double routing_parts_reached(const Routing *routing, int num_parts);
