// Prompts (costmodel/kernel/kernel_context.h) for calibrate/attention_phase.h.
#include "calibrate/attention_part.h"
#include "calibrate/attention_phase.h"
#include "costmodel/kernel/kernel_context.h"

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
};
static const double TILE_TOKENS[NUM_TILES] = {64, 128};
static const double TOKEN_KNOTS[] = {1,    16,   32,   64,   128,  256,  512,  1024,
                                     1536, 2048, 3072, 4096, 6144, 8192, 16384};
static const double GROUP_KNOTS[] = {1, 2, 16}, LATENT_KNOTS[] = {1, 16, 128};

// One kernel and its rows.
typedef struct {
    const Gpu *gpu;
    ContextKernel kernel; // variant and tile
    AttentionPart rows;
    ContextWork *work[NUM_TILES]; // [num_rows] of each
    int tile;                     // index of work
    double values[NUM_PARAMETERS];
} ContextPart;

typedef struct {
    const double *latency_s; // of all rows
    int num_parts;
    ContextPart *parts;
} ContextParts;

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
    return log(context_formula_s(part->gpu, &kernel, part->rows.shapes[row],
                                 &part->work[part->tile][row]));
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

// A kernel of its rows, without its numbers.
static void part_set(ContextPart *part, const AttentionPart *rows, bool latent, const Gpu *gpu,
                     Arena *arena) {
    *part = (ContextPart){.gpu = gpu, .kernel.variant = rows->variant, .rows = *rows};
    for (int t = 0; t < NUM_TILES; t++)
        part->work[t] = ARENA_ARRAY(arena, rows->num_rows, ContextWork);
    for (int i = 0; i < rows->num_rows; i++) {
        context_place(rows->shapes[i], rows->places + ATTENTION_NUM_AXES * i);
        for (int t = 0; t < NUM_TILES; t++)
            part->work[t][i] = context_work(gpu->num_sms, TILE_TOKENS[t], rows->shapes[i]);
    }
    Segment *segment = &part->rows.segment;
    segment->model = part_model;
    segment->context = part;
    segment->num_parameters = NUM_PARAMETERS;
    segment->parameters = PARAMETERS;
    part_spec(&segment->spec, latent, arena);
}

// The tile that explains the rows better, and its numbers.
static void part_start(ContextPart *part) {
    double least = INFINITY;
    int best = 0;
    for (int t = 0; t < NUM_TILES; t++) {
        double values[NUM_PARAMETERS];
        part->tile = t;
        part->kernel.tile_tokens = TILE_TOKENS[t];
        double loss = segment_start(&part->rows.segment, values);
        if (loss >= least) continue;
        least = loss;
        best = t;
        memcpy(part->values, values, sizeof values);
    }
    part->tile = best;
    part->kernel.tile_tokens = TILE_TOKENS[best];
}

// Fits with the rows of a fold left out (-1: none); false where too few remain.
static bool part_fit(const ContextPart *part, int fold, Arena *arena, ContextKernel *out) {
    double values[NUM_PARAMETERS];
    memcpy(values, part->values, sizeof values);
    *out = part->kernel;
    bool enough = segment_fit(&part->rows.segment, fold, arena, values, &out->surface);
    kernel_set(out, values);
    return enough;
}

static void kernel_note(ContextKernel *kernel, const FitScore *left_out) {
    kernel->residual_median_frac = fit_round(left_out->median_frac);
    kernel->residual_p90_frac = fit_round(left_out->p90_frac);
    kernel->surface.spread_frac = left_out->median_frac;
}

static void *kernels_fit(const void *context, int fold, const double *left_out_s, Arena *arena) {
    const ContextParts *parts = context;
    ContextKernel *kernels = ARENA_ARRAY(arena, parts->num_parts, ContextKernel);
    ContextKernels *fitted = ARENA_NEW(arena, ContextKernels);
    fitted->kernels = kernels;
    for (int p = 0; p < parts->num_parts; p++) {
        ContextKernel *kernel = &kernels[fitted->num_kernels];
        if (!part_fit(&parts->parts[p], fold, arena, kernel)) continue;
        fitted->num_kernels++;
        if (!left_out_s) continue;
        const AttentionPart *rows = &parts->parts[p].rows;
        FitScore score = fit_score_rows(rows->num_rows, rows->rows, left_out_s, parts->latency_s);
        kernel_note(kernel, &score);
    }
    return fitted;
}

static void *parts_start(const AttentionRows *rows, const Gpu *gpu, Arena *arena) {
    AttentionPart *split = ARENA_ARRAY(arena, ATTENTION_MAX_PARTS, AttentionPart);
    ContextParts *parts = ARENA_NEW(arena, ContextParts);
    parts->latency_s = rows->latency_s;
    parts->num_parts = attention_parts(rows, NULL, arena, split);
    parts->parts = ARENA_ARRAY(arena, parts->num_parts, ContextPart);
    for (int p = 0; p < parts->num_parts; p++) {
        part_set(&parts->parts[p], &split[p], rows->latent, gpu, arena);
        part_start(&parts->parts[p]);
    }
    return parts;
}

// Half the square of keys by queries, or the band of a window, at the dense peak; its work are
// queries, keys, values and outputs in memory, too.
static void shape_limits(const Gpu *gpu, const AttentionShape *s, double *least_s, double *work_s) {
    double keys = s->tokens / 2, numbers = 2 * s->batch * s->tokens * (s->heads + s->kv_heads);
    if (s->variant.window_size > 0) keys = fmin(keys, s->variant.window_size / 2.0);
    *least_s = 4 * s->batch * s->heads * s->tokens * keys * s->variant.head_dim /
               attention_peak_flops_per_s(gpu, s->variant.attn_dtype);
    *work_s = *least_s + 2 * numbers * s->variant.head_dim / gpu->memory_bandwidth_bytes_per_s;
}

static double shape_price_s(const Gpu *gpu, const void *kernels, const AttentionShape *shape) {
    return kernel_context_s(gpu, kernels, shape);
}

static cJSON *kernels_to_json(const void *kernels) {
    return context_kernels_to_json(kernels);
}

const AttentionPhase CONTEXT_PHASE = {
    .step = false,
    .limit_name = "the peak of its products",
    .limits = shape_limits,
    .start = parts_start,
    .fit = kernels_fit,
    .price_s = shape_price_s,
    .to_json = kernels_to_json,
};
