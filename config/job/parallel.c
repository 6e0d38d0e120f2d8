#include "config/job/parallel.h"

#include <stdlib.h>
#include <string.h>

const char *const RECOMPUTE_NAMES[] = {"none", "selective", "full", NULL};
const char *const RECOMPUTE_MODULE_NAMES[] = {"core_attn", "mla_up_proj", "layernorm",      "mlp",
                                              "moe",       "moe_act",     "shared_experts", NULL};
const char *const SCHEDULE_NAMES[] = {
#define X(kind, name) name,
#include "config/job/schedules.def"
#undef X
    NULL};
const char *const CP_METHOD_NAMES[] = {"ring", "ulysses", "all-gather", NULL};

#define COUNT(key, low, high)                                                                      \
    { #key, JSON_FIELD_INT, offsetof(ParallelSpec, key), low, high, NULL, false }
#define SWITCH(key)                                                                                \
    { #key, JSON_FIELD_TRI, offsetof(ParallelSpec, key), 0, 0, NULL, false }
#define NAME(key, list)                                                                            \
    { #key, JSON_FIELD_NAME, offsetof(ParallelSpec, key), 0, 0, list, false }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, false }

enum { MAX_DEGREE = 1 << 20 };

static const JsonField PARALLEL_FIELDS[] = {
    COUNT(tp, 1, MAX_DEGREE),
    COUNT(pp, 1, MAX_DEGREE),
    COUNT(dp, 1, MAX_DEGREE),
    COUNT(cp, 1, MAX_DEGREE),
    COUNT(ep, 1, MAX_DEGREE),
    COUNT(etp, 1, MAX_DEGREE),
    COUNT(vpp, 1, MAX_DEGREE),
    COUNT(idle_gpus, 0, 1 << 22),
    COUNT(micro_batch, 1, MAX_DEGREE),
    SWITCH(sequence_parallel),
    COUNT(zero_stage, 0, 3),
    COUNT(zero_group, 1, MAX_DEGREE),
    SWITCH(reshard_after_forward),
    NAME(recompute, RECOMPUTE_NAMES),
    OTHER("recompute_modules"),
    COUNT(recompute_layers, 0, 4096),
    OTHER("schedule"),
    NAME(cp_method, CP_METHOD_NAMES),
    {"order", JSON_FIELD_STRING, offsetof(ParallelSpec, order), 0, 0, NULL, false},
    OTHER("stages"),
    SWITCH(vocab_parallel),
    COUNT(vocab_barriers, 1, 2),
    OTHER("placement"),
    OTHER("layers"),
};

static ParallelSpec parallel_absent(void) {
    return (ParallelSpec){
        .tp = ABSENT,
        .pp = ABSENT,
        .dp = ABSENT,
        .cp = ABSENT,
        .ep = ABSENT,
        .etp = ABSENT,
        .vpp = ABSENT,
        .idle_gpus = ABSENT,
        .micro_batch = ABSENT,
        .sequence_parallel = ABSENT,
        .zero_stage = ABSENT,
        .zero_group = ABSENT,
        .reshard_after_forward = ABSENT,
        .recompute = ABSENT,
        .recompute_modules = ABSENT,
        .recompute_layers = ABSENT,
        .schedule = ABSENT,
        .cp_method = ABSENT,
        .vocab_parallel = ABSENT,
        .vocab_barriers = ABSENT,
    };
}

// A list of names as bits; it names at least one.
static Status modules_read(const JsonNode *node, int *bits) {
    TRY(json_expect_array(node));
    if (json_size(node) == 0) return json_error(node, "names no module; expected at least one");
    *bits = 0;
    for (int i = 0; i < json_size(node); i++) {
        JsonNode entry = json_at(node, i);
        int index;
        TRY(json_read_name(&entry, RECOMPUTE_MODULE_NAMES, &index));
        if (*bits & 1 << index)
            return json_error(&entry, "%s stands here twice", RECOMPUTE_MODULE_NAMES[index]);
        *bits |= 1 << index;
    }
    return status_ok();
}

static Status recompute_modules_read(const JsonNode *value, ParallelSpec *out) {
    JsonNode node = json_get(value, "recompute_modules");
    if (!json_is_present(&node)) return status_ok();
    if (out->recompute != RECOMPUTE_SELECTIVE)
        return json_error(&node, "goes with recompute selective only; here it is %s",
                          out->recompute == ABSENT ? "absent" : RECOMPUTE_NAMES[out->recompute]);
    return modules_read(&node, &out->recompute_modules);
}

static Status schedule_read(const JsonNode *node, Arena *arena, ParallelSpec *out) {
    if (!json_is_present(node)) return status_ok();
    const char *const prefix = "file:";
    if (cJSON_IsString(node->item) &&
        strncmp(node->item->valuestring, prefix, strlen(prefix)) == 0) {
        const char *path = node->item->valuestring + strlen(prefix);
        if (!path[0]) return json_error(node, "expected a path after file:");
        out->schedule = SCHEDULE_FILE;
        out->schedule_file = arena_strdup(arena, path);
        return status_ok();
    }
    return json_read_name(node, SCHEDULE_NAMES, &out->schedule);
}

// Each of the five degrees once, joined by '-'.
static Status order_check(const JsonNode *node, const char *order) {
    static const char *const DEGREES[] = {"tp", "cp", "ep", "dp", "pp"};
    enum { NUM_DEGREES = 5, ORDER_LENGTH = 14 };
    bool legal = strlen(order) == ORDER_LENGTH;
    unsigned seen = 0;
    for (int i = 0; legal && i < NUM_DEGREES; i++)
        for (unsigned d = 0; d < NUM_DEGREES; d++)
            if (strncmp(order + 3 * i, DEGREES[d], 2) == 0) seen |= 1u << d;
    for (int i = 1; legal && i < NUM_DEGREES; i++) legal = order[3 * i - 1] == '-';
    if (legal && seen == (1u << NUM_DEGREES) - 1) return status_ok();
    return json_error(
        node, "\"%.60s\" is no order; expected tp, cp, ep, dp and pp, each once, joined by -",
        order);
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static Status placement_read(const JsonNode *node, Arena *arena, ParallelSpec *out) {
    if (!json_is_present(node)) return status_ok();
    TRY(json_expect_array(node));
    int n = json_size(node);
    if (n == 0) return json_error(node, "names no node; expected every node once");
    int *nodes = ARENA_ARRAY(arena, n, int), *sorted = ARENA_ARRAY(arena, n, int);
    int i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, node->item) {
        JsonNode entry = {.file = node->file, .item = item, .parent = node, .index = i};
        TRY(json_read_int(&entry, 0, MAX_DEGREE, &nodes[i++]));
    }
    memcpy(sorted, nodes, (size_t)n * sizeof *nodes);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_ints);
    for (i = 1; i < n; i++)
        if (sorted[i] == sorted[i - 1])
            return json_error(node, "node %d stands here twice", sorted[i]);
    out->placement = nodes;
    out->num_placement = n;
    return status_ok();
}

static Status layer_override_read(const JsonNode *node, Arena *arena, LayerOverride *out) {
#define PART(key, low, high, required)                                                             \
    { #key, JSON_FIELD_INT, offsetof(LayerOverride, key), low, high, NULL, required }
    static const JsonField FIELDS[] = {
        PART(from, 0, 4095, true),
        PART(to, 0, 4095, true),
        PART(tp, 1, MAX_DEGREE, false),
        PART(cp, 1, MAX_DEGREE, false),
        PART(ep, 1, MAX_DEGREE, false),
        PART(etp, 1, MAX_DEGREE, false),
        PART(zero_stage, 0, 3, false),
        {"recompute", JSON_FIELD_NAME, offsetof(LayerOverride, recompute), 0, 0, RECOMPUTE_NAMES,
         false},
        {"cp_method", JSON_FIELD_NAME, offsetof(LayerOverride, cp_method), 0, 0, CP_METHOD_NAMES,
         false},
        {"sequence_parallel", JSON_FIELD_TRI, offsetof(LayerOverride, sequence_parallel), 0, 0,
         NULL, false},
        OTHER("recompute_modules"),
    };
    enum { NUM_FIELDS = sizeof FIELDS / sizeof *FIELDS };
#undef PART
    *out = (LayerOverride){.tp = ABSENT,
                           .cp = ABSENT,
                           .ep = ABSENT,
                           .etp = ABSENT,
                           .zero_stage = ABSENT,
                           .recompute = ABSENT,
                           .recompute_modules = ABSENT,
                           .cp_method = ABSENT,
                           .sequence_parallel = ABSENT};
    TRY(json_read_object(node, FIELDS, NUM_FIELDS, arena, out));
    if (out->from > out->to) return json_error(node, "from %d is after to %d", out->from, out->to);
    JsonNode modules = json_get(node, "recompute_modules");
    if (json_is_present(&modules)) TRY(modules_read(&modules, &out->recompute_modules));
    if (json_size(node) == 2) return json_error(node, "says nothing that these layers do");
    return status_ok();
}

static Status layers_read(const JsonNode *node, Arena *arena, ParallelSpec *out) {
    if (!json_is_present(node)) return status_ok();
    TRY(json_expect_array(node));
    LayerOverride *layers = ARENA_ARRAY(arena, json_size(node), LayerOverride);
    int i = 0, last = -1;
    const cJSON *item;
    cJSON_ArrayForEach(item, node->item) {
        JsonNode entry = {.file = node->file, .item = item, .parent = node, .index = i};
        TRY(layer_override_read(&entry, arena, &layers[i]));
        if (layers[i].from <= last)
            return json_error(&entry, "from %d is not after the previous to %d", layers[i].from,
                              last);
        last = layers[i++].to;
    }
    out->layers = layers;
    out->num_layer_overrides = i;
    return status_ok();
}

Status parallel_load(const JsonNode *value, Arena *arena, ParallelSpec *out) {
    ParallelSpec spec = parallel_absent();
    *out = spec;
    if (!json_is_present(value)) return status_ok();
    TRY(json_read_object(value, PARALLEL_FIELDS, sizeof PARALLEL_FIELDS / sizeof *PARALLEL_FIELDS,
                         arena, &spec));
    TRY(recompute_modules_read(value, &spec));
    JsonNode schedule = json_get(value, "schedule");
    TRY(schedule_read(&schedule, arena, &spec));
    JsonNode order = json_get(value, "order");
    if (spec.order) TRY(order_check(&order, spec.order));
    JsonNode stages = json_get(value, "stages");
    TRY(parallel_stages_read(&stages, arena, &spec));
    JsonNode placement = json_get(value, "placement");
    TRY(placement_read(&placement, arena, &spec));
    JsonNode layers = json_get(value, "layers");
    TRY(layers_read(&layers, arena, &spec));
    *out = spec;
    return status_ok();
}

Status parallel_check_lists(const JsonNode *value, int num_nodes, int num_layers) {
    const cJSON *item;
    int i = 0, index;
    JsonNode placement = json_get(value, "placement");
    if (json_is_present(&placement) && json_size(&placement) != num_nodes)
        return json_error(&placement, "%d nodes; expected each of the cluster's %d",
                          json_size(&placement), num_nodes);
    cJSON_ArrayForEach(item, placement.item) {
        JsonNode node = {.file = value->file, .item = item, .parent = &placement, .index = i++};
        TRY(json_read_int(&node, 0, num_nodes - 1, &index));
    }
    JsonNode layers = json_get(value, "layers");
    i = 0;
    cJSON_ArrayForEach(item, layers.item) {
        JsonNode entry = {.file = value->file, .item = item, .parent = &layers, .index = i++};
        JsonNode to = json_get(&entry, "to");
        TRY(json_read_int(&to, 0, num_layers - 1, &index));
    }
    return status_ok();
}

bool parallel_degrees_stated(const ParallelSpec *spec) {
    return spec->tp != ABSENT && spec->cp != ABSENT && spec->dp != ABSENT && spec->pp != ABSENT;
}
