// The list `disturb` of a scenario: what is slow, broken or busy.
#include "config/job/disturb.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const DISTURB_NAMES[NUM_DISTURB_KINDS] = {
    "slow_gpu", "jitter_frac", "link", "fail_nic", "flap", "background",
};

// Sets of LinkKind, as bits.
enum {
    NIC_ONLY = 1 << LINK_NIC,
    ANY_LINK = 15,
    SITES = 1 << LINK_GROUP | 1 << LINK_NODE,
    ENDS = 1 << LINK_LEAF | 1 << LINK_SPINE | SITES,
};

// NAME:PLACE
typedef struct {
    const char *name; // NULL: what the port of a GPU is (link_family)
    const char *place;
} LinkForm;

static const LinkForm LINK_FORMS[NUM_LINK_KINDS] = {
    [LINK_NIC] = {"nic", "NODE.INDEX"}, [LINK_NVLINK] = {NULL, "GPU"},
    [LINK_LEAF] = {"leaf", "INDEX"},    [LINK_SPINE] = {"spine", "INDEX"},
    [LINK_GROUP] = {"group", "INDEX"},  [LINK_NODE] = {"node", "INDEX"},
};

// Up to eight digits at *text; moves past them. -1 where there are none or more.
static int number_read(const char **text) {
    size_t length = strspn(*text, "0123456789");
    if (length == 0 || length > 8) return -1;
    int number = atoi(*text);
    *text += length;
    return number;
}

static Status range_check(const JsonNode *node, const char *what, int index, int count) {
    if (index < count) return status_ok();
    if (count == 0) return json_error(node, "the cluster has no %s", what);
    return json_error(node, "%s %d is out of range; expected 0 to %d", what, index, count - 1);
}

// At most one leaf and one spine a NIC: how many there are is the simulator's to say.
static int most_switches(const Cluster *cluster) {
    int64_t num_nics = 0;
    for (int i = 0; i < cluster->num_pools; i++)
        num_nics += (int64_t)cluster->pools[i].num_nodes * cluster->pools[i].nics_per_node;
    return num_nics > 99999999 ? 99999999 : (int)num_nics;
}

// Ends of the links between groups, or between the nodes of a matrix.
static Status site_range_check(const JsonNode *node, const Cluster *cluster, const LinkName *link) {
    const ClusterSites *sites = cluster->network.sites;
    const bool group = link->kind == LINK_GROUP;
    if (!sites || (sites->kind == SITE_GROUP) != group)
        return json_error(node, "the cluster has no links between %s",
                          group ? "groups" : "nodes; a bandwidth_matrix has");
    return range_check(node, group ? "group" : "node", link->index, sites->num_sites);
}

static Status switch_range_check(const JsonNode *node, const char *what, int index, int most) {
    if (index < most) return status_ok();
    return json_error(node, "%s %d is out of range; there is at most one for each of the %d NICs",
                      what, index, most);
}

static Status link_range_check(const JsonNode *node, const Cluster *cluster, const LinkName *link) {
    int most = most_switches(cluster);
    switch (link->kind) {
    case LINK_NIC:
        TRY(range_check(node, "node", link->index, cluster->num_nodes));
        return range_check(
            node, "NIC", link->nic,
            cluster->pools[cluster_pool_of_node(cluster, link->index)].nics_per_node);
    case LINK_NVLINK:
        return range_check(node, "GPU", link->index, cluster->num_gpus);
    case LINK_LEAF:
        return switch_range_check(node, "leaf", link->index, most);
    case LINK_GROUP:
    case LINK_NODE:
        return site_range_check(node, cluster, link);
    default:
        return switch_range_check(node, "spine", link->index, most);
    }
}

// What stands behind "NAME:" at the beginning of text; NULL where it does not begin so.
static const char *name_skip(const char *text, const char *name) {
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == ':' ? text + length + 1 : NULL;
}

// name_skip of a kind of links; a port goes by what any port is.
static const char *kind_skip(const char *text, LinkKind kind) {
    if (LINK_FORMS[kind].name) return name_skip(text, LINK_FORMS[kind].name);
    const char *place = NULL;
    for (int i = 0; LINK_FAMILY_NAMES[i] && !place; i++)
        place = name_skip(text, LINK_FAMILY_NAMES[i]);
    return place;
}

// Among the busiest links, but no link of these kinds: inside domains, or between sites.
static bool is_only_played(const char *text, int kinds) {
    if (name_skip(text, "switch") || name_skip(text, "socket")) return true;
    const bool of_site = kind_skip(text, LINK_GROUP) || kind_skip(text, LINK_NODE);
    return strchr(text, '-') && (name_skip(text, "nvlink") || (of_site && !(kinds & SITES)));
}

// What a pool's ports go by; NULL where one before it has the same.
static const char *port_family(const Cluster *cluster, int pool) {
    const char *family = link_family(cluster->pools[pool].scale_up.name);
    for (int i = 0; i < pool; i++)
        if (strcmp(link_family(cluster->pools[i].scale_up.name), family) == 0) return NULL;
    return family;
}

static Status link_form_error(const JsonNode *node, const Cluster *cluster, const char *text,
                              int kinds) {
    char forms[200] = "";
    size_t used = 0;
    for (int i = 0; i < NUM_LINK_KINDS; i++) {
        const LinkForm *form = &LINK_FORMS[i];
        for (int pool = 0; pool < (form->name ? 1 : cluster->num_pools); pool++) {
            const char *name = form->name ? form->name : port_family(cluster, pool);
            if (!(kinds & 1 << i) || used >= sizeof forms || !name) continue;
            used += (size_t)snprintf(forms + used, sizeof forms - used, "%s%s:%s", used ? ", " : "",
                                     name, form->place);
        }
    }
    return json_error(node, "\"%.60s\" %s; expected %s", text,
                      is_only_played(text, kinds) ? "is played, but cannot be disturbed"
                                                  : "names no link here",
                      forms);
}

// A port goes by what it is, or as NVLink whatever it is.
static Status family_check(const JsonNode *node, const Cluster *cluster, const char *text,
                           int gpu) {
    const Pool *pool = &cluster->pools[cluster_pool_of_gpu(cluster, gpu)];
    const char *family = link_family(pool->scale_up.name);
    if (name_skip(text, family) || name_skip(text, LINK_FAMILY_NAMES[0])) return status_ok();
    return json_error(node, "\"%.60s\": that GPU's port is %s; expected %s:%d", text, family,
                      family, gpu);
}

// Reads one link at *text, of the given kinds, and moves past it.
static Status link_parse(const JsonNode *node, const Cluster *cluster, int kinds, const char **text,
                         LinkName *out) {
    for (int i = 0; i < NUM_LINK_KINDS; i++) {
        const char *name = *text, *at = kind_skip(name, (LinkKind)i);
        if (!(kinds & 1 << i) || !at) continue;
        *out = (LinkName){.kind = (LinkKind)i, .index = number_read(&at)};
        if (out->index >= 0 && i == LINK_NIC) {
            out->nic = *at == '.' ? (at++, number_read(&at)) : -1;
        }
        if (out->index < 0 || out->nic < 0) break;
        *text = at;
        TRY(link_range_check(node, cluster, out));
        return i == LINK_NVLINK ? family_check(node, cluster, name, out->index) : status_ok();
    }
    return link_form_error(node, cluster, *text, kinds);
}

static Status link_read(const JsonNode *node, const Cluster *cluster, int kinds, Arena *arena,
                        LinkName *out) {
    const char *text;
    TRY(json_read_string(node, arena, &text));
    const char *at = text;
    TRY(link_parse(node, cluster, kinds, &at, out));
    return *at ? link_form_error(node, cluster, text, kinds) : status_ok();
}

// "leaf:0-leaf:3": traffic of others between two switches, groups, or nodes of a matrix.
static Status background_read(const JsonNode *node, const Cluster *cluster, Arena *arena,
                              Disturb *out) {
    const char *text;
    TRY(json_read_string(node, arena, &text));
    const char *at = text;
    TRY(link_parse(node, cluster, ENDS, &at, &out->link));
    if (*at != '-')
        return json_error(node, "\"%.60s\" names no two ends; expected leaf:INDEX-leaf:INDEX",
                          text);
    const char *second = ++at;
    TRY(link_parse(node, cluster, ENDS, &at, &out->to));
    if (*at) return link_form_error(node, cluster, second, ENDS);
    if ((SITES >> out->link.kind & 1) != (SITES >> out->to.kind & 1))
        return json_error(node, "\"%.60s\": expected two switches, two groups or two nodes", text);
    if (out->link.kind == out->to.kind && out->link.index == out->to.index)
        return json_error(node, "both ends are %s", second);
    return status_ok();
}

static Status slow_gpu_read(const JsonNode *node, const Cluster *cluster, Arena *arena,
                            Disturb *out) {
    (void)arena;
    return json_read_int(node, 0, cluster->num_gpus - 1, &out->gpu);
}

static Status jitter_read(const JsonNode *node, const Cluster *cluster, Arena *arena,
                          Disturb *out) {
    (void)cluster, (void)arena;
    return json_read_double(node, 0, 1, &out->jitter_frac);
}

static Status any_link_read(const JsonNode *node, const Cluster *cluster, Arena *arena,
                            Disturb *out) {
    return link_read(node, cluster, ANY_LINK, arena, &out->link);
}

static Status nic_read(const JsonNode *node, const Cluster *cluster, Arena *arena, Disturb *out) {
    return link_read(node, cluster, NIC_ONLY, arena, &out->link);
}

enum { MAX_FIELDS = 4 };

// One kind of disturbance: known by the key of its first field, which is read by itself.
typedef struct {
    Status (*read)(const JsonNode *node, const Cluster *cluster, Arena *arena, Disturb *out);
    JsonField fields[MAX_FIELDS];
    size_t num_fields;
} DisturbForm;

#define NUMBER(key, member, low, high)                                                             \
    { key, JSON_FIELD_DOUBLE, offsetof(Disturb, member), low, high, NULL, true }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }

#define SEED                                                                                       \
    { "seed", JSON_FIELD_INT64, offsetof(Disturb, seed), 0, 9e15, NULL, false }

static const DisturbForm DISTURB_FORMS[NUM_DISTURB_KINDS] = {
    {slow_gpu_read, {OTHER("slow_gpu"), NUMBER("factor", factor, 1, 1000)}, 2},
    {jitter_read, {OTHER("jitter_frac"), SEED}, 2},
    {any_link_read, {OTHER("link"), NUMBER("bandwidth_factor", bandwidth_factor, 1e-6, 1)}, 2},
    {nic_read, {OTHER("fail_nic")}, 1},
    {any_link_read,
     {OTHER("flap"), NUMBER("period_s", period_s, 1e-6, 1e6),
      NUMBER("down_frac", down_frac, 0, 0.999999), SEED},
     4},
    {background_read, {OTHER("background"), NUMBER("bytes_per_s", bytes_per_s, 1, 1e15)}, 2},
};

// The keys that name a kind, and those that go with them.
static const JsonField DISTURB_KEYS[] = {
    OTHER("slow_gpu"), OTHER("jitter_frac"), OTHER("link"),
    OTHER("fail_nic"), OTHER("flap"),        OTHER("background"),
    OTHER("factor"),   OTHER("seed"),        OTHER("bandwidth_factor"),
    OTHER("period_s"), OTHER("down_frac"),   OTHER("bytes_per_s"),
};

static Status entry_read(const JsonNode *entry, const Cluster *cluster, Arena *arena,
                         Disturb *out) {
    TRY(json_expect_object(entry));
    for (int i = 0; i < NUM_DISTURB_KINDS; i++) {
        const DisturbForm *form = &DISTURB_FORMS[i];
        JsonNode first = json_get(entry, DISTURB_NAMES[i]);
        if (!json_is_present(&first)) continue;
        out->kind = (DisturbKind)i;
        TRY(json_read_object(entry, form->fields, form->num_fields, arena, out));
        return form->read(&first, cluster, arena, out);
    }
    TRY(json_refuse_unknown(entry, DISTURB_KEYS, sizeof DISTURB_KEYS / sizeof *DISTURB_KEYS));
    return json_error(entry, "disturbs nothing known; expected one of slow_gpu, jitter_frac, link, "
                             "fail_nic, flap, background");
}

Status disturb_read(const JsonNode *node, const Cluster *cluster, Arena *arena, const Disturb **out,
                    int *num) {
    *out = NULL;
    *num = 0;
    if (!json_is_present(node)) return status_ok();
    TRY(json_expect_array(node));
    Disturb *entries = ARENA_ARRAY(arena, json_size(node), Disturb);
    int num_of_kind[NUM_DISTURB_KINDS] = {0};
    const cJSON *item;
    cJSON_ArrayForEach(item, node->item) {
        JsonNode entry = {.file = node->file, .item = item, .parent = node, .index = *num};
        TRY(entry_read(&entry, cluster, arena, &entries[*num]));
        entries[*num].ordinal = num_of_kind[entries[*num].kind]++;
        (*num)++;
    }
    *out = entries;
    return status_ok();
}
