// sim/sgx.h - SimGrid as a machine for timers and for flows that share links, in C.
//
// Model:  every flow gets its max-min fair share of each link it crosses; SimGrid's CM02 model
//         without TCP effects and latencies (which the caller pays by timers).
// Source: Velho, Schnorr, Casanova, Legrand, "On the validity of flow-level TCP network models for
//         grid and cloud simulations", ACM TOMACS 23(4), 2013.
// Limits: SimGrid lives once in a process, may abort it, and takes long to tidy up: run it in a
//         process of its own and leave that by sgx_exit().
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"

#include <stdint.h>

// Creates the links; those of no capacity are left out and no flow may cross them.
Status sgx_open(const double *link_bytes_per_s, int num_links);

// Called by the engine, at the simulated time of the event, with the id given below.
typedef struct {
    void (*timer_done)(void *context, int id);
    void (*flow_done)(void *context, int id);
    void *context;
} SgxEvents;

// Runs until nothing is under way. Also reports what went wrong in the calls below.
Status sgx_run(const SgxEvents *events);

// To be called before sgx_run or out of its events.
double sgx_now_s(void);
void sgx_start_timer(double date_s, int id); // after now

// The links that a flow crosses, each once and so many times more: then it counts as so many flows
// there, of its rate each.
typedef struct {
    const int *links;     // [num_links]
    const uint16_t *more; // [num_links]
    int num_links;
} SgxRoute;

void sgx_start_flow(const SgxRoute *route, double bytes, int id);
void sgx_set_link(int link, double bytes_per_s); // > 0; does nothing where it was left out

// Flushes the standard streams and leaves the process without SimGrid's own tidying up.
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
void sgx_exit(int code);

#ifdef __cplusplus
}
#endif
