// Which GPUs of a cluster's nodes a job runs on.
#include "config/cluster/cluster.h"

#include "config/cluster/node_order.h"

// nodes x each GPUs run ranks; a part of a node has its share of the NICs' number, at least one.
static Cluster nodes_use(const Cluster *cluster, int nodes, int each) {
    Cluster c = *cluster;
    c.num_gpus = nodes * each;
    c.num_nodes = nodes;
    if (each < c.gpus_per_node) {
        const int nics = c.nics_per_node * each / c.gpus_per_node;
        c.nics_per_node = nics > 0 ? nics : 1;
        if (c.domain_gpus <= c.gpus_per_node && c.domain_gpus > each) c.domain_gpus = each;
        c.gpus_per_node = each;
    }
    return c;
}

// Domains of several nodes hold as many GPUs each, where whole nodes allow it.
static int domain_share(const Cluster *c) {
    const int domain = c->domain_gpus, num_gpus = c->num_gpus;
    if (domain <= c->gpus_per_node || num_gpus <= domain || num_gpus % domain == 0) return domain;
    const int num_domains = (num_gpus - 1) / domain + 1, each = num_gpus / num_domains;
    return num_gpus % num_domains == 0 && each % c->gpus_per_node == 0 ? each : domain;
}

// A rack's hosts are trays of 4 GPUs (NVIDIA GB200 NVL72 datasheet: 18 trays, 72 GPUs), of which a
// job has all.
static bool trays_divide(const Cluster *whole, int each) {
    enum { MAX_GPUS_PER_HOST = 16, GPUS_PER_TRAY = 4 };
    return whole->gpus_per_node <= MAX_GPUS_PER_HOST || each % GPUS_PER_TRAY == 0;
}

// Whether the domains of a node are filled, or one of them in part.
static bool domains_divide(const Cluster *whole, int each) {
    return each % whole->domain_gpus == 0 || each <= whole->domain_gpus;
}

// What the node was before a part of it was taken.
static Cluster whole_of(const Cluster *cluster) {
    Cluster c = *cluster;
    if (c.whole_node_gpus == 0) return c;
    c.gpus_per_node = c.whole_node_gpus;
    c.nics_per_node = c.whole_node_nics;
    c.domain_gpus = c.whole_domain_gpus;
    return c;
}

// GPUs of each node with which num_gpus of `total` are run on; 0: none. The fewest nodes.
static int gpus_of_each(const Cluster *whole, int total, int num_gpus) {
    const int per_node = whole->gpus_per_node, num_nodes = (total - 1) / per_node + 1;
    if (num_gpus > total || num_gpus < 1) return 0;
    for (int each = per_node < num_gpus ? per_node : num_gpus; each > 0; each--) {
        if (num_gpus / each > num_nodes) return 0;
        if (num_gpus % each != 0) continue;
        // A part of one node may be all that there is, then of any size.
        if (num_nodes == 1 && num_gpus == total) return each;
        if (domains_divide(whole, each) && trays_divide(whole, each)) return each;
    }
    return 0;
}

static Cluster cluster_finish(Cluster c, int total) {
    c.idle_gpus = total - c.num_gpus;
    c.domain_gpus = domain_share(&c);
    if (c.num_gpus > 0 && c.domain_gpus > c.num_gpus) c.domain_gpus = c.num_gpus;
    if (c.domain_gpus > c.gpus_per_node && c.domain_gpus % c.gpus_per_node != 0)
        c.domain_gpus = c.gpus_per_node; // of a part of each node
    c.wires = c.wires_of ? c.wires_of[c.domain_gpus] : NULL;
    if (c.sites && c.num_nodes > c.sites->num_nodes) c.sites = NULL;
    if (c.order && c.num_nodes != c.order->num_nodes) c.order = NULL;
    return c;
}

Cluster cluster_with_gpus(const Cluster *cluster, int num_gpus) {
    const Cluster whole = whole_of(cluster);
    if (num_gpus <= 0) return cluster_finish(nodes_use(&whole, 0, whole.gpus_per_node), 0);
    int each = gpus_of_each(&whole, num_gpus, num_gpus);
    const int nodes = each ? num_gpus / each : num_gpus / whole.gpus_per_node;
    if (each == 0) each = whole.gpus_per_node;
    return cluster_finish(nodes_use(&whole, nodes, each), num_gpus);
}

int cluster_total_gpus(const Cluster *cluster) {
    return cluster->num_gpus + cluster->idle_gpus;
}

bool cluster_use(const Cluster *cluster, int num_gpus, Cluster *out) {
    const int total = cluster_total_gpus(cluster);
    *out = *cluster;
    if (num_gpus == cluster->num_gpus) return true;
    if (cluster->sites || cluster->groups) return false;
    const Cluster whole = whole_of(cluster);
    const int each = gpus_of_each(&whole, total, num_gpus);
    if (each == 0) return false;
    *out = cluster_finish(nodes_use(&whole, num_gpus / each, each), total);
    return true;
}
