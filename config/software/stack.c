#include "config/software/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/data_dir.h"
#include "config/machine/gpu.h"
#include "config/software/rules.h"

#define NUMBER(section, key, low, high)                                                            \
    { #key, JSON_FIELD_DOUBLE, offsetof(Stack, section.key), low, high, NULL, true }
#define INTEGER(section, key, low, high)                                                           \
    { #key, JSON_FIELD_INT, offsetof(Stack, section.key), low, high, NULL, true }
#define SWITCH(section, key)                                                                       \
    { #key, JSON_FIELD_BOOL, offsetof(Stack, section.key), 0, 0, NULL, true }
#define NAME(section, key, names)                                                                  \
    { #key, JSON_FIELD_NAME, offsetof(Stack, section.key), 0, 0, names, true }
#define REQUIRED(key)                                                                              \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, true }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, false }

const char *const GRAD_REDUCE_NAMES[] = {"step", "micro_batch", NULL};
const char *const STACK_GRAD_REDUCE_NAMES[] = {"step", "micro_batch", "pipeline_step", NULL};
const char *const ADAPTER_NAMES[] = {"lora", "dora", NULL};
const char *const BASE_DTYPE_NAMES[] = {"fp32", "bf16", "nf4", "fp4", NULL};

static const char *const LASTING_GATHERS_NAMES[] = {"none", "head", "all", NULL};
static const char *const WEIGHT_GRADIENT_NAMES[] = {"separate", "in-place", "placeholder", NULL};
static const char *const SHARDING_NAMES[] = {"plain", "flat", "per-parameter", "summed", NULL};

static const JsonField HEAD_FIELDS[] = {
    REQUIRED("schema"),
    {"name", JSON_FIELD_STRING, offsetof(Stack, name), 0, 0, NULL, true},
    {"title", JSON_FIELD_STRING, offsetof(Stack, title), 0, 0, NULL, true},
    REQUIRED("launch"),
    REQUIRED("communication"),
    REQUIRED("residency"),
    OTHER("training"),
    OTHER("defaults"),
    REQUIRED("sources"),
    OTHER("releases"),
    OTHER("adapters"),
};

static const JsonField LAUNCH_FIELDS[] = {
    SWITCH(launch, fused_norm),
    SWITCH(launch, fused_activation),
    INTEGER(launch, attention_generation, 1, 4),
    SWITCH(launch, fused_softmax),
    SWITCH(launch, fused_rope),
    NUMBER(launch, host_launch_s, 0, 1e-3),
    NUMBER(launch, host_compiled_frac, 0, 1),
    NUMBER(launch, host_layer_s, 0, 1),
    NUMBER(launch, host_step_s, 0, 10),
    NUMBER(launch, host_expert_s, 0, 1),
    NUMBER(launch, moe_sync_s, 0, 1),
    NUMBER(launch, eager_overhead_frac, 0, 10),
    NUMBER(launch, quantize_overhead_frac, 0, 10),
    NUMBER(launch, transpose_overhead_frac, 0, 10),
    NUMBER(launch, moe_overhead_frac, 0, 10),
};

static const JsonField COMMUNICATION_FIELDS[] = {
    SWITCH(communication, p2p_overlap),
    SWITCH(communication, p2p_scatter_gather),
    NUMBER(communication, overlap_slowdown_frac, 0, 1),
};

static const JsonField RESIDENCY_FIELDS[] = {
    NAME(residency, lasting_gathers, LASTING_GATHERS_NAMES),
    SWITCH(residency, keeps_gathered_inputs),
    SWITCH(residency, adds_in_place),
    SWITCH(residency, copies_attention_steps),
    SWITCH(residency, splits_heads),
    NUMBER(residency, workspace_bytes, 0, 1e10),
    NUMBER(residency, grouped_workspace_bytes, 0, 1e10),
    NUMBER(residency, allocator_slack_frac, 0, 1),
    NUMBER(residency, context_bytes, 0, 1e11),
    NUMBER(residency, comm_bytes_per_group, 0, 1e11),
};

static const JsonField TRAINING_FIELDS[] = {
    NUMBER(training, weight_bytes_per_param, 1, 8),
    NUMBER(training, master_bytes_per_param, 0, 8),
    NUMBER(training, grad_bytes_per_param, 0, 8),
    NUMBER(training, grad_copy_bytes_per_param, 0, 8),
    NAME(training, weight_gradient, WEIGHT_GRADIENT_NAMES),
    SWITCH(training, keeps_gradients),
    SWITCH(training, gathers_in_compute_dtype),
    NAME(training, sharding, SHARDING_NAMES),
    SWITCH(training, shards_over_cp),
    SWITCH(training, gathers_ahead),
    SWITCH(training, checkpoint_early_stop),
    SWITCH(training, selective_per_operator),
    SWITCH(training, scatters_beside_weights),
    SWITCH(training, splits_positions),
    SWITCH(training, sums_in_backward),
    NUMBER(training, bucket_bytes, 1, 1e12),
    SWITCH(training, weights_by_broadcast),
    SWITCH(training, tp_backward_overlap),
    SWITCH(training, loss_in_place),
    SWITCH(training, loss_gradient_in_forward),
    NUMBER(training, loss_gradient_bytes, 0, 64),
    NUMBER(training, parallel_loss_gradient_bytes, 0, 64),
    SWITCH(training, dropout),
    SWITCH(training, fused_optimizer),
    NUMBER(training, host_microbatch_s, 0, 1),
};

#define STATED(key) SWITCH(defaults, key),
#define OFF(key)
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) stacks(key)

static const JsonField DEFAULTS_FIELDS[] = {
#include "config/software/techniques.def"
    SWITCH(defaults, compile),
    SWITCH(defaults, cross_entropy_fused),
    REQUIRED("grad_reduce_precision"),
    REQUIRED("fp16_grad_reduce_precision"),
    INTEGER(defaults, default_zero_stage, 0, 3),
    SWITCH(defaults, sequence_parallel),
    NAME(defaults, grad_reduce, STACK_GRAD_REDUCE_NAMES),
};

// The sections of a file. All that they state needs an entry in `sources`.
typedef struct {
    const char *key;
    const JsonField *fields;
    int num_fields;
    bool of_training; // not there in the file of an inference engine
} Section;

#define SECTION(key, fields, of_training)                                                          \
    { key, fields, sizeof fields / sizeof *fields, of_training }

static const Section SECTIONS[] = {
    SECTION("launch", LAUNCH_FIELDS, false),
    SECTION("communication", COMMUNICATION_FIELDS, false),
    SECTION("residency", RESIDENCY_FIELDS, false),
    SECTION("training", TRAINING_FIELDS, true),
    SECTION("defaults", DEFAULTS_FIELDS, true),
};
enum { NUM_SECTIONS = sizeof SECTIONS / sizeof *SECTIONS, MAX_FACTS = 80 };

Status dtype_read(const JsonNode *node, int *precision) {
    static const char *const NAMES[] = {"fp32", "bf16", NULL};
    int index;
    TRY(json_read_name(node, NAMES, &index));
    *precision = index == 0 ? PRECISION_FP32 : PRECISION_BF16;
    return status_ok();
}

// The facts of a stack that trains, or of one that does not.
static int facts_of(bool trains, JsonField facts[MAX_FACTS]) {
    int num = 0;
    for (int i = 0; i < NUM_SECTIONS; i++) {
        if (SECTIONS[i].of_training && !trains) continue;
        for (int k = 0; k < SECTIONS[i].num_fields; k++) facts[num++] = SECTIONS[i].fields[k];
    }
    return num;
}

// Every property of the software has a text that says where it is from.
static Status sources_check(const JsonNode *sources, bool trains, Arena *arena) {
    JsonField facts[MAX_FACTS];
    const int num_facts = facts_of(trains, facts);
    TRY(json_expect_object(sources));
    TRY(json_refuse_unknown(sources, facts, (size_t)num_facts));
    for (int i = 0; i < num_facts; i++) {
        JsonNode source = json_get(sources, facts[i].key);
        const char *text;
        TRY(json_read_string(&source, arena, &text));
    }
    return status_ok();
}

static Status sections_read(const JsonNode *root, Arena *arena, Stack *stack) {
    const JsonNode training = json_get(root, "training"), defaults = json_get(root, "defaults");
    stack->trains = json_is_present(&training) || json_is_present(&defaults);
    for (int i = 0; i < NUM_SECTIONS; i++) {
        const Section *section = &SECTIONS[i];
        if (section->of_training && !stack->trains) continue;
        const JsonNode node = json_get(root, section->key);
        TRY(json_expect_object(&node));
        TRY(json_read_object(&node, section->fields, (size_t)section->num_fields, arena, stack));
    }
    if (!stack->trains) return status_ok();
    const JsonNode precision = json_get(&defaults, "grad_reduce_precision");
    const JsonNode of_fp16 = json_get(&defaults, "fp16_grad_reduce_precision");
    TRY(dtype_read(&precision, &stack->defaults.grad_reduce_precision));
    return dtype_read(&of_fp16, &stack->defaults.fp16_grad_reduce_precision);
}

// A list of names, of which those that are in it are set.
//   first  NULL, or the first one's index
static Status names_set(const JsonNode *list, const char *const *names, bool *set, int *first) {
    TRY(json_expect_array(list));
    for (int i = 0; i < json_size(list); i++) {
        const JsonNode item = json_at(list, i);
        int index;
        TRY(json_read_name(&item, names, &index));
        set[index] = true;
        if (i == 0 && first) *first = index;
    }
    return status_ok();
}

static Status adapters_read(const JsonNode *root, Arena *arena, StackAdapters *out) {
    static const JsonField FIELDS[] = {REQUIRED("kinds"), REQUIRED("base_dtypes"),
                                       REQUIRED("source")};
    const JsonNode node = json_get(root, "adapters");
    if (!json_is_present(&node)) return status_ok();
    TRY(json_read_object(&node, FIELDS, sizeof FIELDS / sizeof *FIELDS, arena, out));
    const JsonNode kinds = json_get(&node, "kinds"), dtypes = json_get(&node, "base_dtypes");
    const JsonNode source = json_get(&node, "source");
    const char *text;
    TRY(names_set(&kinds, ADAPTER_NAMES, out->kinds + ADAPTER_LORA, NULL));
    TRY(names_set(&dtypes, BASE_DTYPE_NAMES, out->base_dtypes, &out->base_dtype));
    return json_read_string(&source, arena, &text);
}

Status stack_read(const JsonNode *root, Arena *arena, Stack *out) {
    Stack stack = {0};
    TRY(json_read_object(root, HEAD_FIELDS, sizeof HEAD_FIELDS / sizeof *HEAD_FIELDS, arena,
                         &stack));
    JsonNode schema = json_get(root, "schema");
    int version;
    TRY(json_read_int(&schema, 1, 1, &version));
    TRY(sections_read(root, arena, &stack));
    TRY(adapters_read(root, arena, &stack.adapters));
    JsonNode sources = json_get(root, "sources");
    TRY(sources_check(&sources, stack.trains, arena));
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
    JsonField fields[3 + MAX_FACTS] = {{"before", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
                                       {"from", JSON_FIELD_OTHER, 0, 0, 0, NULL, false},
                                       {"source", JSON_FIELD_OTHER, 0, 0, 0, NULL, true}};
    JsonField facts[MAX_FACTS];
    const int num_facts = facts_of(stack->trains, facts);
    size_t num_fields = 3;
    for (int i = 0; i < num_facts; i++) {
        if (facts[i].kind == JSON_FIELD_OTHER) continue;
        fields[num_fields] = facts[i];
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
    return stack->training.sharding == SHARDING_FLAT ||
           stack->training.sharding == SHARDING_PER_PARAMETER;
}

Status stack_read_name(const JsonNode *value, Arena *arena, const char **out) {
    const char *const *names;
    int index;
    TRY(stack_names(arena, &names));
    TRY(json_read_name(value, names, &index));
    *out = names[index];
    return status_ok();
}
