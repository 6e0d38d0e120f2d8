#include "workload/pass/routing.h"

#include <math.h>

Routing ffn_routing(const FeedForward *ffn) {
    const bool limited = ffn->num_expert_groups > 0;
    return (Routing){ffn->num_experts, ffn->num_experts_per_tok,
                     limited ? ffn->num_expert_groups : 1,
                     limited ? ffn->expert_groups_per_tok : 1};
}

// That none of `chosen` out of `all` lies among `part` of them.
static double none_frac(double all, double part, int chosen) {
    double frac = 1;
    for (int i = 0; i < chosen; i++) frac *= fmax(0, (all - part - i) / (all - i));
    return frac;
}

static double num_choices(int all, int chosen) {
    double num = 1;
    for (int i = 0; i < chosen; i++) num *= (double)(all - i) / (i + 1);
    return num;
}

double routing_parts_reached(const Routing *r, int num_parts) {
    const double part = (double)r->num_experts / num_parts;
    const double group = (double)r->num_experts / r->num_groups;
    const double offered = group * r->groups_per_token;
    if (part < group) { // a group is chosen, and this part of it
        double chosen = (double)r->groups_per_token / r->num_groups;
        return num_parts * chosen * (1 - none_frac(offered, part, r->experts_per_token));
    }
    const int inside = (int)(part / group), outside = r->num_groups - inside;
    double missed = 0;
    for (int i = 0; i <= inside && i <= r->groups_per_token; i++) // i groups of this part
        if (r->groups_per_token - i <= outside)
            missed += num_choices(inside, i) * num_choices(outside, r->groups_per_token - i) *
                      none_frac(offered, i * group, r->experts_per_token);
    return num_parts * (1 - missed / num_choices(r->num_groups, r->groups_per_token));
}
