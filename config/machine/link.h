// config/machine/link.h - what one kind of link does for messages: hw-profiles/links/NAME.json,
// checked.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

enum { LINK_MAX_MEASURED = 8, LINK_MAX_PROTOCOLS = 4, LINK_MAX_MESH = 8 };

// One way to send over a network: small messages want low latency, large ones all the bandwidth.
typedef struct {
    const char *name;
    double ring_hop_latency_s;        // between domains, per step of a ring
    double ring_inside_hop_latency_s; // inside them
    double tree_hop_latency_s;        // between domains, per level of a tree
    double tree_inside_hop_latency_s; // inside them
    double bandwidth_frac;            // of what efficiency_frac leaves
} LinkProtocol;

// Constants of the alpha-beta model in costmodel/network/collective.h.
typedef struct {
    const char *name;
    const char *title;
    double bandwidth_bytes_per_s; // nominal, per GPU, one direction; for rdma: of the NIC in use
    bool switched;                // any pair has the full bandwidth at the same time
    bool in_switch_reduction;     // all-reduce in the switch (NVLS)
    double latency_s;             // base cost of one collective call
    double hop_latency_s;         // per step of a ring
    double chain_hop_latency_s;   // per rank of a broadcast's chain, which waits for whole chunks
    double efficiency_frac;       // achieved bus bandwidth over nominal, large messages
    double half_bytes;            // wire bytes per rank at which half of that is reached; the rate
                                  // grows as 1 / (1 + sqrt(half_bytes / bytes))
    double p2p_latency_s;         // one send to one receive
    double p2p_efficiency_frac;   // achieved over nominal for one large message
    // Calibrated GPUs (hw-profiles/kernels) whose collectives were measured over this link, or over
    // a wider one of its kind; the first serves GPUs that are not among them.
    const char *measured_on[LINK_MAX_MEASURED];
    int num_measured_on;
    double measured_bandwidth_bytes_per_s; // nominal, of the link of that measurement
    bool has_curves; // the file holds measured collectives itself: its section `nccl`
    // Of a network: the fastest is taken. None: hop_latency_s of both links, all the bandwidth.
    LinkProtocol protocols[LINK_MAX_PROTOCOLS];
    int num_protocols;
    // Of domains of mesh_gpus GPUs without a switch: links between each two of them, the same both
    // ways, mesh_links_per_gpu of each GPU together. Any two have one between them, or a GPU before
    // them that has to both. mesh_gpus 0: there is none.
    int mesh_gpus, mesh_links_per_gpu;
    int mesh[LINK_MAX_MESH][LINK_MAX_MESH];
} Link;

// "nvlink", "xgmi", "pcie", "shm": what a link between GPUs is, of whatever generation; the name of
// a GPU's port in simulations. Unknown names (NULL too) count as the first.
extern const char *const LINK_FAMILY_NAMES[]; // ends with NULL
const char *link_family(const char *name);

// value: a name, or a path (relative to the file of value).
Status link_load(const JsonNode *value, Arena *arena, Link *out);
Status link_load_named(const char *name, Arena *arena, Link *out);
