// config/software/dispatcher.h - kernels that carry tokens to their experts and back:
// hw-profiles/dispatchers/NAME.json, checked. Constants of costmodel/network/exchange.h.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

typedef struct {
    const char *name;
    const char *title;
    int num_sms;                   // they run on
    double sm_bytes_per_s;         // copies to ranks that one SM moves
    double sm_forward_bytes_per_s; // tokens that one SM hands on between domains: dispatch,
    double sm_reduce_bytes_per_s;  // and combine, where it adds the copies up
    double link_efficiency_frac;   // achieved over the nominal bandwidth of the scale-up link
    double nic_efficiency_frac;    // and of the NICs
    double latency_s;              // of one dispatch or combine
    double domain_latency_s;       // for each doubling of the domains
    double fill_s;                 // until the second of two links has something to carry
} Dispatcher;

Status dispatcher_load_named(const char *name, Arena *arena, Dispatcher *out);
