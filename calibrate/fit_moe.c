#include "calibrate/fit_moe.h"

#include "calibrate/fit_surface.h"
#include "calibrate/moe_rows.h"
#include "costmodel/kernel/rising_moe.h"
#include "costmodel/kernel/surface_value.h"

#include <math.h>
#include <string.h>

// A residual beyond this is an outlier (log): Cauchy's scale.
static const double OUTLIER = 0.1;

enum {
    NUM_PARAMETERS = 16,
    NUM_FOLDS = 16,
    NUM_ROUNDS = 3,       // of reweighting
    SAMPLE_ROWS = 3000,   // for the parameters of the final fit
    FOLD_ROWS = 1500,     // and of a cross-validation's
    MIN_KERNEL_ROWS = 60, // of one kernel_source and moe_dtype
};

static const FitParameter PARAMETERS[NUM_PARAMETERS] = {
    {"launch_s", 20e-6, 0.5e-6, 500e-6, true}, {"pair_s", 0.5e-9, 0.01e-9, 1e-6, true},
    {"expert_s", 5e-9, 0.1e-9, 1e-6, true},    {"local_expert_s", 20e-9, 0.1e-9, 2e-6, true},
    {"token_passes", 2, 0.05, 1000, true},     {"row_passes", 1, 0.05, 50, true},
    {"inner_passes", 1, 0.05, 50, true},       {"max_frac", 0.7, 0.05, 1, true},
    {"half_rows", 20, 1, 500, true},           {"half_k", 200, 10, 5000, true},
    {"tail_frac", 0.5, 0, 1, false},           {"memory_frac", 0.8, 0.1, 1, true},
    {"cache_frac", 0.5, 0.05, 4, true},        {"overlap_power", 2, 1, 12, true},
    {"cache_power", 6, 1, 40, true},           {"cache_speedup", 3, 1, 8, true},
};

// Rows of one kernel.
typedef struct {
    const Gpu *gpu;
    MoeKernel kernel; // names and flags; the rest is fitted
    int num_rows;
    const int *rows;      // [num_rows], in the table
    const MoeRow *table;  // [all rows]
    const MoeLoad *loads; // [num_rows]
    const double *log_s;  // [num_rows], measured
    const double *places; // [num_rows][MOE_NUM_AXES]
    const int *folds;     // [num_rows]
    const int *sample;    // rows of the fit in progress, indices below num_rows
} KernelRows;

static void parameters_set(MoeKernel *kernel, const double *values) {
    double *const at[NUM_PARAMETERS] = {
        &kernel->launch_s,       &kernel->pair_s,        &kernel->expert_s,
        &kernel->local_expert_s, &kernel->token_passes,  &kernel->row_passes,
        &kernel->inner_passes,   &kernel->max_frac,      &kernel->half_rows,
        &kernel->half_k,         &kernel->tail_frac,     &kernel->memory_frac,
        &kernel->cache_frac,     &kernel->overlap_power, &kernel->cache_power,
        &kernel->cache_speedup};
    for (int i = 0; i < NUM_PARAMETERS; i++) *at[i] = values[i];
}

static const MoeShape *row_shape(const KernelRows *k, int i) {
    return &k->table[k->rows[i]].shape;
}

static double model_log_s(const void *context, int row, const double *values) {
    const KernelRows *k = context;
    MoeKernel kernel = k->kernel;
    parameters_set(&kernel, values);
    int i = k->sample[row];
    return log(kernel_moe_formula_s(k->gpu, &kernel, row_shape(k, i), &k->loads[i]));
}

// Parameters from a sample of the rows outside fold (-1: all rows), improving values.
static void parameters_fit(const KernelRows *rows, int fold, int max_rows, int num_rounds,
                           Arena *arena, double *values) {
    int *sample = ARENA_ARRAY(arena, rows->num_rows, int), num_left = 0, num_sample = 0;
    for (int i = 0; i < rows->num_rows; i++)
        if (rows->folds[i] != fold) sample[num_left++] = i;
    int step = num_left / max_rows + 1;
    for (int i = 0; i < num_left; i += step) sample[num_sample++] = sample[i];
    KernelRows k = *rows;
    k.sample = sample;
    double *target = ARENA_ARRAY(arena, num_sample, double);
    double *weights = ARENA_ARRAY(arena, num_sample, double);
    for (int i = 0; i < num_sample; i++) target[i] = k.log_s[sample[i]], weights[i] = 1;
    FitProblem problem = {num_sample, target, weights, model_log_s, &k, NUM_PARAMETERS, PARAMETERS};
    for (int round = 0; round < num_rounds; round++) {
        if (round > 0 || num_rounds == 1)
            for (int i = 0; i < num_sample; i++) {
                double e = (model_log_s(&k, i, values) - target[i]) / OUTLIER;
                weights[i] = 1 / (1 + e * e);
            }
        fit_gradient(&problem, values);
    }
}

static void surface_fit(const KernelRows *k, const MoeKernel *kernel, int fold, Arena *arena,
                        Surface *out) {
    static const double ROWS[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384};
    static const double ACTIVE[] = {1, 4, 16, 64, 256, 512};
    static const double INTER[] = {32, 128, 512, 2048, 8192};
    SurfaceSpec spec = {.num_axes = MOE_NUM_AXES, .prior = 2};
    spec.axes[0] = surface_axis(MOE_SURFACE_AXES[0], ROWS, 13, arena);
    spec.axes[1] = surface_axis(MOE_SURFACE_AXES[1], ACTIVE, 6, arena);
    spec.axes[2] = surface_axis(MOE_SURFACE_AXES[2], INTER, 5, arena);
    for (int a = 0; a < MOE_NUM_AXES; a++) spec.stiffness[a] = 2, spec.flatness[a] = 1;
    double *residual = ARENA_ARRAY(arena, k->num_rows, double);
    double *weights = ARENA_ARRAY(arena, k->num_rows, double);
    for (int i = 0; i < k->num_rows; i++) {
        residual[i] =
            k->log_s[i] - log(kernel_moe_formula_s(k->gpu, kernel, row_shape(k, i), &k->loads[i]));
        weights[i] = k->folds[i] != fold;
    }
    SurfaceData data = {k->num_rows, residual, weights, OUTLIER, 5};
    fit_surfaces(&spec, &k->places, 1, &data, arena, out);
}

// Predictions of the rows of one fold by a fit without them.
static void fold_predict(const KernelRows *k, int fold, const double *start, double *predicted_s) {
    int num_in = 0, num_left = 0;
    for (int i = 0; i < k->num_rows; i++) *(k->folds[i] == fold ? &num_in : &num_left) += 1;
    if (num_in == 0 || num_left < MIN_KERNEL_ROWS) return;
    Arena scratch = {0};
    double values[NUM_PARAMETERS];
    memcpy(values, start, sizeof values);
    parameters_fit(k, fold, FOLD_ROWS, 1, &scratch, values);
    MoeKernel kernel = k->kernel;
    parameters_set(&kernel, values);
    Surface surface;
    surface_fit(k, &kernel, fold, &scratch, &surface);
    for (int i = 0; i < k->num_rows; i++)
        if (k->folds[i] == fold)
            predicted_s[k->rows[i]] =
                kernel_moe_formula_s(k->gpu, &kernel, row_shape(k, i), &k->loads[i]) *
                exp(surface_log_ratio(&surface, k->places + i * MOE_NUM_AXES));
    arena_free(&scratch);
}

// Fits one kernel; left_out_s and fitted_s [all rows] receive its rows' predictions.
static MoeKernel kernel_fit(const KernelRows *k, const double *latency_s, Arena *arena,
                            double *left_out_s, double *fitted_s) {
    MoeKernel kernel = k->kernel;
    double values[NUM_PARAMETERS];
    for (int i = 0; i < NUM_PARAMETERS; i++) values[i] = PARAMETERS[i].start;
    parameters_fit(k, -1, SAMPLE_ROWS, NUM_ROUNDS, arena, values);
    parameters_set(&kernel, values);
    surface_fit(k, &kernel, -1, arena, &kernel.surface);
    for (int i = 0; i < k->num_rows; i++)
        fitted_s[k->rows[i]] =
            kernel_moe_formula_s(k->gpu, &kernel, row_shape(k, i), &k->loads[i]) *
            exp(surface_log_ratio(&kernel.surface, k->places + i * MOE_NUM_AXES));
    for (int fold = 0; fold < NUM_FOLDS; fold++) fold_predict(k, fold, values, left_out_s);
    FitScore score = fit_score_rows(k->num_rows, k->rows, left_out_s, latency_s);
    if (score.num_priced == 0) score = fit_score_rows(k->num_rows, k->rows, fitted_s, latency_s);
    kernel.residual_median_frac = fit_round(score.median_frac);
    kernel.residual_p90_frac = fit_round(score.p90_frac);
    kernel.surface.spread_frac = kernel.residual_median_frac;
    return kernel;
}

static Status rows_check(const KernelTable *table, const MoeRow *rows, const Gpu *gpu) {
    for (int i = 0; i < table->num_rows; i++) {
        if (rows[i].problem) return kernel_table_error(table, i, "%s", rows[i].problem);
        if (moe_peak_flops_per_s(gpu, (MoeDtype)rows[i].moe_dtype) <= 0)
            return kernel_table_error(table, i, "moe_dtype: %s has no %s units", gpu->name,
                                      MOE_DTYPE_NAMES[rows[i].moe_dtype]);
    }
    return status_ok();
}

// One kernel with its names; new ones in order of appearance.
static Status kernels_list(const KernelTable *table, const MoeRow *rows, MoeKernel *kernels,
                           int *num_kernels, int *kernel_of) {
    *num_kernels = 0;
    for (int i = 0; i < table->num_rows; i++) {
        const char *source = rows[i].kernel_source;
        MoeKernels list = {*num_kernels, kernels};
        const MoeKernel *found = moe_kernel_find(&list, rows[i].moe_dtype, source);
        if (!found) {
            if (*num_kernels == MOE_MAX_KERNELS)
                return kernel_table_error(table, i,
                                          "kernel_source: more than %d kernel_source and moe_dtype",
                                          MOE_MAX_KERNELS);
            kernels[*num_kernels] =
                (MoeKernel){.kernel_source = source,
                            .moe_dtype = rows[i].moe_dtype,
                            .gated = strstr(source, "nongated") == NULL,
                            .group_limited = strstr(source, "min_latency") != NULL};
            found = &kernels[(*num_kernels)++];
        }
        kernel_of[i] = (int)(found - kernels);
    }
    return status_ok();
}

// What all kernels' fits share.
typedef struct {
    const Gpu *gpu;
    const MoeRow *rows; // [num_rows]
    int num_rows;
    const double *latency_s; // [num_rows]
    const int *kernel_of;    // [num_rows]
    const int *folds;        // [num_rows]
    MoeLoadCache *cache;
} TableRows;

static KernelRows kernel_rows(const TableRows *t, const MoeKernel *kernel, int index,
                              Arena *arena) {
    int *rows = ARENA_ARRAY(arena, t->num_rows, int), num_rows = 0;
    for (int i = 0; i < t->num_rows; i++)
        if (t->kernel_of[i] == index) rows[num_rows++] = i;
    MoeLoad *loads = ARENA_ARRAY(arena, num_rows, MoeLoad);
    double *log_s = ARENA_ARRAY(arena, num_rows, double);
    double *places = ARENA_ARRAY(arena, num_rows * MOE_NUM_AXES, double);
    int *folds = ARENA_ARRAY(arena, num_rows, int);
    for (int i = 0; i < num_rows; i++) {
        const MoeShape *shape = &t->rows[rows[i]].shape;
        MoeRouting routing = shape->routing;
        routing.group_limited = kernel->group_limited;
        loads[i] = moe_load_cached(t->cache, &routing);
        log_s[i] = log(t->latency_s[rows[i]]);
        folds[i] = t->folds[rows[i]];
        kernel_moe_place(shape, &loads[i], places + i * MOE_NUM_AXES);
    }
    return (KernelRows){.gpu = t->gpu,
                        .kernel = *kernel,
                        .num_rows = num_rows,
                        .rows = rows,
                        .table = t->rows,
                        .loads = loads,
                        .log_s = log_s,
                        .places = places,
                        .folds = folds};
}

// Products at the peak; the work are the weights of all experts on the rank and the routed rows in
// memory, too, and one pass over those of other ranks: Triton's kernels of 128 x 128 blocks sort
// and quantize all.
static Status limits_check(const KernelTable *table, const KernelRows *kernels, int num_kernels,
                           const double *latency_s, Arena *arena) {
    KernelLimits limits = kernel_limits_new(table, arena);
    for (int n = 0; n < num_kernels; n++)
        for (int i = 0; i < kernels[n].num_rows; i++) {
            const KernelRows *k = &kernels[n];
            const MoeShape *shape = row_shape(k, i);
            double experts = shape->routing.num_experts / shape->routing.num_ranks;
            double weights = 3 * experts * shape->inter_size;
            double routed = shape->routing.num_tokens * shape->routing.topk;
            double bytes = 2 * shape->hidden_size * (weights + 4 * k->loads[i].num_rows + routed);
            double least_s = kernel_moe_least_s(k->gpu, &k->kernel, shape, &k->loads[i]);
            limits.least_s[k->rows[i]] = least_s;
            limits.work_s[k->rows[i]] = least_s + bytes / k->gpu->memory_bandwidth_bytes_per_s;
        }
    return kernel_table_check_limits(table, latency_s, &limits, "the GPU's dense peak");
}

static Status kernels_check(const KernelTable *table, const KernelRows *kernels, int num_kernels,
                            int num_groups) {
    if (num_groups < 2)
        return status_at(STATUS_INVALID, table->file, "",
                         "all rows have the same hidden_size, inter_size, topk and num_experts; "
                         "expected at least 2 such groups, to leave one out");
    for (int n = 0; n < num_kernels; n++)
        if (kernels[n].num_rows < MIN_KERNEL_ROWS)
            return kernel_table_error(table, kernels[n].rows[0],
                                      "kernel_source: only %d rows of %s in %s; expected at least "
                                      "%d",
                                      kernels[n].num_rows, kernels[n].kernel.kernel_source,
                                      MOE_DTYPE_NAMES[kernels[n].kernel.moe_dtype],
                                      MIN_KERNEL_ROWS);
    return status_ok();
}

static int *rows_fold(const MoeRow *rows, int num_rows, Arena *arena, int *num_groups) {
    uint64_t *keys = ARENA_ARRAY(arena, num_rows, uint64_t);
    int *folds = ARENA_ARRAY(arena, num_rows, int);
    for (int i = 0; i < num_rows; i++) keys[i] = rows[i].group;
    *num_groups = fit_folds(num_rows, keys, NUM_FOLDS, folds);
    return folds;
}

Status moe_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
               KindFit *out) {
    int n = table->num_rows, num_kernels;
    MoeRow *rows;
    MoeKernel kernels[MOE_MAX_KERNELS];
    KernelRows split[MOE_MAX_KERNELS];
    int *kernel_of = ARENA_ARRAY(arena, n, int);
    TRY(moe_rows_read(table, arena, &rows));
    TRY(rows_check(table, rows, gpu));
    TRY(kernels_list(table, rows, kernels, &num_kernels, kernel_of));
    TableRows shared = {.gpu = gpu,
                        .rows = rows,
                        .num_rows = n,
                        .latency_s = latency_s,
                        .kernel_of = kernel_of,
                        .cache = moe_load_cache_new(arena)};
    shared.folds = rows_fold(rows, n, arena, &out->num_groups);
    for (int i = 0; i < num_kernels; i++) split[i] = kernel_rows(&shared, &kernels[i], i, arena);
    TRY(kernels_check(table, split, num_kernels, out->num_groups));
    TRY(limits_check(table, split, num_kernels, latency_s, arena));
    double *left_out_s = ARENA_ARRAY(arena, n, double), *fitted_s = ARENA_ARRAY(arena, n, double);
    for (int i = 0; i < n; i++) left_out_s[i] = NAN;
    for (int i = 0; i < num_kernels; i++)
        kernels[i] = kernel_fit(&split[i], latency_s, arena, left_out_s, fitted_s);
    out->section = moe_kernels_to_json(&(MoeKernels){num_kernels, kernels});
    out->fitted_s = fitted_s;
    out->left_out = fit_score(n, left_out_s, latency_s);
    out->all = fit_score(n, fitted_s, latency_s);
    return status_ok();
}

Status moe_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                 Arena *arena, double *predicted_s, RowEdges *edges) {
    MoeRow *rows;
    RisingMoe *moe = rising_moe_new(gpu, arena);
    TRY(moe_rows_read(table, arena, &rows));
    for (int i = 0; i < table->num_rows; i++) {
        const MoeKernel *kernel =
            moe_kernel_find(&profile->moe, rows[i].moe_dtype, rows[i].kernel_source);
        predicted_s[i] = NAN;
        if (!kernel || rows[i].problem) continue;
        rows[i].shape.routing.group_limited = kernel->group_limited;
        predicted_s[i] = rising_moe_s(moe, kernel, &rows[i].shape);
        if (!edges || isnan(predicted_s[i])) continue;
        KernelEdges found = {0};
        rising_moe_edges(moe, kernel, &rows[i].shape, rows[i].num_splits, &found);
        edges[i] = row_edges(&found, arena);
    }
    return status_ok();
}
