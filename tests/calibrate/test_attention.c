#include "calibrate/attention_rows.h"
#include "calibrate/kinds.h"
#include "costmodel/kernel/kernel_context.h"
#include "costmodel/kernel/kernel_generation.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

static const AttentionVariant BF16_128 = {ATTENTION_BFLOAT16, ATTENTION_BFLOAT16, 128, 0};

static Gpu gpu_named(const char *name, Arena *arena) {
    Gpu gpu;
    CU_ASSERT_EQUAL_FATAL(gpu_load_named(name, arena, &gpu).code, STATUS_OK);
    return gpu;
}

static AttentionShape shape_of(double batch, double tokens, double heads, double kv_heads) {
    return (AttentionShape){BF16_128, batch, tokens, heads, kv_heads};
}

// 128 tokens are 2 tiles of 64: the last sees 128 keys (8 blocks of 16), the first 64 (4 blocks).
// On 2 SMs each takes one. Two heads are tiles of 8, 8, 4, 4: one SM gets 8 and 4, in 2 waves.
// With a window of 16 the last tile's first query, at 64, sees keys from 49 on: from the block at
// 48 to 128, 5 blocks.
static void tiles_are_dealt_longest_first(void) {
    AttentionShape shape = shape_of(1, 128, 1, 1);
    ContextWork work = context_work(2, 64, &shape);
    ASSERT_CLOSE(work.longest, 8);
    ASSERT_CLOSE(work.busiest, 8);
    ASSERT_CLOSE(work.waves, 1);
    shape.heads = 2;
    work = context_work(2, 64, &shape);
    ASSERT_CLOSE(work.busiest, 12);
    ASSERT_CLOSE(work.waves, 2);
    shape.heads = 1;
    shape.variant.window_size = 16;
    work = context_work(2, 64, &shape);
    ASSERT_CLOSE(work.longest, 5);
}

// Above 512 tiles they are counted in bundles: 1024 tiles of 64 on one SM are
// 4 (1 + ... + 1024) = 2099200 blocks, which bundles of 2 must add up to, too.
static void bundles_of_tiles_add_up(void) {
    AttentionShape shape = shape_of(1, 65536, 1, 1);
    ContextWork work = context_work(1, 64, &shape);
    ASSERT_CLOSE(work.busiest, 2099200);
    ASSERT_CLOSE(work.longest, 4096);
}

// On 132 SMs a quarter is 33 blocks of 128 keys.
// 2 key-value heads at 2049 keys make 2 x 16 = 32 blocks, one too few; at 2177 keys 2 x 17 = 34.
static void shared_kernels_need_blocks(void) {
    Arena arena = {0};
    Gpu gpu = gpu_named("h100-sxm-80g", &arena);
    AttentionShape few = shape_of(1, 2049, 16, 2), many = shape_of(1, 2177, 16, 2);
    AttentionShape single = shape_of(64, 2177, 16, 16), wide = shape_of(64, 2177, 128, 2);
    CU_ASSERT_EQUAL(generation_sharing(&gpu, 0.25, &few), GENERATION_PER_HEAD);
    CU_ASSERT_EQUAL(generation_sharing(&gpu, 0.25, &many), GENERATION_SHARED);
    CU_ASSERT_EQUAL(generation_sharing(&gpu, 0, &few), GENERATION_SHARED);
    CU_ASSERT_EQUAL(generation_sharing(&gpu, 0, &single), GENERATION_SINGLE);
    CU_ASSERT_EQUAL(generation_sharing(&gpu, 0, &wide), GENERATION_PER_HEAD);
    arena_free(&arena);
}

// Full below half the cache and memory above twice it, half at its size; 0.5 octaves up
// 0.5 + 0.25 x 0.5 x (3 - 0.25) = 0.84375.
static void cache_misses_rise_smoothly(void) {
    CU_ASSERT_DOUBLE_EQUAL(cache_miss_frac(1e6, 4e6, 1), 0, 0);
    ASSERT_CLOSE(cache_miss_frac(4e6, 4e6, 1), 0.5);
    ASSERT_CLOSE(cache_miss_frac(4e6 * sqrt(2), 4e6, 1), 0.84375);
    ASSERT_CLOSE(cache_miss_frac(9e6, 4e6, 1), 1);
}

static const ContextKernel KNOWN_CONTEXT = {.variant = {0, 0, 128, 0},
                                            .tile_tokens = 128,
                                            .launch_s = 15e-6,
                                            .memory_passes = 2,
                                            .max_frac = 0.7,
                                            .tile_s = 1e-6,
                                            .loss_frac = 0.2,
                                            .half_s = 1e-4,
                                            .l2_frac = 0.5,
                                            .l2_octaves = 1,
                                            .l2_cost_frac = 0.5,
                                            .chain_ratio = 1};

static const GenerationKernel KNOWN_GENERATION = {.variant = {0, 0, 128, 0},
                                                  .sharing = GENERATION_SHARED,
                                                  .launch_s = 8e-6,
                                                  .memory_frac = 0.9,
                                                  .block_s = 1e-6,
                                                  .token_s = 5e-9,
                                                  .split_s = 2e-6,
                                                  .split_tokens = 256,
                                                  .blocks_per_sm = 2,
                                                  .query_passes = 2,
                                                  .max_frac = 0.5,
                                                  .l2_frac = 0.5,
                                                  .l2_octaves = 1,
                                                  .l2_cost_frac = 0.5};

// A text that grows.
typedef struct {
    char *text;
    size_t used, size;
} Csv;

static void csv_add(Csv *csv, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void csv_add(Csv *csv, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(csv->text + csv->used, csv->size - csv->used, format, arguments);
    va_end(arguments);
    csv->used += (size_t)length;
    CU_ASSERT_FATAL(csv->used < csv->size);
}

static Csv csv_new(const char *header, Arena *arena) {
    Csv csv = {arena_alloc(arena, 1 << 20), 0, 1 << 20};
    csv_add(&csv, "%s\n", header);
    return csv;
}

// Fits a table in memory through a file, as users do.
static Status csv_fit(const char *kind, const Csv *csv, const Gpu *gpu, Arena *arena,
                      KindFit *fit) {
    char path[] = "/tmp/meshwright-attention-XXXXXX";
    int descriptor = mkstemp(path), num_rows;
    CU_ASSERT_FATAL(descriptor >= 0);
    CU_ASSERT_EQUAL(write(descriptor, csv->text, csv->used), (ssize_t)csv->used);
    close(descriptor);
    Status status = kind_fit_file(kind_find(kind), path, NULL, gpu, arena, &num_rows, fit);
    unlink(path);
    return status;
}

static const char CONTEXT_HEADER[] = "attn_dtype,kv_cache_dtype,batch_size,isl,num_heads,"
                                     "num_key_value_heads,head_dim,window_size,latency_ms";
static const char GENERATION_HEADER[] = "attn_dtype,kv_cache_dtype,batch_size,isl,step,num_heads,"
                                        "num_key_value_heads,head_dim,window_size,latency_ms";

// Prompts of the known kernel, with 1 % of noise, unit in milliseconds.
static Csv context_csv(const Gpu *gpu, double unit, Arena *arena) {
    Csv csv = csv_new(CONTEXT_HEADER, arena);
    static const int HEADS[] = {4, 8, 12, 16, 24, 32, 40, 48, 64, 96};
    int n = 0;
    for (int h = 0; h < 10; h++)
        for (int batch = 1; batch <= 32; batch *= 2)
            for (int tokens = 16; tokens <= 8192; tokens *= 2) {
                int heads = HEADS[h];
                AttentionShape shape = shape_of(batch, tokens, heads, heads / 4.0);
                ContextWork work = context_work(gpu->num_sms, 128, &shape);
                double noise = 1 + 0.01 * sin(12.9898 * n++);
                double ms = context_formula_s(gpu, &KNOWN_CONTEXT, &shape, &work) * 1e3 * noise;
                csv_add(&csv, "bfloat16,bfloat16,%d,%d,%d,%d,128,0,%.6g\n", batch, tokens, heads,
                        heads / 4, ms * unit);
            }
    return csv;
}

static Csv generation_csv(const Gpu *gpu, double unit, Arena *arena) {
    Csv csv = csv_new(GENERATION_HEADER, arena);
    int n = 0;
    for (int heads = 8; heads <= 64; heads *= 2)
        for (int batch = 1; batch <= 64; batch *= 2)
            for (int tokens = 16; tokens <= 32768; tokens *= 2) {
                AttentionShape shape = shape_of(batch, tokens, heads, heads / 8.0);
                double noise = 1 + 0.01 * sin(12.9898 * n++);
                double ms = generation_formula_s(gpu, &KNOWN_GENERATION, &shape) * 1e3 * noise;
                csv_add(&csv, "bfloat16,bfloat16,%d,1,%d,%d,%d,128,0,%.6g\n", batch, tokens - 1,
                        heads, heads / 8, ms * unit);
            }
    return csv;
}

// 1 % of noise is 0.6 % in the median; whole heads are left out.
static void known_prompts_are_recovered(void) {
    Arena arena = {0};
    Gpu gpu = gpu_named("h100-sxm-80g", &arena);
    Csv csv = context_csv(&gpu, 1, &arena);
    KindFit fit;
    CU_ASSERT_EQUAL_FATAL(csv_fit("context_attention", &csv, &gpu, &arena, &fit).code, STATUS_OK);
    CU_ASSERT_EQUAL(fit.num_groups, 10);
    CU_ASSERT(fit.left_out.median_frac < 0.015);
    ContextKernels kernels;
    JsonNode section;
    char *text = cJSON_PrintUnformatted(fit.section); // the grid is raw text until it is parsed
    CU_ASSERT_EQUAL_FATAL(json_parse(text, strlen(text), "section", &arena, &section).code,
                          STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(context_kernels_read(&section, &arena, &kernels).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernels.num_kernels, 1);
    CU_ASSERT_EQUAL(kernels.kernels[0].tile_tokens, KNOWN_CONTEXT.tile_tokens);
    CU_ASSERT_DOUBLE_EQUAL(kernels.kernels[0].max_frac, KNOWN_CONTEXT.max_frac, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(kernels.kernels[0].launch_s, KNOWN_CONTEXT.launch_s, 1e-6);
    cJSON_free(text);
    CU_ASSERT(fit.left_out.p90_frac < 0.05);
    CU_ASSERT_EQUAL(fit.left_out.num_priced, fit.left_out.num_rows);
    cJSON_Delete(fit.section);
    arena_free(&arena);
}

static void known_generation_is_recovered(void) {
    Arena arena = {0};
    Gpu gpu = gpu_named("h100-sxm-80g", &arena);
    Csv csv = generation_csv(&gpu, 1, &arena);
    KindFit fit;
    CU_ASSERT_EQUAL_FATAL(csv_fit("generation_attention", &csv, &gpu, &arena, &fit).code,
                          STATUS_OK);
    CU_ASSERT(fit.left_out.median_frac < 0.02);
    CU_ASSERT(fit.left_out.p90_frac < 0.08);
    cJSON_Delete(fit.section);
    arena_free(&arena);
}

static void assert_refused(const char *kind, const Csv *csv, const Gpu *gpu, const char *part) {
    Arena arena = {0};
    KindFit fit;
    Status status = csv_fit(kind, csv, gpu, &arena, &fit);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    if (!strstr(status.text, part)) printf("\n%s\n", status.text);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, part));
    arena_free(&arena);
}

static void other_units_are_refused(void) {
    Arena arena = {0};
    Gpu gpu = gpu_named("h100-sxm-80g", &arena);
    Csv seconds = context_csv(&gpu, 0.01, &arena);
    assert_refused("context_attention", &seconds, &gpu, "faster than the peak of its products");
    seconds = generation_csv(&gpu, 0.02, &arena);
    assert_refused("generation_attention", &seconds, &gpu, "faster than twice the memory");
    arena_free(&arena);
}

static void bad_rows_are_refused(void) {
    Arena arena = {0};
    Gpu gpu = gpu_named("h100-sxm-80g", &arena), a100 = gpu_named("a100-sxm-80g", &arena);
    Csv csv = context_csv(&gpu, 1, &arena);
    csv_add(&csv, "bfloat16,fp8,1,16,2,8,128,0,0.02\n");
    assert_refused("context_attention", &csv, &gpu,
                   "num_key_value_heads: 8; expected at most num_heads 2");
    csv = context_csv(&a100, 1, &arena);
    csv_add(&csv, "fp8,fp8,1,16,8,2,128,0,0.02\n");
    assert_refused("context_attention", &csv, &a100, "attn_dtype: a100-sxm-80g has no fp8 units");
    csv = csv_new(GENERATION_HEADER, &arena);
    csv_add(&csv, "bfloat16,bfloat16,1,1,15,8,2,128,0,0.02\n");
    assert_refused("generation_attention", &csv, &gpu, "expected at least 200 shapes");
    arena_free(&arena);
}

// Bundled profiles -------------------------------------------------------------------------------

static const char *const GPUS[] = {"a100-sxm-80g",  "h100-sxm-80g", "h200-sxm-141g",
                                   "b200-sxm-180g", "gb200-186g",   "l40s-48g"};
enum { NUM_GPUS = sizeof GPUS / sizeof *GPUS };

// Calls check for every GPU with a profile.
static void each_profile(void (*check)(const Gpu *gpu, const KernelProfile *profile)) {
    for (int g = 0; g < NUM_GPUS; g++) {
        Arena arena = {0};
        KernelProfile profile;
        Gpu gpu = gpu_named(GPUS[g], &arena);
        if (kernels_exist(GPUS[g], &arena)) {
            Status status = kernels_load_named(GPUS[g], &arena, &profile);
            if (status.code != STATUS_OK) printf("\n%s\n", status.text);
            CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
            check(&gpu, &profile);
        }
        arena_free(&arena);
    }
}

static void check_longer(const Gpu *gpu, const KernelProfile *profile) {
    for (double heads = 4; heads <= 64; heads *= 2) {
        double shorter_s = 0, fewer_keys_s = 0;
        for (double tokens = 128; tokens <= 16384; tokens *= 2) {
            AttentionShape shape = shape_of(4, tokens, heads, heads / 4);
            double prompt_s = kernel_context_s(gpu, &profile->context_attention, &shape);
            shape.batch = 16;
            double step_s = kernel_generation_s(gpu, &profile->generation_attention, &shape);
            if (profile->context_attention.num_kernels) CU_ASSERT(prompt_s > shorter_s);
            if (profile->generation_attention.num_kernels) CU_ASSERT(step_s > 0.85 * fewer_keys_s);
            shorter_s = prompt_s;
            fewer_keys_s = step_s;
        }
    }
}

static void longer_is_slower(void) {
    each_profile(check_longer);
}

// Twice the heads cost at least what the noise of a launch hides.
static void check_heads(const Gpu *gpu, const KernelProfile *profile) {
    for (double tokens = 16; tokens <= 16384; tokens *= 2) {
        double fewer_s = 0;
        for (double heads = 4; heads <= 64; heads *= 2) {
            AttentionShape shape = shape_of(4, tokens, heads, heads / 4);
            double prompt_s = kernel_context_s(gpu, &profile->context_attention, &shape);
            if (profile->context_attention.num_kernels) CU_ASSERT(prompt_s > 0.95 * fewer_s);
            fewer_s = prompt_s;
        }
    }
}

static void more_heads_are_never_faster(void) {
    each_profile(check_heads);
}

static void check_dtypes(const Gpu *gpu, const KernelProfile *profile) {
    AttentionShape shape = shape_of(1, 1024, 8, 2);
    shape.variant.attn_dtype = shape.variant.kv_cache_dtype = ATTENTION_FP8;
    bool has_fp8 = gpu->peak_flops_per_s[PRECISION_FP8] > 0;
    double fp8_s = kernel_context_s(gpu, &profile->context_attention, &shape);
    if (profile->context_attention.num_kernels) CU_ASSERT_EQUAL(!isnan(fp8_s), has_fp8);
}

static void formats_without_units_are_not_priced(void) {
    each_profile(check_dtypes);
}

CU_TestInfo attention_tests[] = {
    {"tiles_are_dealt_longest_first", tiles_are_dealt_longest_first},
    {"bundles_of_tiles_add_up", bundles_of_tiles_add_up},
    {"shared_kernels_need_blocks", shared_kernels_need_blocks},
    {"cache_misses_rise_smoothly", cache_misses_rise_smoothly},
    {"known_prompts_are_recovered", known_prompts_are_recovered},
    {"known_generation_is_recovered", known_generation_is_recovered},
    {"other_units_are_refused", other_units_are_refused},
    {"bad_rows_are_refused", bad_rows_are_refused},
    {"longer_is_slower", longer_is_slower},
    {"more_heads_are_never_faster", more_heads_are_never_faster},
    {"formats_without_units_are_not_priced", formats_without_units_are_not_priced},
    CU_TEST_INFO_NULL,
};
