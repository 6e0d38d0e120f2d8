#include "sim/network.h"

#include "config/cluster/leaves.h"
#include "sim/network_groups.h"
#include "sim/network_wires.h"

#include <assert.h>
#include <math.h>

// Ports that a spine switch has for leaves; see the header for the source.
enum { SPINE_PORTS = 64 };

static int min_int(int a, int b) {
    return a < b ? a : b;
}

static Leaves leaves_of(const Network *n) {
    return (Leaves){n->topology, n->gpus_per_node, n->nics_per_node, n->sites};
}

static bool has_rails(const Network *network) {
    const Leaves leaves = leaves_of(network);
    return leaves_on_rails(&leaves);
}

static int leaf_nodes(const Network *network) {
    const Leaves leaves = leaves_of(network);
    return leaves_num_nodes(&leaves);
}

static int rail_of_gpu(const Network *network, int gpu) {
    const Leaves leaves = leaves_of(network);
    return leaves_rail_of_gpu(&leaves, gpu);
}

static bool nic_works(const Network *network, int nic) {
    return !network->nic_taken_by || network->nic_taken_by[nic] == nic;
}

// The NIC that a GPU's traffic goes through, where rails meet in a spine.
static int nic_of_gpu(const Network *network, int gpu) {
    int nic = gpu / network->gpus_per_node * network->nics_per_node + rail_of_gpu(network, gpu);
    return network->nic_taken_by ? network->nic_taken_by[nic] : nic;
}

static bool has_leaves(const Network *network) {
    const Leaves leaves = leaves_of(network);
    return leaves_exist(&leaves);
}

// The same number for all where there are no leaves.
static int leaf_of_nic(const Network *network, int nic) {
    const Leaves leaves = leaves_of(network);
    return leaves_exist(&leaves) ? leaves_of_nic(&leaves, nic) : 0;
}

// Links are numbered in the order: ports out, ports in, wires of one domain after the other, NICs
// out, NICs in, leaves up, leaves down, between sites.
static int first_nic_link(const Network *network) {
    return network_wires_end(network);
}

static int first_leaf_link(const Network *network) {
    return first_nic_link(network) + 2 * network->num_nodes * network->nics_per_node;
}

static int first_site_link(const Network *network) {
    return first_leaf_link(network) + 2 * network->num_leaves;
}

static int site_of_nic(const Network *network, int nic) {
    return network->sites ? network->sites->site_of_node[nic / network->nics_per_node] : 0;
}

// Spines that join a set of leaves with num_uplinks each.
static int num_spines_of(int num_leaves, double num_uplinks) {
    if (num_leaves == 1) return 0;
    double needed = ceil(num_leaves * num_uplinks / SPINE_PORTS);
    return (int)fmax(1, fmin(needed, floor(num_uplinks)));
}

// Sets of leaves that have spines of their own.
static int num_planes(const Network *network) {
    return network->topology == TOPOLOGY_RAIL_ONLY ? network->nics_per_node : 1;
}

static double nics_per_leaf(const Network *network) {
    const Leaves leaves = leaves_of(network);
    return leaves_num_nics(&leaves);
}

// Leaves and spines of one group; of all where there are none.
static int site_leaves(const Network *network, int site) {
    if (!network->sites) return network->num_leaves;
    int num_blocks = (network->sites->num_nodes_of[site] - 1) / leaf_nodes(network) + 1;
    return has_rails(network) ? num_blocks * network->nics_per_node : num_blocks;
}

static int site_spines(const Network *network, int site) {
    if (network->topology == TOPOLOGY_DRAGONFLY) return 0;
    const int planes = num_planes(network);
    double num_uplinks = nics_per_leaf(network) / network->oversubscription;
    return planes * num_spines_of(site_leaves(network, site) / planes, num_uplinks);
}

static Network network_shape(const Cluster *cluster) {
    const Pool *pool = cluster_only_pool(cluster);
    int nics = min_int(pool->nics_per_node, pool->gpus_per_node);
    double node_bytes_per_s = pool->nics_per_node * pool->nic_bytes_per_s;
    Network network = {
        .topology = pool->topology,
        .oversubscription = pool->oversubscription,
        .num_gpus = cluster->num_gpus,
        .gpus_per_node = pool->gpus_per_node,
        .domain_gpus = pool->domain_gpus,
        .num_nodes = cluster->num_nodes,
        .nics_per_node = nics,
        .num_folded = 1,
        .sites = cluster->network.sites,
        .scale_up_bytes_per_s = pool->scale_up.bandwidth_bytes_per_s,
        .port_name = link_family(pool->scale_up.name),
        .wires = pool->wires,
        .nic_share_bytes_per_s = node_bytes_per_s / pool->gpus_per_node,
    };
    if (has_leaves(&network)) {
        const Leaves leaves = leaves_of(&network);
        int num_blocks = leaves_block_of_node(&leaves, cluster->num_nodes - 1) + 1;
        network.num_leaves = has_rails(&network) ? num_blocks * nics : num_blocks;
    }
    for (int site = 0, leaf = 0; leaf < network.num_leaves; leaf += site_leaves(&network, site++))
        network.num_spines += site_spines(&network, site);
    int num_sites = network.sites ? network.sites->num_sites : 0;
    network.num_links = first_site_link(&network) + num_sites * num_sites;
    return network;
}

// How many GPUs of a block use the NIC, the leaf and the site of its first.
typedef struct {
    int num_on_nic, num_on_leaf, num_on_site;
} BlockSharing;

static BlockSharing block_sharing(const Network *network, int first_gpu, int num_folded) {
    BlockSharing out = {0};
    int first_nic = nic_of_gpu(network, first_gpu);
    for (int gpu = first_gpu; gpu < first_gpu + num_folded; gpu++) {
        int nic = nic_of_gpu(network, gpu);
        out.num_on_nic += nic == first_nic;
        out.num_on_leaf += leaf_of_nic(network, nic) == leaf_of_nic(network, first_nic);
        out.num_on_site += site_of_nic(network, nic) == site_of_nic(network, first_nic);
    }
    return out;
}

const char *network_folds(const Cluster *cluster, int num_folded) {
    if (cluster->num_pools > 1) return groups_fold(cluster, num_folded);
    if (cluster->network.order && cluster_only_pool(cluster)->gpus_per_node % num_folded != 0)
        return "its ranks lie on nodes that the placement takes apart";
    Network network = network_shape(cluster);
    if (network.num_gpus % num_folded != 0) return "the GPUs do not divide into such blocks";
    if (network.wires) return "links inside its scale-up domain are uneven";
    if (network.domain_gpus % num_folded != 0 && num_folded % network.domain_gpus != 0) {
        return "its ranks lie across scale-up domains unevenly";
    }
    BlockSharing first = block_sharing(&network, 0, num_folded);
    for (int gpu = 0; gpu < network.num_gpus; gpu += num_folded) {
        BlockSharing block = block_sharing(&network, gpu, num_folded);
        if (block.num_on_site != num_folded) {
            return network.sites->kind == SITE_NODE
                       ? "its ranks lie on nodes between which the bandwidth_matrix differs"
                       : "its ranks lie in several groups";
        }
        if (block.num_on_nic != first.num_on_nic) return "its ranks share NICs unevenly";
        if (block.num_on_leaf != first.num_on_leaf) return "its ranks share leaf switches unevenly";
    }
    return NULL;
}

Network network_build(const Cluster *cluster, int num_folded, Arena *arena) {
    if (cluster->num_pools > 1) return groups_build(cluster, num_folded, arena);
    Network network = network_shape(cluster);
    BlockSharing first = block_sharing(&network, 0, num_folded);
    network.num_folded = num_folded;
    network.link_bytes_per_s = ARENA_ARRAY(arena, network.num_links, double);

    double nic_bytes_per_s =
        network.nic_share_bytes_per_s * network.gpus_per_node / network.nics_per_node;
    double leaf_bytes_per_s = nics_per_leaf(&network) * nic_bytes_per_s;
    for (int i = 0; i < network.num_links; i++) {
        double *capacity = &network.link_bytes_per_s[i];
        if (i < network_wires_first(&network)) {
            *capacity = network.scale_up_bytes_per_s;
        } else if (i < first_nic_link(&network)) {
            *capacity = network_wire_bytes_per_s(&network, i);
        } else if (i < first_leaf_link(&network)) {
            *capacity = nic_bytes_per_s / first.num_on_nic;
        } else if (i < first_site_link(&network)) {
            *capacity = leaf_bytes_per_s / network.oversubscription / first.num_on_leaf;
        } else {
            *capacity =
                network.sites->bytes_per_s[i - first_site_link(&network)] / first.num_on_site;
        }
    }
    return network;
}

bool network_share_domain(const Network *network, int gpu_a, int gpu_b) {
    if (network->groups) return groups_share_domain(network, gpu_a, gpu_b);
    return gpu_a / network->domain_gpus == gpu_b / network->domain_gpus;
}

// Without a spine between rails: the rail of to_gpu, or the next that works in both nodes.
static int rail_between(const Network *network, int from_gpu, int to_gpu) {
    int from_node = from_gpu / network->gpus_per_node, to_node = to_gpu / network->gpus_per_node;
    int rail = rail_of_gpu(network, to_gpu);
    for (int i = 0; i < network->nics_per_node; i++) {
        if (nic_works(network, from_node * network->nics_per_node + rail) &&
            nic_works(network, to_node * network->nics_per_node + rail))
            break;
        rail = (rail + 1) % network->nics_per_node;
    }
    return rail;
}

// The GPU beside from_gpu, in its node, that hangs on a rail: from_gpu itself where it does, else
// the one at the place of to_gpu where that one does, else the first.
static int rail_proxy(const Network *network, int from_gpu, int to_gpu, int rail) {
    if (rail_of_gpu(network, from_gpu) == rail) return from_gpu;
    int first_gpu = from_gpu / network->gpus_per_node * network->gpus_per_node;
    if (rail_of_gpu(network, to_gpu) == rail) return first_gpu + to_gpu % network->gpus_per_node;
    int nics = network->nics_per_node;
    return first_gpu + (rail * network->gpus_per_node + nics - 1) / nics;
}

static int port_to_port(const Network *network, int from_gpu, int to_gpu, int links[]) {
    int n = 0;
    links[n++] = from_gpu;
    n += network_wires_between(network, from_gpu, to_gpu, links + n);
    links[n++] = network->num_gpus + to_gpu;
    return n;
}

static int nic_to_nic(const Network *network, int from_nic, int to_nic, int links[]) {
    int nics = first_nic_link(network), num_nics = network->num_nodes * network->nics_per_node;
    int leaves = first_leaf_link(network), n = 0;
    int from_leaf = leaf_of_nic(network, from_nic), to_leaf = leaf_of_nic(network, to_nic);
    int from_site = site_of_nic(network, from_nic), to_site = site_of_nic(network, to_nic);
    links[n++] = nics + from_nic;
    if (from_leaf != to_leaf) links[n++] = leaves + from_leaf;
    if (from_site != to_site) {
        links[n++] = first_site_link(network) + from_site * network->sites->num_sites + to_site;
    }
    if (from_leaf != to_leaf) links[n++] = leaves + network->num_leaves + to_leaf;
    links[n++] = nics + num_nics + to_nic;
    return n;
}

static int whole_route(const Network *network, int from_gpu, int to_gpu, int links[]) {
    if (network_share_domain(network, from_gpu, to_gpu)) {
        return port_to_port(network, from_gpu, to_gpu, links);
    }
    if (network->topology != TOPOLOGY_RAIL_ONLY) {
        const int from_nic = nic_of_gpu(network, from_gpu), to_nic = nic_of_gpu(network, to_gpu);
        int n = network_wires_to_nic(network, from_gpu, from_nic, false, links);
        n += nic_to_nic(network, from_nic, to_nic, links + n);
        return n + network_wires_to_nic(network, to_gpu, to_nic, true, links + n);
    }
    int rail = rail_between(network, from_gpu, to_gpu), n = 0;
    int proxy = rail_proxy(network, from_gpu, to_gpu, rail);
    if (proxy != from_gpu) n = port_to_port(network, from_gpu, proxy, links);
    int from_node = from_gpu / network->gpus_per_node, to_node = to_gpu / network->gpus_per_node;
    return n + nic_to_nic(network, from_node * network->nics_per_node + rail,
                          to_node * network->nics_per_node + rail, links + n);
}

int network_route(const Network *network, int from_gpu, int to_gpu, int links[MAX_HOPS]) {
    assert(from_gpu != to_gpu);
    if (network->groups) return groups_route(network, from_gpu, to_gpu, links);
    const int num_links = whole_route(network, from_gpu, to_gpu, links);
    if (!network->stand_in) return num_links;
    int num = 0;
    for (int i = 0; i < num_links; i++) {
        const int link = network->stand_in[links[i]];
        if (link != LINK_LEFT_OUT && network_num_crossings(network, from_gpu, link) > 0)
            links[num++] = link;
    }
    return num;
}

int network_num_crossings(const Network *network, int from_gpu, int link) {
    if (!network->link_unit) return 1;
    return (int)lround(network->num_alike[from_gpu] * network->link_unit[link]);
}

int network_way_out(const Network *network, int gpu, int links[]) {
    int nic = nic_of_gpu(network, gpu), n = network_wires_to_nic(network, gpu, nic, false, links);
    links[n++] = first_nic_link(network) + nic;
    links[n++] = first_leaf_link(network) + leaf_of_nic(network, nic);
    return n;
}

int network_way_in(const Network *network, int gpu, int links[]) {
    int nic = nic_of_gpu(network, gpu);
    links[0] = first_leaf_link(network) + network->num_leaves + leaf_of_nic(network, nic);
    links[1] = first_nic_link(network) + network->num_nodes * network->nics_per_node + nic;
    return 2 + network_wires_to_nic(network, gpu, nic, true, links + 2);
}

double network_share_bytes_per_s(const Network *network, int from_gpu, int to_gpu) {
    if (network->groups) return groups_share_bytes_per_s(network, from_gpu, to_gpu);
    if (network_share_domain(network, from_gpu, to_gpu)) return network->scale_up_bytes_per_s;
    return network->nic_share_bytes_per_s;
}

SpineSet network_spine_set(const Network *network, int spine) {
    if (network->groups) return groups_spine_set(network, spine);
    int site = 0, first_spine = 0, first_leaf = 0;
    while (spine >= first_spine + site_spines(network, site)) {
        first_spine += site_spines(network, site);
        first_leaf += site_leaves(network, site++);
    }
    const int planes = num_planes(network), num_spines = site_spines(network, site) / planes;
    const int plane = (spine - first_spine) / num_spines;
    return (SpineSet){.first_spine = first_spine + plane * num_spines,
                      .num_spines = num_spines,
                      .first_leaf = first_leaf + plane,
                      .stride = planes,
                      .num_leaves = site_leaves(network, site) / planes};
}

int network_leaf_site(const Network *network, int leaf) {
    if (network->groups) return groups_leaf_site(network, leaf);
    int site = 0;
    for (int end = site_leaves(network, 0); leaf >= end; end += site_leaves(network, site)) site++;
    return site;
}

int network_site_link(const Network *network, int from_site, int to_site) {
    const int num_sites = network->sites->num_sites;
    return network->num_links - num_sites * num_sites + from_site * num_sites + to_site;
}

void network_gpu_links(const Network *network, int gpu, int links[GPU_LINKS]) {
    int nic = nic_of_gpu(network, gpu);
    links[0] = gpu;
    links[1] = network->num_gpus + gpu;
    links[2] = first_nic_link(network) + nic;
    links[3] = links[2] + network->num_nodes * network->nics_per_node;
    links[4] = first_leaf_link(network) + leaf_of_nic(network, nic);
    links[5] = links[4] + network->num_leaves;
}

void network_links_of(const Network *network, const LinkName *name, int links[2]) {
    if (network->groups) {
        groups_links_of(network, name, links);
        return;
    }
    int first = name->index, between = network->num_gpus;
    if (name->kind == LINK_NIC) {
        first = first_nic_link(network) + name->index * network->nics_per_node + name->nic;
        between = network->num_nodes * network->nics_per_node;
    } else if (name->kind == LINK_LEAF) {
        first = first_leaf_link(network) + name->index;
        between = network->num_leaves;
    }
    links[0] = first;
    links[1] = first + between;
}

bool network_name_of(const Network *network, int link, LinkName *name, int *way) {
    if (network->groups) return groups_name_of(network, link, name, way);
    int nics = first_nic_link(network), leaves = first_leaf_link(network);
    int num_nics = network->num_nodes * network->nics_per_node;
    if (link < network_wires_first(network)) {
        *name = (LinkName){LINK_NVLINK, link % network->num_gpus, 0};
        *way = link / network->num_gpus;
    } else if (link >= nics && link < leaves) {
        int nic = (link - nics) % num_nics;
        *name = (LinkName){LINK_NIC, nic / network->nics_per_node, nic % network->nics_per_node};
        *way = (link - nics) / num_nics;
    } else if (link >= leaves && link < first_site_link(network)) {
        *name = (LinkName){LINK_LEAF, (link - leaves) % network->num_leaves, 0};
        *way = (link - leaves) / network->num_leaves;
    } else {
        return false;
    }
    return true;
}

static bool is_wire(const Network *network, int link) {
    return link >= network_wires_first(network) && link < first_nic_link(network);
}

const char *network_link_name(const Network *network, int link, Arena *arena) {
    LinkName name;
    int way, own_link = link;
    const NetworkGroup *group = network->groups ? groups_find_link(network, &own_link) : NULL;
    if (group && is_wire(&group->network, own_link))
        return network_wire_name(&group->network, own_link, group->named_gpu, group->named_node,
                                 arena);
    if (!network->groups && is_wire(network, link))
        return network_wire_name(network, link, 0, 0, arena);
    if (!network_name_of(network, link, &name, &way)) {
        int num_sites = network->sites->num_sites;
        int pair = link - (network->num_links - num_sites * num_sites);
        const char *what = network->sites->kind == SITE_NODE ? "node" : "group";
        int from = pair / num_sites, to = pair % num_sites;
        if (network->groups) {
            from = network->groups[from].number;
            to = network->groups[to].number;
        }
        return arena_printf(arena, "%s:%d-%s:%d", what, from, what, to);
    }
    if (name.kind == LINK_NVLINK)
        return arena_printf(arena, "%s:%d %s",
                            group ? group->network.port_name : network->port_name, name.index,
                            way ? "in" : "out");
    if (name.kind == LINK_NIC)
        return arena_printf(arena, "nic:%d.%d %s", name.index, name.nic, way ? "in" : "out");
    return arena_printf(arena, "leaf:%d %s", name.index, way ? "down" : "up");
}
