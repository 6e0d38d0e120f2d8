#include "config/cluster/cluster.h"

#include "base/data_dir.h"
#include "config/cluster/cluster_groups.h"
#include "config/cluster/cluster_matrix.h"
#include "config/cluster/node_order.h"
#include "config/machine/profile.h"
#include "config/software/kernel_shelf.h"

#include <stdlib.h>
#include <string.h>

const char *const TOPOLOGY_NAMES[NUM_TOPOLOGIES + 1] = {"rail-fat-tree", "fat-tree", "rail-only",
                                                        "dragonfly", NULL};

enum { MAX_GPUS = 4 * 1024 * 1024, MAX_GPUS_PER_NODE = 4096 };

#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, false }

// The shape of a cluster, before the profiles that it names are loaded.
typedef struct {
    int num_gpus, gpus_per_node, domain_gpus, nics_per_node;
    PcieTree tree; // gpus_per_switch 0: none
    double nic_bytes_per_s, oversubscription, price_usd_per_gpu_hour, power_watts_per_gpu;
    int topology;
} Shape;

static const JsonField CLUSTER_FIELDS[] = {
    OTHER("gpu"),
    {"num_gpus", JSON_FIELD_INT, offsetof(Shape, num_gpus), 1, MAX_GPUS, NULL, false},
    {"gpus_per_node", JSON_FIELD_INT, offsetof(Shape, gpus_per_node), 1, MAX_GPUS_PER_NODE, NULL,
     false},
    OTHER("scale_up"),
    OTHER("scale_out"),
    {"price_usd_per_gpu_hour", JSON_FIELD_DOUBLE, offsetof(Shape, price_usd_per_gpu_hour), 0, 1e5,
     NULL, false},
    {"power_watts_per_gpu", JSON_FIELD_DOUBLE, offsetof(Shape, power_watts_per_gpu), 1, 1e5, NULL,
     false},
    OTHER("groups"),
    OTHER("between"),
    OTHER("bandwidth_matrix"),
    // of a preset's file
    OTHER("schema"),
    OTHER("name"),
    OTHER("title"),
    OTHER("sources"),
};
enum { NUM_CLUSTER_FIELDS = sizeof CLUSTER_FIELDS / sizeof *CLUSTER_FIELDS, NUM_PRESET_FIELDS = 4 };

static const JsonField SCALE_UP_FIELDS[] = {
    OTHER("link"),
    {"domain_gpus", JSON_FIELD_INT, offsetof(Shape, domain_gpus), 1, MAX_GPUS, NULL, false},
    {"gpus_per_switch", JSON_FIELD_INT, offsetof(Shape, tree.gpus_per_switch), 1, WIRES_MAX_GPUS,
     NULL, false},
    {"sockets", JSON_FIELD_INT, offsetof(Shape, tree.num_sockets), 1, 4, NULL, false},
    {"socket_bytes_per_s", JSON_FIELD_DOUBLE, offsetof(Shape, tree.socket_bytes_per_s), 1e6, 1e13,
     NULL, false},
};
enum { NUM_SCALE_UP_FIELDS = sizeof SCALE_UP_FIELDS / sizeof *SCALE_UP_FIELDS };

static const JsonField SCALE_OUT_FIELDS[] = {
    {"nics_per_node", JSON_FIELD_INT, offsetof(Shape, nics_per_node), 1, MAX_GPUS_PER_NODE, NULL,
     true},
    {"nic_bytes_per_s", JSON_FIELD_DOUBLE, offsetof(Shape, nic_bytes_per_s), 1e6, 1e13, NULL, true},
    {"topology", JSON_FIELD_NAME, offsetof(Shape, topology), 0, 0, TOPOLOGY_NAMES, false},
    {"oversubscription", JSON_FIELD_DOUBLE, offsetof(Shape, oversubscription), 1, 1000, NULL,
     false},
};

static Status pool_object(const JsonNode *root, bool preset, KernelShelf *shelf, Arena *arena,
                          Pool *out);

// What a cluster of groups says itself; the rest stands in each group.
static Status groups_check_keys(const JsonNode *root) {
    static const char *const OF_EACH[] = {"gpu",
                                          "gpus_per_node",
                                          "scale_up",
                                          "scale_out",
                                          "price_usd_per_gpu_hour",
                                          "power_watts_per_gpu",
                                          "bandwidth_matrix"};
    for (size_t i = 0; i < sizeof OF_EACH / sizeof *OF_EACH; i++) {
        JsonNode node = json_get(root, OF_EACH[i]);
        if (json_is_present(&node)) return json_error(&node, "belongs into each of the groups");
    }
    return status_ok();
}

static Status groups_read(const JsonNode *root, KernelShelf *shelf, Arena *arena, Cluster *out) {
    JsonNode groups = json_get(root, "groups");
    int n;
    TRY(json_expect_items(&groups, "groups", MAX_GROUPS, &n));
    TRY(groups_check_keys(root));
    Pool *pools = ARENA_ARRAY(arena, n, Pool);
    for (int i = 0; i < n; i++) {
        JsonNode group = json_at(&groups, i), nested = json_get(&group, "groups");
        JsonNode matrix = json_get(&group, "bandwidth_matrix");
        if (json_is_present(&nested)) return json_error(&nested, "groups cannot hold groups");
        if (json_is_present(&matrix))
            return json_error(&matrix, "of a group is legal, but not supported yet");
        TRY(pool_object(&group, false, shelf, arena, &pools[i]));
    }
    TRY(groups_join(root, pools, n, arena, out));
    if (out->num_gpus <= MAX_GPUS) return status_ok();
    return json_error(&groups, "%d GPUs together; expected at most %d", out->num_gpus, MAX_GPUS);
}

static Status shape_missing(const JsonNode *root, const char *key) {
    JsonNode node = json_get(root, key);
    return json_error(&node, "missing");
}

// Reads the nested objects into one shape, with the contract's defaults.
static Status shape_read(const JsonNode *root, bool preset, Arena *arena, Shape *shape) {
    JsonNode up = json_get(root, "scale_up"), out = json_get(root, "scale_out");
    size_t num_fields = NUM_CLUSTER_FIELDS - (preset ? 0 : NUM_PRESET_FIELDS);
    TRY(json_read_object(root, CLUSTER_FIELDS, num_fields, arena, shape));
    if (!shape->num_gpus && !preset) return shape_missing(root, "num_gpus");
    if (!shape->gpus_per_node) return shape_missing(root, "gpus_per_node");
    TRY(json_read_object(&up, SCALE_UP_FIELDS, NUM_SCALE_UP_FIELDS, arena, shape));
    TRY(json_read_object(&out, SCALE_OUT_FIELDS, 4, arena, shape));
    if (!shape->domain_gpus) shape->domain_gpus = shape->gpus_per_node;
    return status_ok();
}

static Status shape_check(const JsonNode *root, const Shape *s) {
    JsonNode num_gpus = json_get(root, "num_gpus"), up = json_get(root, "scale_up");
    JsonNode domain = json_get(&up, "domain_gpus"), matrix = json_get(root, "bandwidth_matrix");
    if (json_is_present(&matrix) && s->num_gpus > s->gpus_per_node &&
        s->num_gpus % s->gpus_per_node != 0)
        return json_error(&num_gpus,
                          "%d is not a multiple of gpus_per_node %d, as it has to be beside a "
                          "bandwidth_matrix",
                          s->num_gpus, s->gpus_per_node);
    int a = s->domain_gpus, b = s->gpus_per_node;
    if (a % b != 0 && b % a != 0)
        return json_error(&domain, "%d neither divides gpus_per_node %d nor is a multiple of it", a,
                          b);
    return status_ok();
}

// Those that the link's own file holds.
static Status own_curves_read(const JsonNode *value, Arena *arena, Pool *p) {
    JsonNode root;
    NcclKernels measured;
    TRY(profile_load(value, "link", "hw-profiles/links", arena, &root));
    JsonNode section = json_get(&root, "nccl");
    TRY(nccl_kernels_read(&section, arena, &measured));
    NcclKernels *curves = ARENA_NEW(arena, NcclKernels);
    *curves = nccl_kernels_rising(&measured, arena);
    p->scale_up_curves = curves;
    return status_ok();
}

// Collectives measured over the scale-up link: with this GPU, or else with another that has it.
static Status curves_read(const JsonNode *value, KernelShelf *shelf, Arena *arena, Pool *p) {
    const Link *link = &p->scale_up;
    if (link->has_curves) return own_curves_read(value, arena, p);
    if (link->num_measured_on == 0) return status_ok();
    const char *gpu = link->measured_on[0]; // or, of several, the pool's own
    for (int i = 0; p->gpu.kernels_of && i < link->num_measured_on; i++)
        if (strcmp(link->measured_on[i], p->gpu.kernels_of) == 0) gpu = link->measured_on[i];
    return kernel_shelf_curves(shelf, gpu, arena, &p->scale_up_curves);
}

static Status profiles_read(const JsonNode *root, KernelShelf *shelf, Arena *arena, Pool *p) {
    JsonNode gpu = json_get(root, "gpu"), up = json_get(root, "scale_up");
    JsonNode link = json_get(&up, "link");
    TRY(gpu_load(&gpu, arena, &p->gpu));
    TRY(link_load(&link, arena, &p->scale_up));
    if (p->scale_up.bandwidth_bytes_per_s <= 0)
        return json_error(&link, "\"%s\" is not a link between GPUs", p->scale_up.name);
    TRY(curves_read(&link, shelf, arena, p));
    return link_load_named("rdma", arena, &p->scale_out);
}

// Switches of the tree in a domain; the domain is a node, its sockets have as many each.
static Status tree_check(const JsonNode *root, const Link *link, const Shape *s) {
    const PcieTree *tree = &s->tree;
    JsonNode up = json_get(root, "scale_up"), out = json_get(root, "scale_out");
    JsonNode per_switch = json_get(&up, "gpus_per_switch"), sockets = json_get(&up, "sockets");
    JsonNode between = json_get(&up, "socket_bytes_per_s"), topology = json_get(&out, "topology");
    if (tree->gpus_per_switch == 0) {
        if (json_is_present(&sockets) || json_is_present(&between))
            return json_error(&per_switch, "missing; sockets and socket_bytes_per_s go with it");
        return status_ok();
    }
    if (strncmp(link->name, "pcie", 4) != 0)
        return json_error(&per_switch, "%s has no switches of PCIe", link->name);
    if (s->domain_gpus != s->gpus_per_node || s->domain_gpus > WIRES_MAX_GPUS)
        return json_error(&per_switch,
                          "with domain_gpus %d; expected domains of whole nodes of at most %d GPUs",
                          s->domain_gpus, WIRES_MAX_GPUS);
    if (s->domain_gpus % (tree->gpus_per_switch * tree->num_sockets) != 0)
        return json_error(&per_switch,
                          "%d does not divide gpus_per_node %d into as many switches for each of "
                          "%d sockets",
                          tree->gpus_per_switch, s->gpus_per_node, tree->num_sockets);
    if (tree->num_sockets > 1 && tree->socket_bytes_per_s == 0)
        return json_error(&between, "missing; of several sockets");
    if (tree->num_sockets == 1 && json_is_present(&between))
        return json_error(&sockets, "missing or 1; socket_bytes_per_s joins 2 or more");
    if (s->topology == TOPOLOGY_RAIL_ONLY)
        return json_error(&topology,
                          "rail-only with gpus_per_switch is legal, but not supported yet");
    return status_ok();
}

// Without a spine between rails only a node's own links join them.
static Status rails_check(const JsonNode *root, const Shape *s) {
    if (s->topology != TOPOLOGY_RAIL_ONLY || s->domain_gpus >= s->gpus_per_node) return status_ok();
    JsonNode out = json_get(root, "scale_out"), topology = json_get(&out, "topology");
    return json_error(&topology,
                      "rail-only does not join the %d scale-up domains of a node; expected "
                      "domain_gpus of at least gpus_per_node %d, or another topology",
                      (s->gpus_per_node + s->domain_gpus - 1) / s->domain_gpus, s->gpus_per_node);
}

// Of a domain without one switch for all, and of each part that its first GPUs are.
static const Wires *const *wires_of(const Link *link, const Shape *s, Arena *arena) {
    const int num_gpus = s->domain_gpus, tree = s->tree.gpus_per_switch;
    if (!tree && (link->mesh_gpus != num_gpus || s->gpus_per_node % num_gpus != 0)) return NULL;
    const Wires **wires = ARENA_ARRAY(arena, num_gpus + 1, const Wires *);
    for (int i = 1; i <= num_gpus; i++)
        wires[i] = tree ? wires_tree(&s->tree, link->bandwidth_bytes_per_s, num_gpus, i, arena)
                        : wires_mesh(link, i, arena);
    return wires;
}

static Pool pool_of_shape(const Pool *profiles, const Shape *s) {
    Pool p = *profiles;
    p.gpus_per_node = s->gpus_per_node;
    p.domain_gpus = s->domain_gpus;
    p.nics_per_node = s->nics_per_node;
    p.whole_node_gpus = s->gpus_per_node;
    p.whole_node_nics = s->nics_per_node;
    p.whole_domain_gpus = s->domain_gpus;
    p.nic_bytes_per_s = s->nic_bytes_per_s;
    p.scale_out.bandwidth_bytes_per_s = s->nic_bytes_per_s;
    p.topology = (Topology)s->topology;
    p.oversubscription = s->oversubscription;
    p.price_usd_per_gpu_hour =
        s->price_usd_per_gpu_hour >= 0 ? s->price_usd_per_gpu_hour : p.gpu.price_usd_per_gpu_hour;
    p.price_is_stated = s->price_usd_per_gpu_hour >= 0;
    p.price_source = p.price_is_stated ? "stated by the scenario" : p.gpu.price_source;
    p.power_watts_per_gpu = s->power_watts_per_gpu > 0 ? s->power_watts_per_gpu : p.gpu.power_watts;
    return pool_with_gpus(&p, s->num_gpus);
}

// A cluster or a group without groups of its own.
static Status pool_object(const JsonNode *root, bool preset, KernelShelf *shelf, Arena *arena,
                          Pool *out) {
    JsonNode between = json_get(root, "between");
    Shape shape = {.oversubscription = 1, .price_usd_per_gpu_hour = -1, .tree.num_sockets = 1};
    Pool profiles = {.num_gpus = 0};
    TRY(json_expect_object(root));
    TRY(shape_read(root, preset, arena, &shape));
    TRY(shape_check(root, &shape));
    TRY(profiles_read(root, shelf, arena, &profiles));
    TRY(tree_check(root, &profiles.scale_up, &shape));
    TRY(rails_check(root, &shape));
    profiles.wires_of = wires_of(&profiles.scale_up, &shape, arena);
    *out = pool_of_shape(&profiles, &shape);
    if (json_is_present(&between)) return json_error(&between, "there are no groups");
    return status_ok();
}

static Status cluster_object(const JsonNode *root, bool preset, KernelShelf *shelf, Arena *arena,
                             Cluster *out) {
    JsonNode groups = json_get(root, "groups"), matrix = json_get(root, "bandwidth_matrix");
    ClusterNetwork network = {0};
    TRY(json_expect_object(root));
    if (json_is_present(&groups)) {
        size_t num_fields = NUM_CLUSTER_FIELDS - NUM_PRESET_FIELDS;
        TRY(json_refuse_unknown(root, CLUSTER_FIELDS, num_fields));
        return groups_read(root, shelf, arena, out);
    }
    Pool *pool = ARENA_NEW(arena, Pool);
    TRY(pool_object(root, preset, shelf, arena, pool));
    if (json_is_present(&matrix))
        TRY(bandwidth_matrix_read(&matrix, pool->num_nodes, arena, &network.sites));
    *out = cluster_of_pools("custom", pool, 1, &network);
    return status_ok();
}

// "PRESET:NODES"; a preset without a number is one node.
static Status cluster_preset(const JsonNode *value, KernelShelf *shelf, Arena *arena,
                             Cluster *out) {
    const char *text;
    TRY(json_read_string(value, arena, &text));
    char *name = arena_strdup(arena, text), *colon = strchr(name, ':');
    long nodes = 1;
    if (colon) {
        char *end;
        *colon = '\0';
        nodes = strtol(colon + 1, &end, 10);
        if (strspn(colon + 1, "0123456789") == 0 || *end || nodes < 1)
            return json_error(value, "\"%.60s\": expected PRESET:NODES with 1 or more nodes%s",
                              text,
                              strchr(colon + 1, '.') ? "; part of a node is left idle by "
                                                       "parallel.idle_gpus"
                                                     : "");
    }
    JsonNode root;
    TRY(profile_load_named(value, "cluster", "hw-profiles/clusters", name, arena, &root));
    TRY(cluster_object(&root, true, shelf, arena, out));
    const int node_gpus = out->pools[0].gpus_per_node; // a preset has no groups
    if (nodes > MAX_GPUS / node_gpus)
        return json_error(value,
                          "\"%.60s\": %ld nodes of %d GPUs are more than %d GPUs; expected at most "
                          "%d nodes",
                          text, nodes, node_gpus, MAX_GPUS, MAX_GPUS / node_gpus);
    out->name = name;
    *out = cluster_with_gpus(out, (int)nodes * node_gpus, arena);
    return status_ok();
}

// A file that holds a cluster's object; what it names is relative to it.
static Status cluster_file(const JsonNode *value, const char *path, KernelShelf *shelf,
                           Arena *arena, Cluster *out) {
    JsonNode root;
    TRY(json_load_named(value, path_beside(arena, value->file ? value->file : "", path), arena,
                        &root));
    TRY(cluster_object(&root, true, shelf, arena, out));
    if (out->num_gpus == 0)
        *out = cluster_with_gpus(out, cluster_only_pool(out)->gpus_per_node, arena);
    return status_ok();
}

Status cluster_load_shared(const JsonNode *value, KernelShelf *shelf, Arena *arena, Cluster *out) {
    if (cJSON_IsString(value->item) && value_is_json_path(value->item->valuestring))
        return cluster_file(value, value->item->valuestring, shelf, arena, out);
    if (cJSON_IsString(value->item)) return cluster_preset(value, shelf, arena, out);
    if (!value->item) return json_error(value, "missing; expected \"PRESET:NODES\" or an object");
    return cluster_object(value, false, shelf, arena, out);
}

Status cluster_load(const JsonNode *value, Arena *arena, Cluster *out) {
    return cluster_load_shared(value, NULL, arena, out);
}

Status cluster_list(Arena *arena, ClusterSummary **out, int *num_clusters) {
    const char *const *names;
    TRY(data_list(arena, "hw-profiles/clusters", &names, num_clusters));
    *out = ARENA_ARRAY(arena, *num_clusters, ClusterSummary);
    for (int i = 0; i < *num_clusters; i++) {
        JsonNode root;
        Pool p;
        TRY(profile_load_named(NULL, "cluster", "hw-profiles/clusters", names[i], arena, &root));
        TRY(pool_object(&root, true, NULL, arena, &p));
        JsonNode title = json_get(&root, "title");
        ClusterSummary s = {.name = names[i],
                            .gpu = p.gpu.name,
                            .gpus_per_node = p.gpus_per_node,
                            .domain_gpus = p.domain_gpus,
                            .link = p.scale_up.name,
                            .nics_per_node = p.nics_per_node,
                            .nic_bytes_per_s = p.nic_bytes_per_s};
        TRY(json_read_string(&title, arena, &s.title));
        (*out)[i] = s;
    }
    return status_ok();
}
