#include "config/software/execution.h"

#include "config/machine/gpu.h"
#include "config/software/kernel_shelf.h"

#include <stdio.h>
#include <string.h>

const char *const FP8_RECIPE_NAMES[] = {"delayed", "current", "tensorwise", "rowwise",
                                        "block",   "mxfp8",   "nvfp4",      NULL};
const char *const ATTENTION_NAMES[] = {"flash", "unfused", NULL};
const char *const MOE_DISPATCHER_NAMES[] = {"alltoall", "allgather", "deepep", "hybridep", NULL};

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

static Status dtypes_read(const JsonNode *value, Execution *out) {
    JsonNode optimizer = json_get(value, "optimizer_dtype");
    if (json_is_present(&optimizer)) TRY(dtype_read(&optimizer, &out->optimizer_precision));
    JsonNode reduce = json_get(value, "grad_reduce_dtype");
    if (json_is_present(&reduce)) TRY(dtype_read(&reduce, &out->grad_reduce_precision));
    return status_ok();
}

Status execution_check_gpu(const JsonNode *value, const Gpu *gpu, const Execution *execution) {
    JsonNode precision = json_get(value, "precision");
    return precision_check(&precision, gpu, execution->precision);
}

static Status stack_take(const JsonNode *value, KernelShelf *shelf, Arena *arena, Stack *out) {
    const JsonNode node = json_get(value, "stack");
    const char *name = "megatron-core";
    if (json_is_present(&node)) TRY(stack_read_name(&node, arena, &name));
    return kernel_shelf_stack(shelf, name, arena, out);
}

// What an absent key means; the switches are the stack's.
static Execution defaults_of(const Stack *stack, const char *version) {
    return (Execution){
        .stack = *stack,
        .stack_version = version,
        .precision = PRECISION_BF16,
        .fp8_recipe = -1, // by the precision, once it is known
        .optimizer_precision = PRECISION_FP32,
        .grad_reduce_precision = stack->defaults.grad_reduce_precision,
        .grad_reduce = stack->defaults.grad_reduce,
#define TECHNIQUE_SWITCH(kind, key, stacks, search, simulate) .key = stack->defaults.key,
#include "config/software/techniques.def"
        .compile = stack->defaults.compile,
        .cross_entropy_fused = stack->defaults.cross_entropy_fused,
    };
}

Status execution_default(const JsonNode *value, KernelShelf *shelf, Arena *arena, Execution *out) {
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
    *out = defaults_of(&released, version);
    return status_ok();
}

Status execution_complete(const JsonNode *value, const Gpu *gpu, Arena *arena,
                          Execution *execution) {
    TRY(execution_check_gpu(value, gpu, execution));
    JsonNode recipe = json_get(value, "fp8_recipe");
    TRY(fp8_recipe_resolve(&recipe, execution->precision, &execution->fp8_recipe));
    if (execution->precision == PRECISION_FP16)
        execution->grad_reduce_precision = execution->stack.defaults.fp16_grad_reduce_precision;
    TRY(dtypes_read(value, execution));
    JsonNode graphs = json_get(value, "cuda_graphs");
    TRY(cuda_graphs_read(&graphs, arena, &execution->cuda_graphs));
    if (execution->moe_dispatcher != DISPATCH_DEEPEP &&
        execution->moe_dispatcher != DISPATCH_HYBRIDEP)
        return status_ok();
    return dispatcher_load_named(MOE_DISPATCHER_NAMES[execution->moe_dispatcher], arena,
                                 &execution->dispatcher);
}
