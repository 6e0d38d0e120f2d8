// Which GPUs of a cluster's nodes a job runs on.
#include "config/cluster/cluster.h"

#include "config/cluster/node_order.h"

// nodes x each GPUs run ranks; a part of a node has its share of the NICs' number, at least one.
static Pool nodes_use(const Pool *pool, int nodes, int each) {
    Pool c = *pool;
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
static int domain_share(const Pool *c) {
    const int domain = c->domain_gpus, num_gpus = c->num_gpus;
    if (domain <= c->gpus_per_node || num_gpus <= domain || num_gpus % domain == 0) return domain;
    const int num_domains = (num_gpus - 1) / domain + 1, each = num_gpus / num_domains;
    return num_gpus % num_domains == 0 && each % c->gpus_per_node == 0 ? each : domain;
}

// A rack's hosts are trays of 4 GPUs (NVIDIA GB200 NVL72 datasheet: 18 trays, 72 GPUs), of which a
// job has all.
static bool trays_divide(const Pool *whole, int each) {
    enum { MAX_GPUS_PER_HOST = 16, GPUS_PER_TRAY = 4 };
    return whole->gpus_per_node <= MAX_GPUS_PER_HOST || each % GPUS_PER_TRAY == 0;
}

// Whether the domains of a node are filled, or one of them in part.
static bool domains_divide(const Pool *whole, int each) {
    return each % whole->domain_gpus == 0 || each <= whole->domain_gpus;
}

// What the node was before a part of it was taken.
static Pool whole_of(const Pool *pool) {
    Pool c = *pool;
    if (c.whole_node_gpus == 0) return c;
    c.gpus_per_node = c.whole_node_gpus;
    c.nics_per_node = c.whole_node_nics;
    c.domain_gpus = c.whole_domain_gpus;
    return c;
}

// GPUs of each node with which num_gpus of `total` are run on; 0: none. The fewest nodes.
static int gpus_of_each(const Pool *whole, int total, int num_gpus) {
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

static Pool pool_finish(Pool p, int total) {
    p.idle_gpus = total - p.num_gpus;
    p.domain_gpus = domain_share(&p);
    if (p.num_gpus > 0 && p.domain_gpus > p.num_gpus) p.domain_gpus = p.num_gpus;
    if (p.domain_gpus > p.gpus_per_node && p.domain_gpus % p.gpus_per_node != 0)
        p.domain_gpus = p.gpus_per_node; // of a part of each node
    p.wires = p.wires_of ? p.wires_of[p.domain_gpus] : NULL;
    return p;
}

Pool pool_with_gpus(const Pool *pool, int num_gpus) {
    const Pool whole = whole_of(pool);
    if (num_gpus <= 0) return pool_finish(nodes_use(&whole, 0, whole.gpus_per_node), 0);
    int each = gpus_of_each(&whole, num_gpus, num_gpus);
    const int nodes = each ? num_gpus / each : num_gpus / whole.gpus_per_node;
    if (each == 0) each = whole.gpus_per_node;
    return pool_finish(nodes_use(&whole, nodes, each), num_gpus);
}

bool pool_use(const Pool *pool, int num_gpus, Pool *out) {
    const int total = pool->num_gpus + pool->idle_gpus;
    const Pool whole = whole_of(pool);
    const int each = gpus_of_each(&whole, total, num_gpus);
    if (each == 0) return false;
    *out = pool_finish(nodes_use(&whole, num_gpus / each, each), total);
    return true;
}

// The same cluster with another pool.
static Cluster with_pool(const Cluster *cluster, const Pool *pool, Arena *arena) {
    Pool *own = ARENA_NEW(arena, Pool);
    *own = *pool;
    Cluster c = cluster_of_pools(cluster->name, own, 1, &cluster->network);
    ClusterNetwork *network = &c.network;
    if (network->sites && c.num_nodes > network->sites->num_nodes) network->sites = NULL;
    if (network->order && c.num_nodes != network->order->num_nodes) network->order = NULL;
    return c;
}

Cluster cluster_with_gpus(const Cluster *cluster, int num_gpus, Arena *arena) {
    const Pool pool = pool_with_gpus(cluster_only_pool(cluster), num_gpus);
    return with_pool(cluster, &pool, arena);
}

int cluster_total_gpus(const Cluster *cluster) {
    return cluster->num_gpus + cluster->idle_gpus;
}

bool cluster_can_use(const Cluster *cluster, int num_gpus) {
    Pool ignored;
    if (num_gpus == cluster->num_gpus) return true;
    return !cluster->network.sites && pool_use(cluster_only_pool(cluster), num_gpus, &ignored);
}

bool cluster_use(const Cluster *cluster, int num_gpus, Arena *arena, Cluster *out) {
    Pool pool;
    *out = *cluster;
    if (num_gpus == cluster->num_gpus) return true;
    if (cluster->network.sites) return false; // as of several pools
    if (!pool_use(cluster_only_pool(cluster), num_gpus, &pool)) return false;
    *out = with_pool(cluster, &pool, arena);
    return true;
}
