#include "costmodel/exchange.h"

#include <math.h>

#include "costmodel/collective.h"
#include "costmodel/site_links.h"

double exchange_s(const Cluster *cluster, const Exchange *x) {
    if (x->group.size <= 1 || x->message_bytes <= 0) return 0;
    const Dispatcher *k = x->kernels;
    const GroupLayout layout = group_layout(cluster, x->group);
    const double domains = layout.num_domains, neighbours = layout.ranks_per_domain;
    const double copies = routing_parts_reached(&x->routing, layout.num_ranks);
    const double crossings =
        domains > 1 ? routing_parts_reached(&x->routing, layout.num_domains) : 0;
    const double slowdown = domains > 1 ? sites_slowdown(cluster, COLLECTIVE_ALL_TO_ALL, x->group,
                                                         layout.ranks_per_domain)
                                        : 1;
    const double once_bytes = x->message_bytes / copies;

    // Its own domain and its own place in a domain are as likely as any other.
    double nic_s = once_bytes * crossings * (domains - 1) / domains *
                   (cluster->oversubscription * slowdown) /
                   (layout.nic_bytes_per_s_per_gpu * k->nic_efficiency_frac);
    double link_s = x->message_bytes * (neighbours - 1) / neighbours /
                    (cluster->scale_up.bandwidth_bytes_per_s * k->link_efficiency_frac);
    double handed_on_s = once_bytes * crossings /
                         (x->combine ? k->sm_reduce_bytes_per_s : k->sm_forward_bytes_per_s);
    double copy_s = (x->message_bytes / k->sm_bytes_per_s + handed_on_s) / k->num_sms;
    double inside_s = fmax(link_s, copy_s);
    double fill_s = fmin(k->fill_s, fmin(inside_s, nic_s));
    double sites_s = sites_latency_s(cluster, COLLECTIVE_ALL_TO_ALL, x->group);
    return sites_s + k->latency_s + k->domain_latency_s * log2(domains) + fmax(inside_s, nic_s) +
           fill_s;
}

double op_collective_s(const Scenario *scenario, const Plan *plan, const Op *op) {
    const Group group = plan_group(plan, op->group);
    if (op->collective != COLLECTIVE_DISPATCH && op->collective != COLLECTIVE_COMBINE)
        return collective_s(&scenario->cluster, op->collective, group, op->message_bytes);
    const Exchange exchange = {
        .kernels = &scenario->training.dispatcher,
        .routing = op->routing,
        .group = group,
        .combine = op->collective == COLLECTIVE_COMBINE,
        .message_bytes = op->message_bytes,
    };
    return exchange_s(&scenario->cluster, &exchange);
}
