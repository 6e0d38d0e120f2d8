#include "costmodel/network/exchange.h"

#include <math.h>

#include "costmodel/network/collective.h"
#include "costmodel/network/leaf_links.h"
#include "costmodel/network/site_links.h"

static WireTime exchange_wire_time(Machines machines, const Exchange *x) {
    if (x->group.size <= 1 || x->message_bytes <= 0) return (WireTime){0};
    const Dispatcher *k = x->kernels;
    const GroupLayout layout = group_layout(machines.pool, x->group);
    const double domains = layout.num_domains, neighbours = layout.ranks_per_domain;
    const double copies = routing_parts_reached(&x->routing, layout.num_ranks);
    const double crossings =
        domains > 1 ? routing_parts_reached(&x->routing, layout.num_domains) : 0;
    const double slowdown =
        domains > 1 ? network_slowdown(machines, COLLECTIVE_ALL_TO_ALL, x->group,
                                       layout.ranks_per_domain, all_ranks(machines.pool))
                    : 1;
    const double once_bytes = x->message_bytes / copies;

    // Its own domain and its own place in a domain are as likely as any other.
    double nic_s = once_bytes * crossings * (domains - 1) / domains * slowdown /
                   (layout.nic_bytes_per_s_per_gpu * k->nic_efficiency_frac);
    double link_s = x->message_bytes * (neighbours - 1) / neighbours /
                    (machines.pool->scale_up.bandwidth_bytes_per_s * k->link_efficiency_frac);
    double handed_on_s = once_bytes * crossings /
                         (x->combine ? k->sm_reduce_bytes_per_s : k->sm_forward_bytes_per_s);
    double copy_s = (x->message_bytes / k->sm_bytes_per_s + handed_on_s) / k->num_sms;
    double inside_s = fmax(link_s, copy_s);
    double fill_s = fmin(k->fill_s, fmin(inside_s, nic_s));
    double sites_s =
        sites_latency_s(machines, COLLECTIVE_ALL_TO_ALL, x->group, all_ranks(machines.pool));
    double time_s = sites_s + k->latency_s + k->domain_latency_s * log2(domains) +
                    fmax(inside_s, nic_s) + fill_s;
    return (WireTime){
        .time_s = time_s,
        .latency_s = time_s - fmax(inside_s, nic_s),
        .wire_s = domains > 1 ? nic_s : link_s,
        .inside_s = domains > 1 ? link_s : 0,
    };
}

double exchange_s(Machines machines, const Exchange *exchange) {
    return exchange_wire_time(machines, exchange).time_s;
}

static bool is_exchange(const Op *op) {
    return op->collective.kind == COLLECTIVE_DISPATCH || op->collective.kind == COLLECTIVE_COMBINE;
}

static Exchange op_exchange(const PricingContext *context, const Op *op) {
    return (Exchange){
        .kernels = &context->execution->dispatcher,
        .routing = op->collective.routing,
        .group = context_group(context, op->collective.group),
        .combine = op->collective.kind == COLLECTIVE_COMBINE,
        .message_bytes = op->collective.message_bytes,
    };
}

double op_collective_s(const PricingContext *context, const Op *op) {
    if (!is_exchange(op))
        return collective_s(context->machines, op->collective.kind,
                            context_group(context, op->collective.group),
                            op->collective.message_bytes);
    const Exchange exchange = op_exchange(context, op);
    return exchange_s(context->machines, &exchange);
}

WireTime op_wire_time(const PricingContext *context, const Op *op) {
    if (is_exchange(op)) {
        const Exchange exchange = op_exchange(context, op);
        return exchange_wire_time(context->machines, &exchange);
    }
    // A message of one byte is latency.
    const Group group = context_group(context, op->collective.group);
    const double time_s = op_collective_s(context, op);
    const double latency_s =
        fmin(time_s, collective_s(context->machines, op->collective.kind, group, 1));
    const double inside_s = collective_inside_s(context->machines.pool, op->collective.kind, group,
                                                op->collective.message_bytes);
    return (WireTime){time_s, latency_s, time_s - latency_s, fmin(inside_s, time_s - latency_s)};
}
