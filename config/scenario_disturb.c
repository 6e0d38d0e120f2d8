// The list `disturb` of a scenario: what is slow, broken or busy.
#include "config/scenario.h"

#include <stdlib.h>
#include <string.h>

// Links are named nic:NODE.INDEX, nvlink:GPU, leaf:INDEX, spine:INDEX.
enum { LINK_NIC = 1, LINK_NVLINK = 2, LINK_LEAF = 4, LINK_SPINE = 8, LINK_ANY = 15 };

typedef struct {
    const char *prefix;
    int kind;
    const char *form;
} LinkForm;

static const LinkForm LINK_FORMS[] = {
    {"nic:", LINK_NIC, "nic:NODE.INDEX"},
    {"nvlink:", LINK_NVLINK, "nvlink:GPU"},
    {"leaf:", LINK_LEAF, "leaf:INDEX"},
    {"spine:", LINK_SPINE, "spine:INDEX"},
};
enum { NUM_LINK_FORMS = sizeof LINK_FORMS / sizeof *LINK_FORMS };

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

static Status link_range_check(const JsonNode *node, const Cluster *cluster, int kind, int first,
                               int second) {
    // At most one leaf and one spine a NIC: how many there are is the simulator's to say.
    int64_t num_nics = (int64_t)cluster->num_nodes * cluster->nics_per_node;
    int most = num_nics > 99999999 ? 99999999 : (int)num_nics;
    switch (kind) {
    case LINK_NIC:
        TRY(range_check(node, "node", first, cluster->num_nodes));
        return range_check(node, "NIC", second, cluster->nics_per_node);
    case LINK_NVLINK:
        return range_check(node, "GPU", first, cluster->num_gpus);
    case LINK_LEAF:
        return range_check(node, "leaf", first, most);
    default:
        return range_check(node, "spine", first, most);
    }
}

static Status link_form_error(const JsonNode *node, const char *text, int kinds) {
    char forms[100] = "";
    size_t used = 0;
    for (int i = 0; i < NUM_LINK_FORMS; i++)
        if (kinds & LINK_FORMS[i].kind && used < sizeof forms)
            used += (size_t)snprintf(forms + used, sizeof forms - used, "%s%s", used ? ", " : "",
                                     LINK_FORMS[i].form);
    return json_error(node, "\"%.60s\" names no link here; expected %s", text, forms);
}

// Reads one link at *text, of the given kinds, and moves past it.
static Status link_read(const JsonNode *node, const Cluster *cluster, int kinds,
                        const char **text) {
    for (int i = 0; i < NUM_LINK_FORMS; i++) {
        const LinkForm *form = &LINK_FORMS[i];
        if (!(kinds & form->kind) || strncmp(*text, form->prefix, strlen(form->prefix)) != 0)
            continue;
        const char *at = *text + strlen(form->prefix);
        int first = number_read(&at), second = 0;
        if (first >= 0 && form->kind == LINK_NIC) {
            second = *at == '.' ? (at++, number_read(&at)) : -1;
        }
        if (first < 0 || second < 0) break;
        *text = at;
        return link_range_check(node, cluster, form->kind, first, second);
    }
    return link_form_error(node, *text, kinds);
}

static Status link_check(const JsonNode *node, const Cluster *cluster, int kinds, Arena *arena) {
    const char *text;
    TRY(json_read_string(node, arena, &text));
    const char *at = text;
    TRY(link_read(node, cluster, kinds, &at));
    return *at ? link_form_error(node, text, kinds) : status_ok();
}

// "leaf:0-leaf:3": traffic of others between two switches.
static Status background_check(const JsonNode *node, const Cluster *cluster, Arena *arena) {
    const char *text;
    TRY(json_read_string(node, arena, &text));
    const int kinds = LINK_LEAF | LINK_SPINE;
    const char *at = text;
    TRY(link_read(node, cluster, kinds, &at));
    size_t first_length = (size_t)(at - text);
    if (*at != '-')
        return json_error(node, "\"%.60s\" names no two ends; expected leaf:INDEX-leaf:INDEX",
                          text);
    const char *second = ++at;
    TRY(link_read(node, cluster, kinds, &at));
    if (*at) return link_form_error(node, second, kinds);
    if (strlen(second) == first_length && strncmp(text, second, first_length) == 0)
        return json_error(node, "both ends are %s", second);
    return status_ok();
}

static Status slow_gpu_check(const JsonNode *node, const Cluster *cluster, Arena *arena) {
    (void)arena;
    int gpu;
    TRY(json_read_int(node, 0, 1 << 30, &gpu));
    return range_check(node, "GPU", gpu, cluster->num_gpus);
}

static Status jitter_check(const JsonNode *node, const Cluster *cluster, Arena *arena) {
    (void)cluster, (void)arena;
    double frac;
    return json_read_double(node, 0, 1, &frac);
}

static Status any_link_check(const JsonNode *node, const Cluster *cluster, Arena *arena) {
    return link_check(node, cluster, LINK_ANY, arena);
}

static Status nic_check(const JsonNode *node, const Cluster *cluster, Arena *arena) {
    return link_check(node, cluster, LINK_NIC, arena);
}

enum { MAX_FIELDS = 3 };

// One kind of disturbance: known by the key of its first field, which has a check of its own.
typedef struct {
    Status (*check)(const JsonNode *node, const Cluster *cluster, Arena *arena);
    JsonField fields[MAX_FIELDS];
    size_t num_fields;
} DisturbKind;

#define NUMBER(key, index, low, high)                                                              \
    { key, JSON_FIELD_DOUBLE, (index) * sizeof(double), low, high, NULL, true }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }

static const DisturbKind DISTURB_KINDS[] = {
    {slow_gpu_check, {OTHER("slow_gpu"), NUMBER("factor", 0, 1, 1000)}, 2},
    {jitter_check, {OTHER("jitter_frac"), {"seed", JSON_FIELD_INT64, 0, 0, 9e15, NULL, false}}, 2},
    {any_link_check, {OTHER("link"), NUMBER("bandwidth_factor", 0, 1e-6, 1)}, 2},
    {nic_check, {OTHER("fail_nic")}, 1},
    {any_link_check,
     {OTHER("flap"), NUMBER("period_s", 0, 1e-6, 1e6), NUMBER("down_frac", 1, 0, 0.999999)},
     3},
    {background_check, {OTHER("background"), NUMBER("bytes_per_s", 0, 1, 1e15)}, 2},
};
enum { NUM_DISTURB_KINDS = sizeof DISTURB_KINDS / sizeof *DISTURB_KINDS };

static Status disturb_entry_check(const JsonNode *entry, const Cluster *cluster, Arena *arena) {
    TRY(json_expect_object(entry));
    for (int i = 0; i < NUM_DISTURB_KINDS; i++) {
        const DisturbKind *kind = &DISTURB_KINDS[i];
        JsonNode first = json_get(entry, kind->fields[0].key);
        if (!json_is_present(&first)) continue;
        union {
            double numbers[MAX_FIELDS];
            int64_t seed;
        } values;
        TRY(json_read_object(entry, kind->fields, kind->num_fields, arena, &values));
        return kind->check(&first, cluster, arena);
    }
    return json_error(entry, "disturbs nothing known; expected one of slow_gpu, jitter_frac, link, "
                             "fail_nic, flap, background");
}

Status disturb_check(const JsonNode *node, const Cluster *cluster, Arena *arena, int *num_disturb) {
    *num_disturb = 0;
    if (!json_is_present(node)) return status_ok();
    TRY(json_expect_array(node));
    const cJSON *item;
    cJSON_ArrayForEach(item, node->item) {
        JsonNode entry = {.file = node->file, .item = item, .parent = node, .index = *num_disturb};
        TRY(disturb_entry_check(&entry, cluster, arena));
        (*num_disturb)++;
    }
    return status_ok();
}
