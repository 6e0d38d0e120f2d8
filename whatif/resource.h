// whatif/resource.h - the same machine with more or less of one thing.
//
// Model:  everything the cost model reads of that thing is multiplied, and nothing else: the shares
//         of a peak that kernels and links achieve stay what they are, as do their powers, prices
//         and names.
//           compute    peak rates of all precisions, and the rate at which a product's main loop
//                      starts (its latency is in clock cycles)
//           memory     bandwidth of the GPU's memory
//           capacity   bytes of the GPU's memory
//           nvlink     bandwidth inside a scale-up domain, of whatever link it is
//           nic        bandwidth of the NICs, and of links between groups or measured nodes
//           latency    of both kinds of links, of kernels that carry tokens to experts, and between
//                      groups: of measured collectives the time of the smallest message
// Limits: host time and launches are the software's, not among these.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"

typedef enum {
    RESOURCE_COMPUTE,
    RESOURCE_MEMORY_BANDWIDTH,
    RESOURCE_MEMORY_SIZE,
    RESOURCE_NVLINK,
    RESOURCE_NIC,
    RESOURCE_LATENCY,
    NUM_RESOURCES
} Resource;

extern const char *const RESOURCE_NAMES[NUM_RESOURCES + 1];  // of JSON; ends with NULL
extern const char *const RESOURCE_TITLES[NUM_RESOURCES + 1]; // for people

// Whether more of it is better; of latency less is.
bool resource_more_is_better(Resource resource);

// The scenario with that resource times factor (> 0). The copy points into the scenario, which
// must outlive it.
Scenario resource_scaled(const Scenario *scenario, Resource resource, double factor, Arena *arena);
