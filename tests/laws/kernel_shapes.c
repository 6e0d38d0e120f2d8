#include "tests/laws/kernel_shapes.h"

#include <math.h>
#include <string.h>

static const char *const ATTENTION_DIMENSIONS[] = {"batch_size", "isl", "num_heads", NULL};
static const char *const STEP_DIMENSIONS[] = {"batch_size", "step", "num_heads", NULL};
static const char *const GEMM_DIMENSIONS[] = {"m", "n", "k", NULL};
static const char *const MOE_DIMENSIONS[] = {"num_tokens", "hidden_size", "inter_size", NULL};
static const char *const NCCL_DIMENSIONS[] = {"message_size", "num_gpus", NULL};

// Between `least` and `most` alike on every scale; often a multiple of a tile, or one less.
static double size_draw(Draw *draw, double least, double most) {
    static const double TILES[] = {8, 64, 128, 256, 1024};
    const double size = floor(exp(draw_number(draw, log(least), log(most))));
    const double tile = TILES[draw_int(draw, 0, 4)];
    if (size < 2 * tile || draw_chance(draw, 0.4)) return fmax(size, least);
    return fmax(least, floor(size / tile) * tile - draw_int(draw, 0, 1));
}

static void size_add(Draw *draw, cJSON *shape, const char *name, double least, double most) {
    cJSON_AddNumberToObject(shape, name, size_draw(draw, least, most));
}

static void text_add(Draw *draw, cJSON *shape, const char *name, const char *const *texts) {
    cJSON_AddStringToObject(shape, name, draw_text(draw, texts));
}

static const char *const GEMM_DTYPES[] = {"bfloat16", "fp8", "fp8_block", "nvfp4", NULL};
static const char *const CACHE_DTYPES[] = {"bfloat16", "fp8", NULL};

static void gemm_draw(const KernelProfile *profile, Draw *draw, cJSON *shape) {
    (void)profile;
    text_add(draw, shape, "gemm_dtype", GEMM_DTYPES);
    size_add(draw, shape, "m", 1, 1e5);
    size_add(draw, shape, "n", 16, 2e5);
    size_add(draw, shape, "k", 16, 2e5);
}

static void moe_draw(const KernelProfile *profile, Draw *draw, cJSON *shape) {
    static const char *const ROUTINGS[] = {"balanced", "power_law_1.01", "power_law_1.2", NULL};
    const MoeKernels *kernels = &profile->moe;
    const MoeKernel unknown = {.kernel_source = "none"};
    const MoeKernel *kernel = kernels->num_kernels == 0
                                  ? &unknown
                                  : &kernels->kernels[draw_int(draw, 0, kernels->num_kernels - 1)];
    cJSON_AddStringToObject(shape, "moe_dtype", MOE_DTYPE_NAMES[kernel->moe_dtype]);
    cJSON_AddStringToObject(shape, "kernel_source", kernel->kernel_source);
    size_add(draw, shape, "num_tokens", 1, 1e5);
    size_add(draw, shape, "hidden_size", 128, 2e4);
    size_add(draw, shape, "inter_size", 64, 4e4);
    const int num_experts = 1 << draw_int(draw, 3, 9);
    cJSON_AddNumberToObject(shape, "topk", draw_int(draw, 1, 8));
    cJSON_AddNumberToObject(shape, "num_experts", num_experts);
    cJSON_AddNumberToObject(shape, "moe_tp_size", draw_power(draw, 8));
    cJSON_AddNumberToObject(shape, "moe_ep_size", draw_power(draw, 8));
    text_add(draw, shape, "distribution", ROUTINGS);
}

static void nccl_draw(const KernelProfile *profile, Draw *draw, cJSON *shape) {
    (void)profile;
    static const char *const DTYPES[] = {"half", "bfloat16", "float", "int8", NULL};
    text_add(draw, shape, "op_name", NCCL_OP_NAMES);
    text_add(draw, shape, "nccl_dtype", DTYPES);
    cJSON_AddNumberToObject(shape, "num_gpus",
                            draw_chance(draw, 0.5) ? draw_int(draw, 2, 8) : draw_int(draw, 2, 128));
    size_add(draw, shape, "message_size", 1, 1e10);
}

// Of attention with keys and values of its own.
static void heads_draw(Draw *draw, cJSON *shape) {
    static const int DIMS[] = {64, 128, 192, 256, 0}, GROUPS[] = {1, 2, 4, 5, 8, 16, 0};
    static const char *const DTYPES[] = {"bfloat16", "bfloat16", "fp8", NULL};
    const int kv_heads = 1 << draw_int(draw, 0, 7), group = draw_of(draw, GROUPS);
    const bool alone = group == 1 && draw_chance(draw, 0.5);
    text_add(draw, shape, "attn_dtype", DTYPES);
    text_add(draw, shape, "kv_cache_dtype", CACHE_DTYPES);
    size_add(draw, shape, "batch_size", 1, 1024);
    cJSON_AddNumberToObject(shape, "num_heads", kv_heads * group);
    cJSON_AddNumberToObject(shape, "num_key_value_heads", alone ? 0 : kv_heads);
    cJSON_AddNumberToObject(shape, "head_dim", draw_of(draw, DIMS));
    cJSON_AddNumberToObject(shape, "window_size",
                            draw_chance(draw, 0.6) ? 0 : 128 << draw_int(draw, 0, 6));
}

static void latent_draw(Draw *draw, cJSON *shape) {
    text_add(draw, shape, "kv_cache_dtype", CACHE_DTYPES);
    cJSON_AddNumberToObject(shape, "num_heads", draw_int(draw, 1, 128));
    size_add(draw, shape, "batch_size", 1, 1024);
    cJSON_AddNumberToObject(shape, "tp_size", 1);
}

static void context_draw(const KernelProfile *profile, Draw *draw, cJSON *shape) {
    (void)profile;
    heads_draw(draw, shape);
    size_add(draw, shape, "isl", 1, 1e5);
}

static void generation_draw(const KernelProfile *profile, Draw *draw, cJSON *shape) {
    (void)profile;
    heads_draw(draw, shape);
    cJSON_AddNumberToObject(shape, "isl", 1);
    size_add(draw, shape, "step", 1, 3e5);
}

static void context_mla_draw(const KernelProfile *profile, Draw *draw, cJSON *shape) {
    (void)profile;
    latent_draw(draw, shape);
    size_add(draw, shape, "isl", 1, 1e5);
}

static void generation_mla_draw(const KernelProfile *profile, Draw *draw, cJSON *shape) {
    (void)profile;
    latent_draw(draw, shape);
    size_add(draw, shape, "step", 1, 3e5);
}

static const struct {
    const char *kind;
    const char *const *dimensions;
    void (*draw)(const KernelProfile *profile, Draw *draw, cJSON *shape);
} ROWS[] = {
    {"gemm", GEMM_DIMENSIONS, gemm_draw},
    {"moe", MOE_DIMENSIONS, moe_draw},
    {"nccl", NCCL_DIMENSIONS, nccl_draw},
    {"context_attention", ATTENTION_DIMENSIONS, context_draw},
    {"generation_attention", STEP_DIMENSIONS, generation_draw},
    {"context_mla", ATTENTION_DIMENSIONS, context_mla_draw},
    {"generation_mla", STEP_DIMENSIONS, generation_mla_draw},
};

static int row_of(const Kind *kind) {
    int row = 0;
    while (strcmp(ROWS[row].kind, kind->name) != 0) row++;
    return row;
}

const char *const *kernel_dimensions(const Kind *kind) {
    return ROWS[row_of(kind)].dimensions;
}

cJSON *kernel_shape_draw(const Kind *kind, const KernelProfile *profile, Draw *draw) {
    cJSON *shape = cJSON_CreateObject();
    ROWS[row_of(kind)].draw(profile, draw, shape);
    return shape;
}

static const char *cell_of(const cJSON *value, Arena *arena) {
    if (cJSON_IsNumber(value)) return arena_printf(arena, "%.0f", value->valuedouble);
    return cJSON_IsString(value) ? arena_strdup(arena, value->valuestring) : "";
}

KernelTable kernel_shapes_table(const Kind *kind, cJSON *const *shapes, int num_shapes,
                                Arena *arena) {
    int num_columns = 0;
    while (kind->columns[num_columns]) num_columns++;
    const char **cells = ARENA_ARRAY(arena, num_shapes * num_columns, const char *);
    const char **lines = ARENA_ARRAY(arena, num_shapes, const char *);
    int *numbers = ARENA_ARRAY(arena, num_shapes, int);
    for (int row = 0; row < num_shapes; row++) {
        lines[row] = "";
        numbers[row] = row + 2;
        for (int c = 0; c < num_columns; c++)
            cells[row * num_columns + c] =
                cell_of(cJSON_GetObjectItemCaseSensitive(shapes[row], kind->columns[c]), arena);
    }
    return (KernelTable){.file = "drawn.csv",
                         .num_rows = num_shapes,
                         .num_columns = num_columns,
                         .header = "",
                         .names = kind->columns,
                         .lines = lines,
                         .cells = cells,
                         .line_numbers = numbers};
}
