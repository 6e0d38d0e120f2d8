#include "config/training.h"

#include "config/kernel_shelf.h"

#include <math.h>
#include <string.h>

const char *const FP8_RECIPE_NAMES[] = {"delayed", "current", "tensorwise", "rowwise",
                                        "block",   "mxfp8",   "nvfp4",      NULL};
const char *const OPTIMIZER_NAMES[] = {"adam", "sgd", "muon", NULL};
const char *const ATTENTION_NAMES[] = {"flash", "unfused", NULL};
const char *const MOE_DISPATCHER_NAMES[] = {"alltoall", "allgather", "deepep", "hybridep", NULL};

#define NAME(key, list)                                                                            \
    { #key, JSON_FIELD_NAME, offsetof(Training, key), 0, 0, list, false }
#define SWITCH(key)                                                                                \
    { #key, JSON_FIELD_BOOL, offsetof(Training, key), 0, 0, NULL, false }
#define OTHER(key)                                                                                 \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, false }

static const JsonField TRAINING_FIELDS[] = {
    {"seq_len", JSON_FIELD_INT64, offsetof(Training, seq_len), 1, 1e8, NULL, true},
    {"global_batch", JSON_FIELD_INT64, offsetof(Training, global_batch), 1, 1e9, NULL, true},
    NAME(precision, PRECISION_NAMES),
    NAME(fp8_recipe, FP8_RECIPE_NAMES),
    NAME(optimizer, OPTIMIZER_NAMES),
    OTHER("optimizer_dtype"),
    OTHER("grad_reduce_dtype"),
    OTHER("stack"),
    {"stack_version", JSON_FIELD_STRING, offsetof(Training, stack_version), 0, 0, NULL, false},
    NAME(attention, ATTENTION_NAMES),
    SWITCH(overlap_grad_reduce),
    SWITCH(overlap_param_gather),
    SWITCH(tp_comm_overlap),
    SWITCH(ep_overlap),
    SWITCH(compile),
    SWITCH(cross_entropy_fused),
    SWITCH(optimizer_post_validation),
    OTHER("cuda_graphs"),
    SWITCH(causal),
    {"images_per_sequence", JSON_FIELD_INT, offsetof(Training, images_per_sequence), 1, 1e6, NULL,
     false},
    {"image_size", JSON_FIELD_INT, offsetof(Training, image_size), 1, 16384, NULL, false},
    {"encoder_seq_len", JSON_FIELD_INT64, offsetof(Training, encoder_seq_len), 1, 1e8, NULL, false},
    OTHER("moe_routing"),
    NAME(moe_dispatcher, MOE_DISPATCHER_NAMES),
    {"capacity_factor", JSON_FIELD_DOUBLE, offsetof(Training, capacity_factor), 1e-3, 1e3, NULL,
     false},
    OTHER("sequence_lengths"),
};

// What an absent key means; the switches are the stack's.
static Training training_defaults(const Stack *stack) {
    return (Training){
        .precision = PRECISION_BF16,
        .fp8_recipe = -1, // by the precision, once it is known
        .optimizer_precision = PRECISION_FP32,
        .grad_reduce_precision = stack->grad_reduce_precision,
        .stack = *stack,
        .overlap_grad_reduce = stack->overlap_grad_reduce,
        .overlap_param_gather = stack->overlap_param_gather,
        .tp_comm_overlap = stack->tp_comm_overlap,
        .ep_overlap = stack->ep_overlap,
        .compile = stack->compile,
        .cross_entropy_fused = stack->cross_entropy_fused,
        .causal = true,
        .moe_imbalance = 1,
    };
}

static Status precision_check(const JsonNode *node, const Gpu *gpu, int precision) {
    if (gpu->peak_flops_per_s[precision] > 0) return status_ok();
    char list[100] = "";
    size_t used = 0;
    for (int i = 0; i < NUM_PRECISIONS; i++)
        if (gpu->peak_flops_per_s[i] > 0 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                     PRECISION_NAMES[i]);
    return json_error(node, "%s is not supported by %s; expected one of %s",
                      PRECISION_NAMES[precision], gpu->name, list);
}

// mxfp8 and nvfp4 are recipes of their own; with 16 bits and more a recipe is without effect.
static Status fp8_recipe_resolve(const JsonNode *node, int precision, int *recipe) {
    int own = precision == PRECISION_MXFP8   ? FP8_MXFP8
              : precision == PRECISION_NVFP4 ? FP8_NVFP4
                                             : FP8_DELAYED;
    if (*recipe < 0) *recipe = own;
    if (own != FP8_DELAYED && *recipe != own)
        return json_error(node, "%s does not go with precision %s; expected %s",
                          FP8_RECIPE_NAMES[*recipe], PRECISION_NAMES[precision],
                          FP8_RECIPE_NAMES[own]);
    if (precision == PRECISION_FP8 && *recipe >= FP8_MXFP8)
        return json_error(node,
                          "%s does not go with precision fp8; expected precision %s or one of "
                          "delayed, current, tensorwise, rowwise, block",
                          FP8_RECIPE_NAMES[*recipe], FP8_RECIPE_NAMES[*recipe]);
    return status_ok();
}

typedef struct {
    const char *name;
    int bits; // 0: legal for Megatron-LM, not supported yet
} GraphScope;

static const GraphScope GRAPH_SCOPES[] = {
    {"attn", GRAPH_ATTN},
    {"moe_router", GRAPH_MOE_ROUTER},
    {"moe_preprocess", GRAPH_MOE_PREPROCESS},
    {"mlp", 0},
    {"moe", 0},
    {"mamba", 0},
};

static Status graph_scope_read(const JsonNode *node, const char *name, size_t length, int *bits) {
    for (size_t i = 0; i < sizeof GRAPH_SCOPES / sizeof *GRAPH_SCOPES; i++) {
        const GraphScope *scope = &GRAPH_SCOPES[i];
        if (strlen(scope->name) != length || strncmp(scope->name, name, length) != 0) continue;
        if (!scope->bits) return json_error(node, "scope %s is not supported yet", scope->name);
        if (*bits & scope->bits) return json_error(node, "%s stands here twice", scope->name);
        *bits |= scope->bits;
        return status_ok();
    }
    return json_error(node,
                      "\"%.*s\" is unknown; expected none, full, layer, or a list of attn, "
                      "moe_router, moe_preprocess joined by commas",
                      (int)(length < 60 ? length : 60), name);
}

static Status cuda_graphs_read(const JsonNode *node, Arena *arena, int *bits) {
    if (!json_is_present(node)) return status_ok();
    const char *text;
    TRY(json_read_string(node, arena, &text));
    *bits = strcmp(text, "full") == 0 ? GRAPH_FULL : strcmp(text, "layer") == 0 ? GRAPH_LAYER : 0;
    if (*bits || strcmp(text, "none") == 0) return status_ok();
    for (const char *name = text;;) {
        size_t length = strcspn(name, ",");
        TRY(graph_scope_read(node, name, length, bits));
        if (!name[length]) return status_ok();
        name += length + 1;
    }
}

static Status moe_routing_read(const JsonNode *node, Arena *arena, double *imbalance) {
    static const JsonField FIELDS[] = {
        {"imbalance", JSON_FIELD_DOUBLE, 0, 1, 1e4, NULL, true},
    };
    if (!json_is_present(node)) return status_ok();
    if (cJSON_IsObject(node->item)) return json_read_object(node, FIELDS, 1, arena, imbalance);
    if (cJSON_IsString(node->item) && strcmp(node->item->valuestring, "balanced") == 0)
        return status_ok();
    if (cJSON_IsString(node->item))
        return json_error(node, "\"%.60s\" is unknown; expected balanced or {\"imbalance\": x}",
                          node->item->valuestring);
    return json_error(node, "expected balanced or {\"imbalance\": x}, found %s",
                      json_type_name(node));
}

static Status sequence_lengths_read(const JsonNode *node, Arena *arena, Training *out) {
    if (!json_is_present(node)) return status_ok();
    const JsonField fields[] = {
        {"length", JSON_FIELD_INT64, offsetof(LengthShare, length), 1, 1e8, NULL, true},
        {"frac", JSON_FIELD_DOUBLE, offsetof(LengthShare, frac), 0, 1, NULL, true},
    };
    TRY(json_expect_array(node));
    LengthShare *shares = ARENA_ARRAY(arena, json_size(node), LengthShare);
    double sum = 0;
    int index = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, node->item) {
        JsonNode entry = {.file = node->file, .item = item, .parent = node, .index = index};
        LengthShare *share = &shares[index++];
        TRY(json_read_object(&entry, fields, 2, arena, share));
        if (share->length > out->seq_len)
            return json_error(&entry, "length %lld is more than seq_len %lld",
                              (long long)share->length, (long long)out->seq_len);
        sum += share->frac;
    }
    if (fabs(sum - 1) > 1e-6)
        return json_error(node, "the fractions add up to %.9g; expected 1", sum);
    out->sequence_lengths = shares;
    out->num_sequence_lengths = index;
    return status_ok();
}

static Status dtypes_read(const JsonNode *value, Training *out) {
    JsonNode optimizer = json_get(value, "optimizer_dtype");
    if (json_is_present(&optimizer)) TRY(dtype_read(&optimizer, &out->optimizer_precision));
    JsonNode reduce = json_get(value, "grad_reduce_dtype");
    if (json_is_present(&reduce)) TRY(dtype_read(&reduce, &out->grad_reduce_precision));
    return status_ok();
}

Status training_check_gpu(const JsonNode *value, const Gpu *gpu, const Training *training) {
    JsonNode precision = json_get(value, "precision");
    return precision_check(&precision, gpu, training->precision);
}

static Status stack_take(const JsonNode *value, KernelShelf *shelf, Arena *arena, Stack *out) {
    const JsonNode node = json_get(value, "stack");
    const char *name = "megatron-core";
    if (json_is_present(&node)) TRY(stack_read_name(&node, arena, &name));
    return kernel_shelf_stack(shelf, name, arena, out);
}

Status training_load(const JsonNode *value, const Gpu *gpu, KernelShelf *shelf, Arena *arena,
                     Training *out) {
    TRY(json_expect_object(value));
    Stack stack;
    TRY(stack_take(value, shelf, arena, &stack));

    JsonNode version_node = json_get(value, "stack_version");
    const char *version = NULL;
    if (json_is_present(&version_node)) {
        TRY(json_read_string(&version_node, arena, &version));
        TRY(stack_check_version(&version_node, &stack, version));
    }
    Stack released;
    TRY(stack_at_release(&stack, version, arena, &released));
    Training training = training_defaults(&released);
    TRY(json_read_object(value, TRAINING_FIELDS, sizeof TRAINING_FIELDS / sizeof *TRAINING_FIELDS,
                         arena, &training));
    TRY(training_check_gpu(value, gpu, &training));
    JsonNode recipe = json_get(value, "fp8_recipe");
    TRY(fp8_recipe_resolve(&recipe, training.precision, &training.fp8_recipe));
    TRY(dtypes_read(value, &training));
    JsonNode graphs = json_get(value, "cuda_graphs");
    TRY(cuda_graphs_read(&graphs, arena, &training.cuda_graphs));
    JsonNode routing = json_get(value, "moe_routing");
    TRY(moe_routing_read(&routing, arena, &training.moe_imbalance));
    if (training.moe_dispatcher == DISPATCH_DEEPEP || training.moe_dispatcher == DISPATCH_HYBRIDEP)
        TRY(dispatcher_load_named(MOE_DISPATCHER_NAMES[training.moe_dispatcher], arena,
                                  &training.dispatcher));
    JsonNode lengths = json_get(value, "sequence_lengths");
    TRY(sequence_lengths_read(&lengths, arena, &training));
    *out = training;
    return status_ok();
}
