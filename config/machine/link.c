#include "config/machine/link.h"

#include "config/machine/profile.h"

#include <string.h>

const char *const LINK_FAMILY_NAMES[] = {"nvlink", "xgmi", "pcie", "shm", NULL};

const char *link_family(const char *name) {
    for (int i = 0; name && LINK_FAMILY_NAMES[i]; i++)
        if (strncmp(name, LINK_FAMILY_NAMES[i], strlen(LINK_FAMILY_NAMES[i])) == 0)
            return LINK_FAMILY_NAMES[i];
    return LINK_FAMILY_NAMES[0];
}

#define NUMBER(key, low, high, required)                                                           \
    { #key, JSON_FIELD_DOUBLE, offsetof(Link, key), low, high, NULL, required }

static const JsonField LINK_FIELDS[] = {
    {"schema", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    {"name", JSON_FIELD_STRING, offsetof(Link, name), 0, 0, NULL, true},
    {"title", JSON_FIELD_STRING, offsetof(Link, title), 0, 0, NULL, true},
    {"sources", JSON_FIELD_OTHER, 0, 0, 0, NULL, true},
    NUMBER(bandwidth_bytes_per_s, 1e6, 1e14, false), // of a NIC: the cluster says
    {"switched", JSON_FIELD_BOOL, offsetof(Link, switched), 0, 0, NULL, true},
    {"in_switch_reduction", JSON_FIELD_BOOL, offsetof(Link, in_switch_reduction), 0, 0, NULL, true},
    NUMBER(latency_s, 0, 1, true),
    NUMBER(hop_latency_s, 0, 1, true),
    NUMBER(chain_hop_latency_s, 0, 1, true),
    NUMBER(efficiency_frac, 0.01, 1, true),
    NUMBER(half_bytes, 0, 1e9, true),
    NUMBER(p2p_latency_s, 0, 1, true),
    NUMBER(p2p_efficiency_frac, 0.01, 1, true),
    {"mesh", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"measured_on", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"nccl", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    {"protocols", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    NUMBER(measured_bandwidth_bytes_per_s, 1e6, 1e14, false),
};

#define PROTOCOL_NUMBER(key, high)                                                                 \
    { #key, JSON_FIELD_DOUBLE, offsetof(LinkProtocol, key), 0, high, NULL, true }

static const JsonField PROTOCOL_FIELDS[] = {
    {"name", JSON_FIELD_STRING, offsetof(LinkProtocol, name), 0, 0, NULL, true},
    PROTOCOL_NUMBER(ring_hop_latency_s, 1),
    PROTOCOL_NUMBER(ring_inside_hop_latency_s, 1),
    PROTOCOL_NUMBER(tree_hop_latency_s, 1),
    PROTOCOL_NUMBER(tree_inside_hop_latency_s, 1),
    {"bandwidth_frac", JSON_FIELD_DOUBLE, offsetof(LinkProtocol, bandwidth_frac), 0.01, 1, NULL,
     true},
};

static Status protocols_read(const JsonNode *root, Arena *arena, Link *link) {
    JsonNode list = json_get(root, "protocols");
    if (!json_is_present(&list)) return status_ok();
    TRY(json_expect_items(&list, "protocols", LINK_MAX_PROTOCOLS, &link->num_protocols));
    for (int i = 0; i < link->num_protocols; i++) {
        JsonNode item = json_at(&list, i);
        TRY(json_read_object(&item, PROTOCOL_FIELDS,
                             sizeof PROTOCOL_FIELDS / sizeof *PROTOCOL_FIELDS, arena,
                             &link->protocols[i]));
    }
    return status_ok();
}

static Status measured_read(const JsonNode *root, Arena *arena, Link *link) {
    JsonNode names = json_get(root, "measured_on");
    JsonNode own = json_get(root, "nccl");
    link->has_curves = json_is_present(&own);
    if (link->has_curves && json_is_present(&names))
        return json_error(&names, "has no place beside nccl");
    if (link->has_curves) link->measured_bandwidth_bytes_per_s = link->bandwidth_bytes_per_s;
    if (!json_is_present(&names)) return status_ok();
    TRY(json_expect_items(&names, "GPUs", LINK_MAX_MEASURED, &link->num_measured_on));
    for (int i = 0; i < link->num_measured_on; i++) {
        JsonNode name = json_at(&names, i);
        TRY(json_read_string(&name, arena, &link->measured_on[i]));
    }
    if (link->measured_bandwidth_bytes_per_s <= 0)
        link->measured_bandwidth_bytes_per_s = link->bandwidth_bytes_per_s;
    JsonNode measured = json_get(root, "measured_bandwidth_bytes_per_s");
    if (link->measured_bandwidth_bytes_per_s < link->bandwidth_bytes_per_s)
        return json_error(&measured, "%.6g; expected at least bandwidth_bytes_per_s %.6g",
                          link->measured_bandwidth_bytes_per_s, link->bandwidth_bytes_per_s);
    return status_ok();
}

static Status mesh_row_read(const JsonNode *row, int gpu, Link *link) {
    int num, sum = 0;
    TRY(json_expect_items(row, "numbers", LINK_MAX_MESH, &num));
    if (num != link->mesh_gpus)
        return json_error(row, "%d numbers; expected %d, one for each GPU", num, link->mesh_gpus);
    for (int i = 0; i < num; i++) {
        JsonNode item = json_at(row, i);
        TRY(json_read_int(&item, 0, 64, &link->mesh[gpu][i]));
        sum += link->mesh[gpu][i];
        if (i == gpu && link->mesh[gpu][i] != 0)
            return json_error(&item, "%d links to itself; expected 0", link->mesh[gpu][i]);
        if (i < gpu && link->mesh[gpu][i] != link->mesh[i][gpu])
            return json_error(&item, "%d links, but %d in the other direction", link->mesh[gpu][i],
                              link->mesh[i][gpu]);
    }
    if (gpu == 0) link->mesh_links_per_gpu = sum;
    if (sum > 0 && sum == link->mesh_links_per_gpu) return status_ok();
    return json_error(row,
                      "%d links together; expected as many as of the first GPU, %d, and 1 or "
                      "more",
                      sum, link->mesh_links_per_gpu);
}

static bool mesh_joins(const Link *link, int from, int to) {
    if (from == to || link->mesh[from][to] > 0) return true;
    for (int over = 0; over < from || over < to; over++) // also where the last GPUs are missing
        if (link->mesh[from][over] > 0 && link->mesh[over][to] > 0) return true;
    return false;
}

static Status mesh_read(const JsonNode *root, Link *link) {
    JsonNode mesh = json_get(root, "mesh");
    if (!json_is_present(&mesh)) return status_ok();
    TRY(json_expect_items(&mesh, "GPUs", LINK_MAX_MESH, &link->mesh_gpus));
    for (int i = 0; i < link->mesh_gpus; i++) {
        JsonNode row = json_at(&mesh, i);
        TRY(mesh_row_read(&row, i, link));
    }
    for (int i = 0; i < link->mesh_gpus * link->mesh_gpus; i++) {
        int from = i / link->mesh_gpus, to = i % link->mesh_gpus;
        if (mesh_joins(link, from, to)) continue;
        JsonNode row = json_at(&mesh, from);
        return json_error(&row, "GPUs %d and %d are not joined, nor by one GPU before them", from,
                          to);
    }
    return status_ok();
}

static Status link_read(const JsonNode *root, Arena *arena, Link *out) {
    Link link = {0};
    TRY(json_read_object(root, LINK_FIELDS, sizeof LINK_FIELDS / sizeof *LINK_FIELDS, arena,
                         &link));
    JsonNode schema = json_get(root, "schema"), sources = json_get(root, "sources");
    int version;
    TRY(json_read_int(&schema, 1, 1, &version));
    TRY(json_expect_object(&sources));
    TRY(measured_read(root, arena, &link));
    TRY(protocols_read(root, arena, &link));
    TRY(mesh_read(root, &link));
    *out = link;
    return status_ok();
}

Status link_load(const JsonNode *value, Arena *arena, Link *out) {
    JsonNode root;
    TRY(profile_load(value, "link", "hw-profiles/links", arena, &root));
    return link_read(&root, arena, out);
}

Status link_load_named(const char *name, Arena *arena, Link *out) {
    JsonNode root;
    TRY(profile_load_named(NULL, "link", "hw-profiles/links", name, arena, &root));
    return link_read(&root, arena, out);
}
