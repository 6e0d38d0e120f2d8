// costmodel/network/exchange.h - how long kernels such as DeepEP take to carry tokens to their
// experts.
//
// Model:  a token crosses to another domain once, to the GPU at the sender's place there, which
//         copies it to those of its neighbours that hold one of its experts. Combine is the way
//         back, adding up. Three things work at the same time, and the slowest counts, after a fill
//         where domains are crossed: the GPU's share of the NICs, its link, and the SMs that copy.
// Source: deepseek-ai/DeepEP, csrc/kernels/internode.cu and docs/legacy.md; docs/models.md,
//         section 4, for the fit.
// Limits: what runs beside it on the NICs is modelled in sim/ only.
#pragma once

#include "config/cluster/cluster.h"
#include "config/software/dispatcher.h"
#include "costmodel/network/pricing_context.h"
#include "workload/pass/operator.h"

typedef struct {
    const Dispatcher *kernels;
    Routing routing;
    Group group;
    bool combine;         // else dispatch
    double message_bytes; // of a rank's copies, one for each rank reached, itself included
} Exchange;

// Seconds; 0 in a group of one.
double exchange_s(Machines machines, const Exchange *exchange);

// Seconds of an OP_COLLECTIVE of any kind.
double op_collective_s(const PricingContext *context, const Op *op);

// What it takes of the network. While bytes move on the links between domains (inside one, on its
// links), SMs may copy for longer: latency_s + wire_s is at most time_s.
typedef struct {
    double time_s;
    double latency_s;
    double wire_s;   // at the share of the network that the price grants
    double inside_s; // of the links inside each domain, where several are crossed
} WireTime;

WireTime op_wire_time(const PricingContext *context, const Op *op);
