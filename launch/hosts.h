// launch/hosts.h - the machines of a plan as a launcher sees them: operating systems and their
// GPUs.
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"

typedef struct {
    int gpus_per_host;
    int num_hosts;
    const NodeOrder *order; // the plan's placement of nodes; NULL: in their own order
} Hosts;

Hosts hosts_of(const Scenario *scenario, const Plan *plan);

// The place of a host among the ranks of the plan, and the host at a place.
int host_place(const Hosts *hosts, int host);
int host_at(const Hosts *hosts, int place);

// "0 1 2": the place of each host, or with at the host of each place.
const char *hosts_places(const Hosts *hosts, Arena *arena);
const char *hosts_at_places(const Hosts *hosts, Arena *arena);
