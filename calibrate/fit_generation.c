// The part of calibrate/attention_rows.h on generation (costmodel/kernel_generation.h).
#include "calibrate/attention_rows.h"
#include "calibrate/fit_segment.h"
#include "costmodel/kernel_generation.h"

#include <math.h>
#include <string.h>

// In the order of GenerationKernel, from launch_s on.
static const FitParameter PARAMETERS[] = {
    {"launch_s", 8e-6, 2e-6, 40e-6, true}, {"memory_frac", 0.8, 0.2, 1, true},
    {"block_s", 1e-6, 0, 6e-6, false},     {"token_s", 8e-9, 0.3e-9, 400e-9, true},
    {"split_s", 2e-6, 0, 12e-6, false},    {"split_tokens", 256, 32, 2048, true},
    {"blocks_per_sm", 2, 0.5, 8, true},    {"query_passes", 2, 0.3, 10, true},
    {"max_frac", 0.5, 0.02, 1, true},      {"l2_frac", 0.6, 0.05, 2, true},
    {"l2_octaves", 1, 0.1, 3, true},       {"l2_cost_frac", 0.5, 0.05, 1, true},
};
enum {
    NUM_PARAMETERS = sizeof PARAMETERS / sizeof *PARAMETERS,
    MAX_PARTS = 128,
    NUM_RULES = 2,
};
// Blocks per SM from which a library takes the shared kernel: it has no other, or TensorRT-LLM's.
static const double RULES[NUM_RULES] = {0, 0.25};
static const double SHARED_KNOTS[] = {2, 8, 32}, PER_HEAD_KNOTS[] = {4, 64};
static const double HEADS_OF_ONE_KNOTS[] = {1}, LATENT_KNOTS[] = {1, 8, 16, 32, 64, 128};

// The rows of one kernel.
typedef struct {
    const Gpu *gpu;
    GenerationKernel kernel; // variant and sharing
    const AttentionShape **shapes;
    int *rows; // of the table
    Segment segment;
    double values[NUM_PARAMETERS], loss;
} GenerationPart;

// All kernels under one choice of the rule per cache format.
typedef struct {
    int num_parts;
    GenerationPart *parts;
    double min_blocks[NUM_ATTENTION_DTYPES];
} GenerationParts;

static void kernel_set(GenerationKernel *kernel, const double *values) {
    kernel->launch_s = values[0];
    kernel->memory_frac = values[1];
    kernel->block_s = values[2];
    kernel->token_s = values[3];
    kernel->split_s = values[4];
    kernel->split_tokens = values[5];
    kernel->blocks_per_sm = values[6];
    kernel->query_passes = values[7];
    kernel->max_frac = values[8];
    kernel->l2_frac = values[9];
    kernel->l2_octaves = values[10];
    kernel->l2_cost_frac = values[11];
}

static double part_model(const void *context, int row, const double *values) {
    const GenerationPart *part = context;
    GenerationKernel kernel = part->kernel;
    kernel_set(&kernel, values);
    return log(generation_formula_s(part->gpu, &kernel, part->shapes[row]));
}

#define GROUPS(knots) surface_axis("group", knots, sizeof knots / sizeof *knots, arena)

static void part_spec(const GenerationPart *part, bool latent, SurfaceSpec *spec, Arena *arena) {
    static const double TOKEN_KNOTS[] = {2,    16,   64,   128,   256,   512,   1024,
                                         2048, 4096, 8192, 16384, 32768, 131072};
    GenerationSharing sharing = (GenerationSharing)part->kernel.sharing;
    static const int LAST_OCTAVE[NUM_GENERATION_SHARINGS] = {14, 17, 18};
    *spec = (SurfaceSpec){.num_axes = 3, .prior = 0.002};
    int last_octave = latent ? 10 : LAST_OCTAVE[sharing];
    spec->axes[0] = surface_octaves("batch_heads", 0, last_octave, arena);
    spec->axes[1] =
        surface_axis("tokens", TOKEN_KNOTS, sizeof TOKEN_KNOTS / sizeof *TOKEN_KNOTS, arena);
    if (sharing == GENERATION_SHARED)
        spec->axes[2] = latent ? GROUPS(LATENT_KNOTS) : GROUPS(SHARED_KNOTS);
    else
        spec->axes[2] =
            sharing == GENERATION_SINGLE ? GROUPS(HEADS_OF_ONE_KNOTS) : GROUPS(PER_HEAD_KNOTS);
    for (int a = 0; a < 3; a++) {
        spec->stiffness[a] = 0.002;
        spec->flatness[a] = a == 2 ? 0.03 : a == 1 ? 0.003 : 0.01;
    }
}

static bool row_belongs(const GenerationPart *part, const AttentionShape *shape,
                        GenerationSharing sharing) {
    return part->kernel.sharing == (int)sharing &&
           memcmp(&shape->variant, &part->kernel.variant, sizeof shape->variant) == 0;
}

static void part_rows(GenerationPart *part, const AttentionRows *rows, const int *sharings,
                      Arena *arena) {
    int n = 0;
    part->shapes = ARENA_ARRAY(arena, rows->num_rows, const AttentionShape *);
    part->rows = ARENA_ARRAY(arena, rows->num_rows, int);
    for (int row = 0; row < rows->num_rows; row++) {
        if (!row_belongs(part, &rows->shapes[row], (GenerationSharing)sharings[row])) continue;
        part->shapes[n] = &rows->shapes[row];
        part->rows[n++] = row;
    }
    double *target = ARENA_ARRAY(arena, n, double), *places = ARENA_ARRAY(arena, 3 * n, double);
    int *folds = ARENA_ARRAY(arena, n, int);
    for (int i = 0; i < n; i++) {
        target[i] = rows->log_latency[part->rows[i]];
        folds[i] = rows->folds[part->rows[i]];
        generation_place(&part->kernel, part->shapes[i], places + 3 * i);
    }
    part->segment =
        (Segment){n, target, places, folds, part_model, part, NUM_PARAMETERS, PARAMETERS, {0}};
    part_spec(part, rows->latent, &part->segment.spec, arena);
}

// Fits with the rows of a fold left out (-1: none); false where too few remain.
static bool part_fit(const GenerationPart *part, int fold, Arena *arena, GenerationKernel *out) {
    double values[NUM_PARAMETERS];
    memcpy(values, part->values, sizeof values);
    *out = part->kernel;
    bool enough = segment_fit(&part->segment, fold, arena, values, &out->surface);
    kernel_set(out, values);
    return enough;
}

static GenerationKernels kernels_fit(const GenerationParts *parts, int fold, Arena *arena) {
    GenerationKernel *kernels = ARENA_ARRAY(arena, parts->num_parts, GenerationKernel);
    GenerationKernels fitted = {.kernels = kernels};
    memcpy(fitted.shared_min_blocks_per_sm, parts->min_blocks, sizeof parts->min_blocks);
    for (int p = 0; p < parts->num_parts; p++)
        fitted.num_kernels += part_fit(&parts->parts[p], fold, arena, &kernels[fitted.num_kernels]);
    return fitted;
}

// Which kernel runs each row, by the rule per cache format.
static int *rows_sharings(const AttentionRows *rows, const Gpu *gpu, const double *min_blocks,
                          Arena *arena) {
    int *sharings = ARENA_ARRAY(arena, rows->num_rows, int);
    for (int row = 0; row < rows->num_rows; row++) {
        const AttentionShape *shape = &rows->shapes[row];
        double least = min_blocks[shape->variant.kv_cache_dtype];
        GenerationSharing sharing = generation_sharing(gpu, least, shape);
        sharings[row] = (int)(rows->latent ? GENERATION_SHARED : sharing);
    }
    return sharings;
}

// Kernels in the order of their first row, with their numbers.
static void parts_find(const AttentionRows *rows, const Gpu *gpu, const double *min_blocks,
                       Arena *arena, GenerationParts *out) {
    GenerationPart *parts = ARENA_ARRAY(arena, MAX_PARTS, GenerationPart);
    const int *sharings = rows_sharings(rows, gpu, min_blocks, arena);
    int num_parts = 0;
    for (int row = 0; row < rows->num_rows; row++) {
        const AttentionShape *shape = &rows->shapes[row];
        int p = 0;
        while (p < num_parts && !row_belongs(&parts[p], shape, (GenerationSharing)sharings[row]))
            p++;
        if (p < num_parts || num_parts == MAX_PARTS) continue;
        parts[p].gpu = gpu;
        parts[p].kernel.variant = shape->variant;
        parts[p].kernel.sharing = sharings[row];
        part_rows(&parts[p], rows, sharings, arena);
        parts[p].loss = segment_start(&parts[p].segment, parts[p].values);
        num_parts++;
    }
    out->num_parts = num_parts;
    out->parts = parts;
    memcpy(out->min_blocks, min_blocks, sizeof out->min_blocks);
}

// Loss of all rows with a cache format.
static double parts_loss(const GenerationParts *parts, int kv_cache_dtype) {
    double sum = 0;
    for (int p = 0; p < parts->num_parts; p++)
        if (parts->parts[p].kernel.variant.kv_cache_dtype == kv_cache_dtype)
            sum += parts->parts[p].loss * parts->parts[p].segment.num_rows;
    return sum;
}

// The rule that explains the rows of each cache format better.
static void rules_choose(const AttentionRows *rows, const Gpu *gpu, Arena *arena,
                         GenerationParts *out) {
    GenerationParts tried[NUM_RULES];
    double least[NUM_ATTENTION_DTYPES] = {INFINITY, INFINITY};
    double chosen[NUM_ATTENTION_DTYPES] = {0, 0};
    for (int r = 0; r < NUM_RULES; r++) {
        double min_blocks[NUM_ATTENTION_DTYPES] = {RULES[r], RULES[r]};
        parts_find(rows, gpu, min_blocks, arena, &tried[r]);
        for (int d = 0; d < NUM_ATTENTION_DTYPES; d++) {
            double loss = parts_loss(&tried[r], d);
            if (loss >= least[d]) continue;
            least[d] = loss;
            chosen[d] = RULES[r];
        }
        if (rows->latent) break;
    }
    parts_find(rows, gpu, chosen, arena, out);
}

static void left_out_price(const GenerationParts *parts, const AttentionRows *rows, const Gpu *gpu,
                           double *left_out_s) {
    for (int fold = 0; fold < ATTENTION_FOLDS; fold++) {
        Arena scratch = {0};
        GenerationKernels kernels = kernels_fit(parts, fold, &scratch);
        for (int row = 0; row < rows->num_rows; row++)
            if (rows->folds[row] == fold)
                left_out_s[row] = kernel_generation_s(gpu, &kernels, &rows->shapes[row]);
        arena_free(&scratch);
    }
}

static void kernel_note(GenerationKernel *kernel, const GenerationPart *part,
                        const AttentionRows *rows, const double *left_out_s) {
    FitScore score = attention_part_score(rows, part->rows, part->segment.num_rows, left_out_s);
    kernel->residual_median_frac = fit_round(score.median_frac);
    kernel->residual_p90_frac = fit_round(score.p90_frac);
    kernel->surface.spread_frac = score.median_frac;
}

// Keys and values that cannot be in the L2 cache, at twice the bandwidth of the memory: benches
// that repeat pages of the cache over sequences read 1.7 times as fast as it (A100, long keys). The
// work are all of them, the products, a microsecond a block and 2 ns a key of one (slow kernels).
static Status limits_check(const KernelTable *table, const AttentionRows *rows, const Gpu *gpu,
                           Arena *arena) {
    KernelLimits limits = kernel_limits_new(table, arena);
    for (int row = 0; row < rows->num_rows; row++) {
        const AttentionShape *s = &rows->shapes[row];
        double keys = s->tokens, bandwidth = gpu->memory_bandwidth_bytes_per_s;
        if (s->variant.window_size > 0) keys = fmin(keys, s->variant.window_size);
        double element_bytes = s->variant.kv_cache_dtype == ATTENTION_FP8 ? 1 : 2;
        double bytes = 2 * s->batch * s->kv_heads * keys * s->variant.head_dim * element_bytes;
        double flops = 4 * s->batch * s->heads * keys * s->variant.head_dim;
        limits.least_s[row] = fmax(0, bytes - gpu->l2_bytes) / (2 * bandwidth);
        limits.work_s[row] = bytes / bandwidth +
                             flops / attention_peak_flops_per_s(gpu, s->variant.attn_dtype) +
                             1e-6 * s->batch * s->heads / gpu->num_sms + 2e-9 * keys;
    }
    return kernel_table_check_limits(table, rows->latency_s, &limits, "twice the memory bandwidth");
}

Status generation_rows_fit(const KernelTable *table, const AttentionRows *rows, const Gpu *gpu,
                           Arena *arena, KindFit *out) {
    TRY(attention_rows_check(table, rows, gpu));
    TRY(limits_check(table, rows, gpu, arena));
    GenerationParts parts;
    rules_choose(rows, gpu, arena, &parts);
    double *left_out_s = ARENA_ARRAY(arena, rows->num_rows, double);
    double *all_s = ARENA_ARRAY(arena, rows->num_rows, double);
    left_out_price(&parts, rows, gpu, left_out_s);
    GenerationKernel *kernels = ARENA_ARRAY(arena, parts.num_parts, GenerationKernel);
    for (int p = 0; p < parts.num_parts; p++) {
        part_fit(&parts.parts[p], -1, arena, &kernels[p]);
        kernel_note(&kernels[p], &parts.parts[p], rows, left_out_s);
    }
    GenerationKernels fitted = {.num_kernels = parts.num_parts, .kernels = kernels};
    memcpy(fitted.shared_min_blocks_per_sm, parts.min_blocks, sizeof parts.min_blocks);
    for (int row = 0; row < rows->num_rows; row++)
        all_s[row] = kernel_generation_s(gpu, &fitted, &rows->shapes[row]);
    attention_scores(rows, left_out_s, all_s, out);
    out->section = generation_kernels_to_json(&fitted);
    return status_ok();
}
