#include "config/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/data_dir.h"
#include "config/gpu.h"
#include "config/rules.h"

#define NUMBER(key, low, high)                                                                     \
    { #key, JSON_FIELD_DOUBLE, offsetof(Stack, key), low, high, NULL, true }
#define SWITCH(key)                                                                                \
    { #key, JSON_FIELD_BOOL, offsetof(Stack, key), 0, 0, NULL, true }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }

static const char *const LASTING_GATHERS_NAMES[] = {"none", "head", "all", NULL};
static const char *const WEIGHT_GRADIENT_NAMES[] = {"separate", "in-place", "placeholder", NULL};
static const char *const SHARDING_NAMES[] = {"plain", "flat", "per-parameter", "summed", NULL};

// The first rows say what the file is; all that follow need an entry in `sources`.
enum { NUM_HEAD_FIELDS = 5 };

static const JsonField STACK_FIELDS[] = {
    OTHER("schema"),
    {"name", JSON_FIELD_STRING, offsetof(Stack, name), 0, 0, NULL, true},
    {"title", JSON_FIELD_STRING, offsetof(Stack, title), 0, 0, NULL, true},
    OTHER("sources"),
    {"releases", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
    SWITCH(overlap_grad_reduce),
    SWITCH(overlap_param_gather),
    SWITCH(tp_comm_overlap),
    SWITCH(ep_overlap),
    SWITCH(compile),
    SWITCH(cross_entropy_fused),
    OTHER("grad_reduce_precision"),
    {"default_zero_stage", JSON_FIELD_INT, offsetof(Stack, default_zero_stage), 0, 3, NULL, true},
    SWITCH(checkpoint_early_stop),
    SWITCH(selective_per_operator),
    NUMBER(weight_bytes_per_param, 1, 8),
    NUMBER(master_bytes_per_param, 0, 8),
    NUMBER(grad_bytes_per_param, 0, 8),
    {"weight_gradient", JSON_FIELD_NAME, offsetof(Stack, weight_gradient), 0, 0,
     WEIGHT_GRADIENT_NAMES, true},
    SWITCH(gathers_in_compute_dtype),
    {"sharding", JSON_FIELD_NAME, offsetof(Stack, sharding), 0, 0, SHARDING_NAMES, true},
    SWITCH(shards_over_cp),
    SWITCH(gathers_ahead),
    {"lasting_gathers", JSON_FIELD_NAME, offsetof(Stack, lasting_gathers), 0, 0,
     LASTING_GATHERS_NAMES, true},
    SWITCH(keeps_gathered_inputs),
    SWITCH(scatters_beside_weights),
    SWITCH(splits_positions),
    SWITCH(keeps_gradients),
    SWITCH(loss_in_place),
    SWITCH(loss_gradient_in_forward),
    SWITCH(adds_in_place),
    SWITCH(copies_attention_steps),
    SWITCH(splits_heads),
    NUMBER(loss_gradient_bytes, 0, 64),
    NUMBER(parallel_loss_gradient_bytes, 0, 64),
    SWITCH(fused_norm),
    SWITCH(fused_activation),
    {"attention_generation", JSON_FIELD_INT, offsetof(Stack, attention_generation), 1, 4, NULL,
     true},
    SWITCH(fused_softmax),
    SWITCH(fused_rope),
    SWITCH(dropout),
    SWITCH(fused_optimizer),
    NUMBER(host_launch_s, 0, 1e-3),
    NUMBER(host_compiled_frac, 0, 1),
    NUMBER(host_layer_s, 0, 1),
    NUMBER(host_microbatch_s, 0, 1),
    NUMBER(host_step_s, 0, 10),
    NUMBER(moe_sync_s, 0, 1),
    SWITCH(tp_backward_overlap),
    SWITCH(p2p_overlap),
    SWITCH(p2p_scatter_gather),
    SWITCH(sums_in_backward),
    NUMBER(bucket_bytes, 1, 1e12),
    SWITCH(weights_by_broadcast),
    NUMBER(overlap_slowdown_frac, 0, 1),
    NUMBER(eager_overhead_frac, 0, 10),
    NUMBER(quantize_overhead_frac, 0, 10),
    NUMBER(transpose_overhead_frac, 0, 10),
    NUMBER(moe_overhead_frac, 0, 10),
    NUMBER(workspace_bytes, 0, 1e10),
    NUMBER(grouped_workspace_bytes, 0, 1e10),
    NUMBER(allocator_slack_frac, 0, 1),
    NUMBER(context_bytes, 0, 1e11),
    NUMBER(comm_bytes_per_group, 0, 1e11),
};
enum { NUM_STACK_FIELDS = sizeof STACK_FIELDS / sizeof *STACK_FIELDS };

Status dtype_read(const JsonNode *node, int *precision) {
    static const char *const NAMES[] = {"fp32", "bf16", NULL};
    int index;
    TRY(json_read_name(node, NAMES, &index));
    *precision = index == 0 ? PRECISION_FP32 : PRECISION_BF16;
    return status_ok();
}

// Every property of the software has a text that says where it is from.
static Status sources_check(const JsonNode *sources, Arena *arena) {
    TRY(json_expect_object(sources));
    TRY(json_refuse_unknown(sources, STACK_FIELDS + NUM_HEAD_FIELDS,
                            NUM_STACK_FIELDS - NUM_HEAD_FIELDS));
    for (int i = NUM_HEAD_FIELDS; i < NUM_STACK_FIELDS; i++) {
        JsonNode source = json_get(sources, STACK_FIELDS[i].key);
        const char *text;
        TRY(json_read_string(&source, arena, &text));
    }
    return status_ok();
}

Status stack_read(const JsonNode *root, Arena *arena, Stack *out) {
    Stack stack = {0};
    TRY(json_read_object(root, STACK_FIELDS, NUM_STACK_FIELDS, arena, &stack));
    JsonNode schema = json_get(root, "schema");
    int version;
    TRY(json_read_int(&schema, 1, 1, &version));
    JsonNode precision = json_get(root, "grad_reduce_precision");
    TRY(dtype_read(&precision, &stack.grad_reduce_precision));
    JsonNode sources = json_get(root, "sources");
    TRY(sources_check(&sources, arena));
    JsonNode *kept = ARENA_NEW(arena, JsonNode); // what its members point to
    *kept = *root;
    stack.releases = json_get(kept, "releases");
    if (json_is_present(&stack.releases)) TRY(json_expect_array(&stack.releases));
    return stack_at_release(&stack, NULL, arena, out); // checks the entries
}

// Numbers with a dot between them.
static bool is_version(const char *text) {
    for (;;) {
        size_t num_digits = strspn(text, "0123456789");
        if (num_digits == 0) return false;
        text += num_digits;
        if (*text != '.') return *text == '\0';
        text++;
    }
}

// Compares releases such as 25.09 and 26.02.01, number by number.
static int version_compare(const char *a, const char *b) {
    while (*a || *b) {
        char *end_a, *end_b;
        long x = strtol(a, &end_a, 10), y = strtol(b, &end_b, 10);
        if (x != y) return x < y ? -1 : 1;
        if (end_a == a && end_b == b) return 0;
        a = *end_a == '.' ? end_a + 1 : end_a;
        b = *end_b == '.' ? end_b + 1 : end_b;
    }
    return 0;
}

// An entry of `releases`: what the stack was before a release, or is from one on.
typedef struct {
    const char *version;
    bool from; // or before
    Stack stack;
} Release;

// Reads one entry over a copy of the stack.
static Status release_read(const JsonNode *entry, const Stack *stack, Arena *arena, Release *out) {
    JsonField fields[3 + NUM_STACK_FIELDS] = {{"before", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
                                              {"from", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
                                              {"source", JSON_FIELD_OTHER, 0, 0, 0, NULL, true}};
    size_t num_fields = 3;
    for (int i = NUM_HEAD_FIELDS; i < NUM_STACK_FIELDS; i++) {
        if (STACK_FIELDS[i].kind == JSON_FIELD_OTHER) continue;
        fields[num_fields] = STACK_FIELDS[i];
        fields[num_fields++].required = false;
    }
    out->stack = *stack;
    TRY(json_read_object(entry, fields, num_fields, arena, &out->stack));
    JsonNode before = json_get(entry, "before"), from = json_get(entry, "from");
    JsonNode source = json_get(entry, "source");
    const char *text;
    TRY(json_read_string(&source, arena, &text));
    out->from = json_is_present(&from);
    if (out->from == json_is_present(&before))
        return json_error(entry, "has %s; expected before or from", out->from ? "both" : "neither");
    const JsonNode *version = out->from ? &from : &before;
    TRY(json_read_string(version, arena, &out->version));
    if (!is_version(out->version))
        return json_error(version, "\"%.20s\"; expected numbers with dots", out->version);
    return status_ok();
}

// Whether a release is one that the entry speaks of.
static bool release_covers(const Release *entry, const char *version) {
    if (!version || !is_version(version)) return false;
    return version_compare(version, entry->version) >= 0 ? entry->from : !entry->from;
}

Status stack_at_release(const Stack *usual, const char *version, Arena *arena, Stack *out) {
    const char *nearest = NULL;
    bool from = false;
    *out = *usual;
    for (int i = 0; i < json_size(&usual->releases); i++) {
        JsonNode node = json_at(&usual->releases, i);
        Release entry;
        TRY(release_read(&node, usual, arena, &entry));
        if (i > 0 && entry.from != from)
            return json_error(&node, "all entries say before, or all say from");
        from = entry.from;
        if (!release_covers(&entry, version)) continue;
        const int order = nearest ? version_compare(entry.version, nearest) : 0;
        if (nearest && (entry.from ? order <= 0 : order >= 0)) continue;
        nearest = entry.version;
        *out = entry.stack;
    }
    return status_ok();
}

Status stack_check_version(const JsonNode *node, const Stack *stack, const char *version) {
    if (json_size(&stack->releases) == 0 || is_version(version)) return status_ok();
    JsonNode entry = json_at(&stack->releases, 0);
    JsonNode before = json_get(&entry, "before"), from = json_get(&entry, "from");
    return json_error(node, "\"%.60s\" is no release of %s; expected numbers with dots, such as %s",
                      version, stack->name,
                      (json_is_present(&from) ? from : before).item->valuestring);
}

Status stack_names(Arena *arena, const char *const **names) {
    int num_names;
    return data_list(arena, "stacks", names, &num_names);
}

Status stack_load_named(const char *name, Arena *arena, Stack *out) {
    const char *const *names;
    TRY(stack_names(arena, &names));
    bool known = false;
    for (int i = 0; names[i] && !known; i++) known = strcmp(names[i], name) == 0;
    if (!known) return status_error(STATUS_INVALID, "stack \"%.60s\" is unknown", name);
    JsonNode root;
    TRY(json_load(data_path(arena, "stacks", name), arena, &root));
    TRY(stack_read(&root, arena, out));
    if (strcmp(out->name, name) != 0) {
        JsonNode own_name = json_get(&root, "name");
        return json_error(&own_name, "\"%.60s\" differs from the file's name", out->name);
    }
    return rules_load(name, arena, &out->rules);
}

bool stack_keeps_gathered(const Stack *stack) {
    return stack->sharding == SHARDING_FLAT || stack->sharding == SHARDING_PER_PARAMETER;
}

Status stack_read_name(const JsonNode *value, Arena *arena, const char **out) {
    const char *const *names;
    int index;
    TRY(stack_names(arena, &names));
    TRY(json_read_name(value, names, &index));
    *out = names[index];
    return status_ok();
}
