// sim/network_wires.h - links inside scale-up domains without one switch (config/machine/wires.h),
// as part of routes and by their names.
#pragma once

#include "sim/network.h"

// Number of the first link inside a domain; network_wires_end is the first behind all domains.
int network_wires_first(const Network *network);
int network_wires_end(const Network *network);

// What is left of one link for all its domain.
double network_wire_bytes_per_s(const Network *network, int link);

// Each adds links of a domain to links[] and returns how many. The first adds those from one GPU to
// another, without their ports. The other adds those from a GPU, by its port, to what a NIC of its
// node hangs on, or back. The latter is nothing where GPUs and NICs do not hang on the same
// switches: a NIC hangs on that of the first of its GPUs.
int network_wires_between(const Network *network, int from_gpu, int to_gpu, int links[]);
int network_wires_to_nic(const Network *network, int gpu, int nic, bool back, int links[]);

// "nvlink:0-nvlink:3": from one GPU to another; "switch:2.1 up": of node 2;
// "socket:2.0-socket:2.1".
//   first_gpu, first_node  of the network in the whole
const char *network_wire_name(const Network *network, int link, int first_gpu, int first_node,
                              Arena *arena);
