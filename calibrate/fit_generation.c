// Generation (costmodel/kernel/kernel_generation.h) for calibrate/attention_phase.h.
#include "calibrate/attention_part.h"
#include "calibrate/attention_phase.h"
#include "costmodel/kernel/kernel_generation.h"

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
    NUM_RULES = 2,
};
// Blocks per SM from which a library takes the shared kernel: it has no other, or TensorRT-LLM's.
static const double RULES[NUM_RULES] = {0, 0.25};
static const double SHARED_KNOTS[] = {2, 8, 32}, PER_HEAD_KNOTS[] = {4, 64};
static const double HEADS_OF_ONE_KNOTS[] = {1}, LATENT_KNOTS[] = {1, 8, 16, 32, 64, 128};

// One kernel and its rows.
typedef struct {
    const Gpu *gpu;
    GenerationKernel kernel; // variant and sharing
    AttentionPart rows;
    double values[NUM_PARAMETERS], loss;
} GenerationPart;

// All kernels under one choice of the rule per cache format.
typedef struct {
    const double *latency_s; // of all rows
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
    return log(generation_formula_s(part->gpu, &kernel, part->rows.shapes[row]));
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

// A kernel of its rows, with its numbers.
static void part_start(GenerationPart *part, const AttentionPart *rows, bool latent, const Gpu *gpu,
                       Arena *arena) {
    *part = (GenerationPart){.gpu = gpu, .rows = *rows};
    part->kernel.variant = rows->variant;
    part->kernel.sharing = rows->sharing;
    for (int i = 0; i < rows->num_rows; i++)
        generation_place(&part->kernel, rows->shapes[i], rows->places + ATTENTION_NUM_AXES * i);
    Segment *segment = &part->rows.segment;
    segment->model = part_model;
    segment->context = part;
    segment->num_parameters = NUM_PARAMETERS;
    segment->parameters = PARAMETERS;
    part_spec(part, latent, &segment->spec, arena);
    part->loss = segment_start(segment, part->values);
}

// Fits with the rows of a fold left out (-1: none); false where too few remain.
static bool part_fit(const GenerationPart *part, int fold, Arena *arena, GenerationKernel *out) {
    double values[NUM_PARAMETERS];
    memcpy(values, part->values, sizeof values);
    *out = part->kernel;
    bool enough = segment_fit(&part->rows.segment, fold, arena, values, &out->surface);
    kernel_set(out, values);
    return enough;
}

static void kernel_note(GenerationKernel *kernel, const FitScore *left_out) {
    kernel->residual_median_frac = fit_round(left_out->median_frac);
    kernel->residual_p90_frac = fit_round(left_out->p90_frac);
    kernel->surface.spread_frac = left_out->median_frac;
}

static void *kernels_fit(const void *context, int fold, const double *left_out_s, Arena *arena) {
    const GenerationParts *parts = context;
    GenerationKernel *kernels = ARENA_ARRAY(arena, parts->num_parts, GenerationKernel);
    GenerationKernels *fitted = ARENA_NEW(arena, GenerationKernels);
    fitted->kernels = kernels;
    memcpy(fitted->shared_min_blocks_per_sm, parts->min_blocks, sizeof parts->min_blocks);
    for (int p = 0; p < parts->num_parts; p++) {
        GenerationKernel *kernel = &kernels[fitted->num_kernels];
        if (!part_fit(&parts->parts[p], fold, arena, kernel)) continue;
        fitted->num_kernels++;
        if (!left_out_s) continue;
        const AttentionPart *rows = &parts->parts[p].rows;
        FitScore score = fit_score_rows(rows->num_rows, rows->rows, left_out_s, parts->latency_s);
        kernel_note(kernel, &score);
    }
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

// All kernels with their numbers, by one choice.
static void rule_start(const AttentionRows *rows, const Gpu *gpu, const double *min_blocks,
                       Arena *arena, GenerationParts *out) {
    AttentionPart *split = ARENA_ARRAY(arena, ATTENTION_MAX_PARTS, AttentionPart);
    const int *sharings = rows_sharings(rows, gpu, min_blocks, arena);
    out->latency_s = rows->latency_s;
    out->num_parts = attention_parts(rows, sharings, arena, split);
    out->parts = ARENA_ARRAY(arena, out->num_parts, GenerationPart);
    for (int p = 0; p < out->num_parts; p++)
        part_start(&out->parts[p], &split[p], rows->latent, gpu, arena);
    memcpy(out->min_blocks, min_blocks, sizeof out->min_blocks);
}

// Loss of all rows with a cache format.
static double parts_loss(const GenerationParts *parts, int kv_cache_dtype) {
    double sum = 0;
    for (int p = 0; p < parts->num_parts; p++)
        if (parts->parts[p].kernel.variant.kv_cache_dtype == kv_cache_dtype)
            sum += parts->parts[p].loss * parts->parts[p].rows.num_rows;
    return sum;
}

// The rule that explains the rows of each cache format better.
static void *parts_start(const AttentionRows *rows, const Gpu *gpu, Arena *arena) {
    GenerationParts *parts = ARENA_NEW(arena, GenerationParts);
    GenerationParts tried[NUM_RULES];
    double least[NUM_ATTENTION_DTYPES] = {INFINITY, INFINITY};
    double chosen[NUM_ATTENTION_DTYPES] = {0, 0};
    for (int r = 0; r < NUM_RULES; r++) {
        double min_blocks[NUM_ATTENTION_DTYPES] = {RULES[r], RULES[r]};
        rule_start(rows, gpu, min_blocks, arena, &tried[r]);
        for (int d = 0; d < NUM_ATTENTION_DTYPES; d++) {
            double loss = parts_loss(&tried[r], d);
            if (loss >= least[d]) continue;
            least[d] = loss;
            chosen[d] = RULES[r];
        }
        if (rows->latent) break;
    }
    rule_start(rows, gpu, chosen, arena, parts);
    return parts;
}

// Keys and values that cannot be in the L2 cache, at twice the bandwidth of the memory: benches
// that repeat pages of the cache over sequences read 1.7 times as fast as it (A100, long keys). The
// work are all of them, the products, a microsecond a block and 2 ns a key of one (slow kernels).
static void shape_limits(const Gpu *gpu, const AttentionShape *s, double *least_s, double *work_s) {
    double keys = s->tokens, bandwidth = gpu->memory_bandwidth_bytes_per_s;
    if (s->variant.window_size > 0) keys = fmin(keys, s->variant.window_size);
    double element_bytes = s->variant.kv_cache_dtype == ATTENTION_FP8 ? 1 : 2;
    double bytes = 2 * s->batch * s->kv_heads * keys * s->variant.head_dim * element_bytes;
    double flops = 4 * s->batch * s->heads * keys * s->variant.head_dim;
    *least_s = fmax(0, bytes - gpu->l2_bytes) / (2 * bandwidth);
    *work_s = bytes / bandwidth + flops / attention_peak_flops_per_s(gpu, s->variant.attn_dtype) +
              1e-6 * s->batch * s->heads / gpu->num_sms + 2e-9 * keys;
}

static double shape_price_s(const Gpu *gpu, const void *kernels, const AttentionShape *shape) {
    return kernel_generation_s(gpu, kernels, shape);
}

static cJSON *kernels_to_json(const void *kernels) {
    return generation_kernels_to_json(kernels);
}

const AttentionPhase GENERATION_PHASE = {
    .step = true,
    .limit_name = "twice the memory bandwidth",
    .limits = shape_limits,
    .start = parts_start,
    .fit = kernels_fit,
    .price_s = shape_price_s,
    .to_json = kernels_to_json,
};
