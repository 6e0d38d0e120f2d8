// The part of calibrate/attention_rows.h on prompts (costmodel/kernel_context.h).
#include "calibrate/attention_rows.h"
#include "calibrate/fit_segment.h"
#include "costmodel/kernel_context.h"

#include <math.h>
#include <string.h>

// In the order of ContextKernel, from launch_s on.
static const FitParameter PARAMETERS[] = {
    {"launch_s", 12e-6, 2e-6, 40e-6, true}, {"memory_passes", 2, 0.3, 6, true},
    {"max_frac", 0.5, 0.02, 1, true},       {"tile_s", 1e-6, 0, 6e-6, false},
    {"loss_frac", 0.2, 0, 2, false},        {"half_s", 1e-4, 5e-6, 1e-3, true},
    {"l2_frac", 0.6, 0.05, 2, true},        {"l2_octaves", 1, 0.2, 3, true},
    {"l2_cost_frac", 0.5, 0.05, 1, true},   {"chain_ratio", 1, 0.3, 4, true},
};
enum {
    NUM_PARAMETERS = sizeof PARAMETERS / sizeof *PARAMETERS,
    NUM_TILES = 2,
    MAX_VARIANTS = 64,
};
static const double TILE_TOKENS[NUM_TILES] = {64, 128};
static const double TOKEN_KNOTS[] = {1,    16,   32,   64,   128,  256,  512,  1024,
                                     1536, 2048, 3072, 4096, 6144, 8192, 16384};
static const double GROUP_KNOTS[] = {1, 2, 16}, LATENT_KNOTS[] = {1, 16, 128};

// The rows of one kernel.
typedef struct {
    const Gpu *gpu;
    ContextKernel kernel; // variant and tile
    const AttentionShape **shapes;
    ContextWork *work[NUM_TILES];
    int tile;  // index of work
    int *rows; // of the table
    Segment segment;
    double values[NUM_PARAMETERS];
} ContextPart;

static void kernel_set(ContextKernel *kernel, const double *values) {
    kernel->launch_s = values[0];
    kernel->memory_passes = values[1];
    kernel->max_frac = values[2];
    kernel->tile_s = values[3];
    kernel->loss_frac = values[4];
    kernel->half_s = values[5];
    kernel->l2_frac = values[6];
    kernel->l2_octaves = values[7];
    kernel->l2_cost_frac = values[8];
    kernel->chain_ratio = values[9];
}

static double part_model(const void *context, int row, const double *values) {
    const ContextPart *part = context;
    ContextKernel kernel = part->kernel;
    kernel_set(&kernel, values);
    return log(
        context_formula_s(part->gpu, &kernel, part->shapes[row], &part->work[part->tile][row]));
}

static void part_spec(SurfaceSpec *spec, bool latent, Arena *arena) {
    *spec = (SurfaceSpec){.num_axes = 3, .prior = 0.002};
    spec->axes[0] = surface_octaves("batch_heads", 0, 15, arena);
    spec->axes[1] =
        surface_axis("tokens", TOKEN_KNOTS, sizeof TOKEN_KNOTS / sizeof *TOKEN_KNOTS, arena);
    spec->axes[2] = surface_axis("group", latent ? LATENT_KNOTS : GROUP_KNOTS, 3, arena);
    for (int a = 0; a < 3; a++) {
        spec->stiffness[a] = 0.005;
        spec->flatness[a] = a == 2 ? 0.1 : 0.03;
    }
}

static void part_rows(ContextPart *part, const AttentionRows *rows, Arena *arena) {
    const AttentionVariant *variant = &part->kernel.variant;
    int n = 0;
    part->shapes = ARENA_ARRAY(arena, rows->num_rows, const AttentionShape *);
    part->rows = ARENA_ARRAY(arena, rows->num_rows, int);
    for (int row = 0; row < rows->num_rows; row++) {
        if (memcmp(&rows->shapes[row].variant, variant, sizeof *variant) != 0) continue;
        part->shapes[n] = &rows->shapes[row];
        part->rows[n++] = row;
    }
    double *target = ARENA_ARRAY(arena, n, double), *places = ARENA_ARRAY(arena, 3 * n, double);
    int *folds = ARENA_ARRAY(arena, n, int);
    for (int t = 0; t < NUM_TILES; t++) part->work[t] = ARENA_ARRAY(arena, n, ContextWork);
    for (int i = 0; i < n; i++) {
        target[i] = rows->log_latency[part->rows[i]];
        folds[i] = rows->folds[part->rows[i]];
        context_place(part->shapes[i], places + 3 * i);
        for (int t = 0; t < NUM_TILES; t++)
            part->work[t][i] = context_work(part->gpu->num_sms, TILE_TOKENS[t], part->shapes[i]);
    }
    part->segment =
        (Segment){n, target, places, folds, part_model, part, NUM_PARAMETERS, PARAMETERS, {0}};
    part_spec(&part->segment.spec, rows->latent, arena);
}

// The tile that explains the rows better, and its numbers.
static void part_start(ContextPart *part) {
    double least = INFINITY;
    for (int t = 0, best = 0; t < NUM_TILES; t++) {
        double values[NUM_PARAMETERS];
        part->tile = t;
        part->kernel.tile_tokens = TILE_TOKENS[t];
        double loss = segment_start(&part->segment, values);
        if (loss < least) {
            least = loss;
            best = t;
            memcpy(part->values, values, sizeof values);
        }
        if (t == NUM_TILES - 1) part->tile = best;
    }
    part->kernel.tile_tokens = TILE_TOKENS[part->tile];
}

// Fits with the rows of a fold left out (-1: none); false where too few remain.
static bool part_fit(const ContextPart *part, int fold, Arena *arena, ContextKernel *out) {
    double values[NUM_PARAMETERS];
    memcpy(values, part->values, sizeof values);
    *out = part->kernel;
    bool enough = segment_fit(&part->segment, fold, arena, values, &out->surface);
    kernel_set(out, values);
    return enough;
}

static ContextKernels kernels_fit(const ContextPart *parts, int num_parts, int fold, Arena *arena) {
    ContextKernel *kernels = ARENA_ARRAY(arena, num_parts, ContextKernel);
    int num_kernels = 0;
    for (int p = 0; p < num_parts; p++)
        num_kernels += part_fit(&parts[p], fold, arena, &kernels[num_kernels]);
    return (ContextKernels){num_kernels, kernels};
}

// Variants in the order of their first row.
static int parts_find(const AttentionRows *rows, const Gpu *gpu, Arena *arena, ContextPart *parts) {
    int num_parts = 0;
    for (int row = 0; row < rows->num_rows; row++) {
        const AttentionVariant *variant = &rows->shapes[row].variant;
        int p = 0;
        while (p < num_parts && memcmp(variant, &parts[p].kernel.variant, sizeof *variant) != 0)
            p++;
        if (p < num_parts || num_parts == MAX_VARIANTS) continue;
        parts[num_parts].gpu = gpu;
        parts[num_parts].kernel.variant = *variant;
        part_rows(&parts[num_parts], rows, arena);
        num_parts++;
    }
    return num_parts;
}

static void left_out_price(const ContextPart *parts, int num_parts, const AttentionRows *rows,
                           const Gpu *gpu, double *left_out_s) {
    for (int fold = 0; fold < ATTENTION_FOLDS; fold++) {
        Arena scratch = {0};
        ContextKernels kernels = kernels_fit(parts, num_parts, fold, &scratch);
        for (int row = 0; row < rows->num_rows; row++)
            if (rows->folds[row] == fold)
                left_out_s[row] = kernel_context_s(gpu, &kernels, &rows->shapes[row]);
        arena_free(&scratch);
    }
}

static void kernel_note(ContextKernel *kernel, const ContextPart *part, const AttentionRows *rows,
                        const double *left_out_s) {
    FitScore score = attention_part_score(rows, part->rows, part->segment.num_rows, left_out_s);
    kernel->residual_median_frac = fit_round(score.median_frac);
    kernel->residual_p90_frac = fit_round(score.p90_frac);
    kernel->surface.spread_frac = score.median_frac;
}

// Half the square of keys by queries, or the band of a window, at the dense peak; its work are
// queries, keys, values and outputs in memory, too.
static Status limits_check(const KernelTable *table, const AttentionRows *rows, const Gpu *gpu,
                           Arena *arena) {
    KernelLimits limits = kernel_limits_new(table, arena);
    for (int row = 0; row < rows->num_rows; row++) {
        const AttentionShape *s = &rows->shapes[row];
        double keys = s->tokens / 2, numbers = 2 * s->batch * s->tokens * (s->heads + s->kv_heads);
        if (s->variant.window_size > 0) keys = fmin(keys, s->variant.window_size / 2.0);
        limits.least_s[row] = 4 * s->batch * s->heads * s->tokens * keys * s->variant.head_dim /
                              attention_peak_flops_per_s(gpu, s->variant.attn_dtype);
        limits.work_s[row] = limits.least_s[row] +
                             2 * numbers * s->variant.head_dim / gpu->memory_bandwidth_bytes_per_s;
    }
    return kernel_table_check_limits(table, rows->latency_s, &limits, "the peak of its products");
}

Status context_rows_fit(const KernelTable *table, const AttentionRows *rows, const Gpu *gpu,
                        Arena *arena, KindFit *out) {
    TRY(attention_rows_check(table, rows, gpu));
    TRY(limits_check(table, rows, gpu, arena));
    ContextPart *parts = ARENA_ARRAY(arena, MAX_VARIANTS, ContextPart);
    int num_parts = parts_find(rows, gpu, arena, parts);
    for (int p = 0; p < num_parts; p++) part_start(&parts[p]);
    double *left_out_s = ARENA_ARRAY(arena, rows->num_rows, double);
    double *all_s = ARENA_ARRAY(arena, rows->num_rows, double);
    left_out_price(parts, num_parts, rows, gpu, left_out_s);
    ContextKernel *kernels = ARENA_ARRAY(arena, num_parts, ContextKernel);
    for (int p = 0; p < num_parts; p++) {
        part_fit(&parts[p], -1, arena, &kernels[p]);
        kernel_note(&kernels[p], &parts[p], rows, left_out_s);
    }
    ContextKernels fitted = {num_parts, kernels};
    for (int row = 0; row < rows->num_rows; row++)
        all_s[row] = kernel_context_s(gpu, &fitted, &rows->shapes[row]);
    attention_scores(rows, left_out_s, all_s, out);
    out->section = context_kernels_to_json(&fitted);
    return status_ok();
}
