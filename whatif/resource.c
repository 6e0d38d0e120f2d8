#include "whatif/resource.h"

#include <math.h>
#include <string.h>

const char *const RESOURCE_NAMES[NUM_RESOURCES + 1] = {
    "compute",       "memory_bandwidth", "memory_size", "nvlink_bandwidth",
    "nic_bandwidth", "latency",          NULL};

const char *const RESOURCE_TITLES[NUM_RESOURCES + 1] = {
    "compute",       "memory bandwidth", "memory size", "NVLink bandwidth",
    "NIC bandwidth", "latency",          NULL};

bool resource_more_is_better(Resource resource) {
    return resource != RESOURCE_LATENCY;
}

// --- The GPU

static void rates_scale(Gpu *gpu, double factor) {
    for (int p = 0; p < NUM_PRECISIONS; p++) gpu->peak_flops_per_s[p] *= factor;
}

// A core of a CPU: its loops are arithmetic and memory at once, and count as memory.
static const CoreLaws *core_scaled(const CoreLaws *laws, Resource resource, double factor,
                                   Arena *arena) {
    if (!laws) return NULL;
    CoreLaws *copy = ARENA_ARRAY(arena, NUM_PRECISIONS, CoreLaws);
    memcpy(copy, laws, NUM_PRECISIONS * sizeof *copy);
    for (int p = 0; p < NUM_PRECISIONS; p++) {
        if (resource == RESOURCE_COMPUTE) {
            for (int i = 0; i < CORE_NUM_PRODUCTS; i++) copy[p].products[i].flops_per_s *= factor;
            for (int i = 0; i < 2; i++) copy[p].attention[i].flops_per_s *= factor;
        } else if (resource == RESOURCE_MEMORY_BANDWIDTH) {
            for (int i = 0; i < NUM_CORE_LOOPS; i++)
                for (int b = 0; b < 2; b++) copy[p].bytes_per_s[i][b] *= factor;
        }
    }
    return copy;
}

static void gpu_scale(Gpu *gpu, Resource resource, double factor, Arena *arena) {
    if (resource == RESOURCE_COMPUTE) rates_scale(gpu, factor);
    if (resource == RESOURCE_MEMORY_BANDWIDTH) gpu->memory_bandwidth_bytes_per_s *= factor;
    if (resource == RESOURCE_MEMORY_SIZE) {
        gpu->memory_bytes *= factor;
        gpu->memory_available_bytes *= factor;
    }
    gpu->core = core_scaled(gpu->core, resource, factor, arena);
}

// Products already priced are those of the machine as it is.
static const CalibratedKernels *kernels_scaled(const CalibratedKernels *kernels, Resource resource,
                                               double factor, Arena *arena) {
    if (!kernels) return NULL;
    CalibratedKernels *copy = ARENA_NEW(arena, CalibratedKernels);
    *copy = *kernels;
    copy->products = memo_new(arena);
    gpu_scale(&copy->gpu, resource, factor, arena);
    if (resource == RESOURCE_COMPUTE)
        for (int d = 0; d < NUM_GEMM_DTYPES; d++) copy->profile.gemm.dtypes[d].latency_s /= factor;
    return copy;
}

// --- Links

static const Wires *wires_scaled(const Wires *wires, double factor, Arena *arena) {
    if (!wires) return NULL;
    Wires *copy = ARENA_NEW(arena, Wires);
    *copy = *wires;
    double *bytes_per_s = ARENA_ARRAY(arena, wires->num_links, double);
    for (int i = 0; i < wires->num_links; i++) bytes_per_s[i] = wires->bytes_per_s[i] * factor;
    const int num_shapes = (wires->num_gpus + 1) * (wires->num_gpus + 1);
    WireShape *shapes = ARENA_ARRAY(arena, num_shapes, WireShape);
    for (int i = 0; i < num_shapes; i++) {
        shapes[i] = wires->shapes[i];
        shapes[i].rates.ring_bytes_per_s *= factor;
        shapes[i].rates.pairs_bytes_per_s *= factor;
    }
    copy->bytes_per_s = bytes_per_s;
    copy->shapes = shapes;
    copy->port_bytes_per_s *= factor;
    return copy;
}

static void nvlink_scale(Pool *pool, double factor, Arena *arena) {
    pool->scale_up.bandwidth_bytes_per_s *= factor;
    pool->wires = wires_scaled(pool->wires, factor, arena);
    if (!pool->wires_of) return;
    const Wires **wires_of = ARENA_ARRAY(arena, pool->whole_domain_gpus + 1, const Wires *);
    for (int i = 0; i <= pool->whole_domain_gpus; i++)
        wires_of[i] = wires_scaled(pool->wires_of[i], factor, arena);
    pool->wires_of = wires_of;
}

static const ClusterSites *sites_scaled(const ClusterSites *sites, double bandwidth_factor,
                                        double latency_factor, Arena *arena) {
    if (!sites) return NULL;
    ClusterSites *copy = ARENA_NEW(arena, ClusterSites);
    *copy = *sites;
    const int num_pairs = sites->num_sites * sites->num_sites;
    double *bytes_per_s = ARENA_ARRAY(arena, num_pairs, double);
    for (int i = 0; i < num_pairs; i++) bytes_per_s[i] = sites->bytes_per_s[i] * bandwidth_factor;
    copy->bytes_per_s = bytes_per_s;
    copy->latency_s *= latency_factor;
    return copy;
}

static void nic_scale(Pool *pool, double factor) {
    pool->nic_bytes_per_s *= factor;
    pool->scale_out.bandwidth_bytes_per_s *= factor;
}

static void link_latency_scale(Link *link, double factor) {
    double *const latencies[] = {&link->latency_s, &link->hop_latency_s, &link->chain_hop_latency_s,
                                 &link->p2p_latency_s};
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++) *latencies[i] *= factor;
    for (int i = 0; i < link->num_protocols; i++) {
        LinkProtocol *p = &link->protocols[i];
        p->ring_hop_latency_s *= factor;
        p->ring_inside_hop_latency_s *= factor;
        p->tree_hop_latency_s *= factor;
        p->tree_inside_hop_latency_s *= factor;
    }
}

static const NcclKernels *curves_scaled(const NcclKernels *curves, double factor, Arena *arena) {
    if (!curves) return NULL;
    NcclKernels *copy = ARENA_NEW(arena, NcclKernels);
    *copy = *curves;
    NcclCurve *scaled = ARENA_ARRAY(arena, curves->num_curves, NcclCurve);
    for (int i = 0; i < curves->num_curves; i++) {
        const NcclCurve *curve = &curves->curves[i];
        double least_s = INFINITY;
        for (int k = 0; k < curve->num_points; k++) least_s = fmin(least_s, curve->seconds[k]);
        double *seconds = ARENA_ARRAY(arena, curve->num_points, double);
        for (int k = 0; k < curve->num_points; k++)
            seconds[k] = curve->seconds[k] + (factor - 1) * least_s;
        scaled[i] = *curve;
        scaled[i].seconds = seconds;
    }
    copy->curves = scaled;
    return copy;
}

static void latency_scale(Pool *pool, double factor, Arena *arena) {
    link_latency_scale(&pool->scale_up, factor);
    link_latency_scale(&pool->scale_out, factor);
    pool->scale_up_curves = curves_scaled(pool->scale_up_curves, factor, arena);
}

// --- All

static void pool_scale(Pool *pool, Resource resource, double factor, Arena *arena) {
    gpu_scale(&pool->gpu, resource, factor, arena);
    pool->kernels = kernels_scaled(pool->kernels, resource, factor, arena);
    if (resource == RESOURCE_NVLINK) nvlink_scale(pool, factor, arena);
    if (resource == RESOURCE_NIC) nic_scale(pool, factor);
    if (resource == RESOURCE_LATENCY) latency_scale(pool, factor, arena);
}

static Cluster cluster_scaled(const Cluster *cluster, Resource resource, double factor,
                              Arena *arena) {
    Cluster copy = *cluster;
    Pool *pools = cluster_own_pools(&copy, arena);
    for (int i = 0; i < copy.num_pools; i++) pool_scale(&pools[i], resource, factor, arena);
    ClusterNetwork *network = &copy.network;
    if (resource == RESOURCE_NIC) network->sites = sites_scaled(network->sites, factor, 1, arena);
    if (resource == RESOURCE_LATENCY)
        network->sites = sites_scaled(network->sites, 1, factor, arena);
    return copy;
}

Scenario resource_scaled(const Scenario *scenario, Resource resource, double factor, Arena *arena) {
    Scenario copy = *scenario;
    copy.cluster = cluster_scaled(&scenario->cluster, resource, factor, arena);
    if (resource == RESOURCE_LATENCY) {
        copy.execution.dispatcher.latency_s *= factor;
        copy.execution.dispatcher.domain_latency_s *= factor;
    }
    return copy;
}
