#include "calibrate/fit_gemm.h"

#include "calibrate/fit_surface.h"
#include "costmodel/kernel/kernel_gemm.h"
#include "costmodel/kernel/rising_gemm.h"
#include "costmodel/kernel/surface_value.h"

#include <math.h>
#include <string.h>

// The rows of one number format.
typedef struct {
    const Gpu *gpu;
    GemmDtype dtype;
    int num_rows;
    double *m, *n, *k, *latency_s; // [num_rows]
    int *table_rows;               // [num_rows], where they stand in the table
} GemmRows;

enum { NUM_FOLDS = 10, MIN_GROUPS = 12, FORMULA_ROWS = 2000 };

// Where the fitted parameters lie in a GemmKernel, with start and bounds. Starts are typical of
// Hopper; bounds are what hardware of this decade can do.
#define PARAMETER(key, start, low, high, log_scale)                                                \
    { {#key, start, low, high, log_scale}, offsetof(GemmKernel, key) }
static const struct {
    FitParameter fit;
    size_t offset;
} PARAMETERS[] = {
    PARAMETER(launch_s, 5e-6, 1e-6, 3e-5, true),
    PARAMETER(max_frac, 0.8, 0.3, 1, false),
    PARAMETER(half_k, 150, 0.1, 3000, true),
    PARAMETER(tail_frac, 0.4, 0, 1, false),
    PARAMETER(split_bytes, 20, 1, 200, true),
    PARAMETER(memory_frac, 0.85, 0.4, 1, false),
    PARAMETER(l2_speedup, 1.5, 1, 10, true),
    PARAMETER(l2_frac, 0.4, 0.02, 2, true),
    PARAMETER(l2_power, 8, 1, 100, true),
    PARAMETER(loss_frac, 0.13, 0, 0.6, false),
    PARAMETER(half_s, 4e-3, 1e-4, 1, true),
    PARAMETER(overlap_power, 3, 1, 20, true),
    PARAMETER(latency_s, 1.2e-9, 1e-10, 1e-8, true),
    PARAMETER(split_s, 2e-6, 1e-7, 2e-5, true),
    PARAMETER(split_from_k, 1024, 256, 16384, true),
    PARAMETER(split_from_elements, 1e5, 1e3, 1e7, true),
    PARAMETER(tile_64x64_frac, 0.5, 0.1, 1, false),
    PARAMETER(tile_64x128_frac, 0.7, 0.1, 1, false),
    PARAMETER(tile_128x128_frac, 0.85, 0.1, 1, false),
    PARAMETER(quantize_bytes, 4, 0.01, 30, true), // last: 16-bit operands have none
};
enum { NUM_PARAMETERS = sizeof PARAMETERS / sizeof *PARAMETERS };

static int num_parameters_of(GemmDtype dtype) {
    return dtype == GEMM_BFLOAT16 ? NUM_PARAMETERS - 1 : NUM_PARAMETERS;
}

static GemmKernel kernel_of(const double *parameters, int num_parameters) {
    GemmKernel kernel = {.present = true};
    for (int i = 0; i < num_parameters; i++)
        memcpy((char *)&kernel + PARAMETERS[i].offset, &parameters[i], sizeof(double));
    return kernel;
}

static double formula_log(const void *context, int row, const double *parameters) {
    const GemmRows *rows = context;
    GemmKernel kernel = kernel_of(parameters, num_parameters_of(rows->dtype));
    return log(kernel_gemm_formula_s(rows->gpu, &kernel, rows->dtype, rows->m[row], rows->n[row],
                                     rows->k[row]));
}

// The physical parameters, on some FORMULA_ROWS of the rows: twenty numbers need no more.
static GemmKernel formula_fit(const GemmRows *rows, Arena *arena) {
    FitParameter parameters[NUM_PARAMETERS];
    for (int i = 0; i < NUM_PARAMETERS; i++) parameters[i] = PARAMETERS[i].fit;
    double *target = ARENA_ARRAY(arena, rows->num_rows, double);
    double *weights = ARENA_ARRAY(arena, rows->num_rows, double);
    for (int i = 0; i < rows->num_rows; i++) {
        target[i] = log(rows->latency_s[i]);
        double number = i; // a hash, since tables are in an order
        weights[i] = fit_key(&number, 1) % (uint64_t)rows->num_rows < FORMULA_ROWS;
    }
    FitProblem problem = {rows->num_rows, target, weights,
                          formula_log,    rows,   num_parameters_of(rows->dtype),
                          parameters};
    double values[NUM_PARAMETERS];
    fit_simplex(&problem, values);
    return kernel_of(values, problem.num_parameters);
}

// Knots of the residual grids. Libraries change kernels just above multiples of the tile's rows, so
// that the fine m has pairs there; n and k follow the sizes of models.
static const double M_KNOTS[] = {1, 17, 32, 64, 96, 128, 160, 256, 512, 1024, 2048, 4096, 32768};
static const double FINE_M_KNOTS[] = {
    1,    8,    16,   17,   32,   33,   48,   49,   64,   65,   80,   81,    96,   97,   112,  113,
    128,  129,  160,  161,  192,  193,  224,  225,  256,  257,  512,  513,   768,  769,  1024, 1025,
    1280, 1281, 1536, 1537, 1792, 1793, 2048, 2049, 2304, 2305, 2560, 2561,  2816, 2817, 3072, 3073,
    3328, 3329, 3584, 3585, 3840, 3841, 4096, 4097, 4352, 4353, 8192, 16384, 32768};
static const double NK_KNOTS[] = {32,   64,    128,   256,   512,   768,  1024, 1536,
                                  2048, 2560,  3072,  3584,  4096,  5120, 6144, 7168,
                                  8192, 10240, 12288, 16384, 51200, 65536};
enum { FEW = 24 }; // sizes of m that are all knots
#define COUNT(knots) ((int)(sizeof(knots) / sizeof *(knots)))

static bool is_measured(double knot, const double *values, int num_rows) {
    for (int i = 0; i < num_rows; i++)
        if (values[i] == knot) return true;
    return false;
}

// Every measured value, rising; num_knots 0 where there are more than FEW.
static SurfaceAxis axis_of_all(const char *name, const double *values, int num_rows, Arena *arena) {
    double kept[FEW];
    int num_kept = 0;
    for (int i = 0; i < num_rows; i++) {
        int at = 0;
        while (at < num_kept && kept[at] < values[i]) at++;
        if (at < num_kept && kept[at] == values[i]) continue;
        if (num_kept == FEW) return (SurfaceAxis){.name = name};
        memmove(kept + at + 1, kept + at, (size_t)(num_kept - at) * sizeof *kept);
        kept[at] = values[i];
        num_kept++;
    }
    return surface_axis(name, kept, num_kept, arena);
}

// The knots within the measured range, and only the measured ones where there are five or more; the
// nearest one where none is left.
static SurfaceAxis axis_within(const char *name, const double *knots, int num_knots,
                               const double *values, int num_rows, Arena *arena) {
    double low = INFINITY, high = 0, kept[SURFACE_MAX_KNOTS];
    for (int i = 0; i < num_rows; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    int num_kept = 0;
    for (int i = 0; i < num_knots; i++)
        if (is_measured(knots[i], values, num_rows)) kept[num_kept++] = knots[i];
    if (num_kept >= 5) return surface_axis(name, kept, num_kept, arena);
    int first = 0, last = num_knots - 1;
    while (first < last && knots[first] < low) first++;
    while (last > first && knots[last] > high) last--;
    return surface_axis(name, knots + first, last - first + 1, arena);
}

enum { NUM_SURFACES = 3 };

// Stiffness and priors were chosen by left-out (n, k).
static void specs_of(const GemmRows *rows, Arena *arena, SurfaceSpec *specs) {
    int n = rows->num_rows;
    SurfaceAxis coarse_m = axis_within("m", M_KNOTS, COUNT(M_KNOTS), rows->m, n, arena);
    SurfaceAxis fine_m = axis_within("m", FINE_M_KNOTS, COUNT(FINE_M_KNOTS), rows->m, n, arena);
    SurfaceAxis all_m = axis_of_all("m", rows->m, n, arena);
    if (all_m.num_knots > 0) coarse_m = fine_m = all_m;
    SurfaceAxis of_n = axis_within("n", NK_KNOTS, COUNT(NK_KNOTS), rows->n, n, arena);
    SurfaceAxis of_k = axis_within("k", NK_KNOTS, COUNT(NK_KNOTS), rows->k, n, arena);
    specs[0] = (SurfaceSpec){.num_axes = 3,
                             .axes = {coarse_m, of_n, of_k},
                             .stiffness = {0.02, 0.1, 0.1},
                             .flatness = {0.02, 0.01, 0.01},
                             .prior = 0.01};
    specs[1] = specs[2] = (SurfaceSpec){
        .num_axes = 2, .axes = {fine_m, of_n}, .stiffness = {0.02, 0.02}, .prior = 0.02};
    specs[2].axes[1] = of_k;
}

// What the residual grid is fitted to.
typedef struct {
    double *formula_s, *residual; // [num_rows]
    double *places[NUM_SURFACES]; // [num_rows][3], [num_rows][2], [num_rows][2]
    int *folds;                   // [num_rows]
    int num_groups;
} GemmResiduals;

static GemmResiduals residuals_of(const GemmRows *rows, const GemmKernel *kernel, Arena *arena) {
    int num_rows = rows->num_rows;
    GemmResiduals r = {
        .formula_s = ARENA_ARRAY(arena, num_rows, double),
        .residual = ARENA_ARRAY(arena, num_rows, double),
        .places = {ARENA_ARRAY(arena, 3 * num_rows, double),
                   ARENA_ARRAY(arena, 2 * num_rows, double),
                   ARENA_ARRAY(arena, 2 * num_rows, double)},
        .folds = ARENA_ARRAY(arena, num_rows, int),
    };
    uint64_t *keys = ARENA_ARRAY(arena, num_rows, uint64_t);
    for (int i = 0; i < num_rows; i++) {
        double shape[] = {rows->n[i], rows->k[i]};
        keys[i] = fit_key(shape, 2);
        r.formula_s[i] = kernel_gemm_formula_s(rows->gpu, kernel, rows->dtype, rows->m[i],
                                               rows->n[i], rows->k[i]);
        r.residual[i] = log(rows->latency_s[i] / r.formula_s[i]);
        double m = log2(rows->m[i]), n = log2(rows->n[i]), k = log2(rows->k[i]);
        memcpy(r.places[0] + 3 * i, (double[]){m, n, k}, 3 * sizeof(double));
        memcpy(r.places[1] + 2 * i, (double[]){m, n}, 2 * sizeof(double));
        memcpy(r.places[2] + 2 * i, (double[]){m, k}, 2 * sizeof(double));
    }
    r.num_groups = fit_folds(num_rows, keys, NUM_FOLDS, r.folds);
    return r;
}

// Fits the grids without the rows of one fold (-1: with all) and predicts those of the fold (all).
static void surfaces_fit(const GemmRows *rows, const GemmResiduals *r, int fold, Arena *arena,
                         GemmKernel *kernel, double *predicted_s) {
    SurfaceSpec specs[NUM_SURFACES];
    Surface surfaces[NUM_SURFACES];
    specs_of(rows, arena, specs);
    double *weights = ARENA_ARRAY(arena, rows->num_rows, double);
    for (int i = 0; i < rows->num_rows; i++) weights[i] = r->folds[i] != fold;
    const double *places[] = {r->places[0], r->places[1], r->places[2]};
    SurfaceData data = {rows->num_rows, r->residual, weights, 0.1, 5};
    fit_surfaces(specs, places, NUM_SURFACES, &data, arena, surfaces);
    kernel->surface = surfaces[0];
    kernel->surface_mn = surfaces[1];
    kernel->surface_mk = surfaces[2];
    for (int i = 0; i < rows->num_rows; i++)
        if (fold < 0 || r->folds[i] == fold)
            predicted_s[i] = r->formula_s[i] *
                             exp(kernel_gemm_log_ratio(kernel, rows->m[i], rows->n[i], rows->k[i]));
}

// Fits one number format; predictions go to left_out_s and all_s [rows of the table].
static Status dtype_fit(const KernelTable *table, const GemmRows *rows, Arena *arena,
                        GemmKernel *out, int *num_groups, double *left_out_s, double *all_s) {
    Arena scratch = {0};
    GemmKernel kernel = formula_fit(rows, &scratch);
    GemmResiduals r = residuals_of(rows, &kernel, &scratch);
    double *predicted_s = ARENA_ARRAY(&scratch, rows->num_rows, double);
    for (int fold = 0; fold < NUM_FOLDS && r.num_groups >= MIN_GROUPS; fold++) {
        Arena once = {0};
        GemmKernel without = kernel;
        surfaces_fit(rows, &r, fold, &once, &without, predicted_s);
        arena_free(&once);
    }
    FitScore score = fit_score(rows->num_rows, predicted_s, rows->latency_s);
    for (int i = 0; i < rows->num_rows; i++) left_out_s[rows->table_rows[i]] = predicted_s[i];
    surfaces_fit(rows, &r, -1, arena, &kernel, predicted_s);
    for (int i = 0; i < rows->num_rows; i++) all_s[rows->table_rows[i]] = predicted_s[i];
    kernel.surface.spread_frac = kernel.surface_mn.spread_frac = kernel.surface_mk.spread_frac =
        fit_round(score.median_frac);
    kernel.residual_median_frac = score.median_frac;
    kernel.residual_p90_frac = score.p90_frac;
    *num_groups = r.num_groups;
    *out = kernel;
    arena_free(&scratch);
    if (r.num_groups >= MIN_GROUPS) return status_ok();
    return status_at(STATUS_INVALID, table->file, "",
                     "%s has %d shapes (n, k); expected at least %d to fit and to leave out",
                     GEMM_DTYPE_NAMES[rows->dtype], r.num_groups, MIN_GROUPS);
}

// The table's columns.
typedef struct {
    int *dtypes; // [num_rows]; -1 for a format we do not know
    double *m, *n, *k;
} GemmTable;

static Status table_read(const KernelTable *table, Arena *arena, GemmTable *out) {
    TRY(kernel_table_counts(table, "m", 1, 1e9, arena, &out->m));
    TRY(kernel_table_counts(table, "n", 1, 1e9, arena, &out->n));
    TRY(kernel_table_counts(table, "k", 1, 1e9, arena, &out->k));
    out->dtypes = kernel_table_choices(table, "gemm_dtype", GEMM_DTYPE_NAMES, arena);
    return status_ok();
}

// Refuses formats that cannot be fitted, and times beyond the hardware: products at the peak rate,
// and every byte that the L2 cache cannot keep from call to call read once.
static Status table_check(const KernelTable *table, const GemmTable *shapes, const Gpu *gpu,
                          const double *latency_s, Arena *arena) {
    KernelLimits limits = kernel_limits_new(table, arena);
    TRY(kernel_table_check_choices(table, "gemm_dtype", shapes->dtypes, GEMM_DTYPE_NAMES));
    for (int row = 0; row < table->num_rows; row++) {
        GemmDtype dtype = (GemmDtype)shapes->dtypes[row];
        double m = shapes->m[row], n = shapes->n[row], k = shapes->k[row];
        double peak = gemm_peak_flops_per_s(gpu, dtype), bytes = kernel_gemm_bytes(dtype, m, n, k);
        if (peak <= 0)
            return kernel_table_error(table, row, "gemm_dtype: %s has no %s units", gpu->name,
                                      GEMM_DTYPE_NAMES[dtype]);
        double read_bytes = fmax(0, bytes - gpu->l2_bytes);
        limits.least_s[row] =
            fmax(2 * m * n * k / peak, read_bytes / gpu->memory_bandwidth_bytes_per_s);
        limits.work_s[row] = 2 * m * n * k / peak + bytes / gpu->memory_bandwidth_bytes_per_s;
    }
    return kernel_table_check_limits(table, latency_s, &limits,
                                     "the GPU's peak rate or memory bandwidth");
}

static GemmRows rows_of(const GemmTable *shapes, int num_rows, const double *latency_s,
                        const Gpu *gpu, GemmDtype dtype, Arena *arena) {
    GemmRows rows = {.gpu = gpu, .dtype = dtype};
    double **columns[] = {&rows.m, &rows.n, &rows.k, &rows.latency_s};
    for (int i = 0; i < 4; i++) *columns[i] = ARENA_ARRAY(arena, num_rows, double);
    rows.table_rows = ARENA_ARRAY(arena, num_rows, int);
    for (int row = 0; row < num_rows; row++) {
        if (shapes->dtypes[row] != (int)dtype) continue;
        int at = rows.num_rows++;
        rows.m[at] = shapes->m[row];
        rows.n[at] = shapes->n[row];
        rows.k[at] = shapes->k[row];
        rows.latency_s[at] = latency_s[row];
        rows.table_rows[at] = row;
    }
    return rows;
}

Status gemm_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
                KindFit *out) {
    GemmTable shapes;
    TRY(table_read(table, arena, &shapes));
    TRY(table_check(table, &shapes, gpu, latency_s, arena));
    double *left_out_s = ARENA_ARRAY(arena, table->num_rows, double);
    double *all_s = ARENA_ARRAY(arena, table->num_rows, double);
    cJSON *section = cJSON_CreateObject();
    Status status = status_ok();
    for (int d = 0; d < NUM_GEMM_DTYPES && status.code == STATUS_OK; d++) {
        GemmRows rows = rows_of(&shapes, table->num_rows, latency_s, gpu, (GemmDtype)d, arena);
        if (rows.num_rows == 0) continue;
        GemmKernel kernel;
        int num_groups;
        status = dtype_fit(table, &rows, arena, &kernel, &num_groups, left_out_s, all_s);
        out->num_groups += num_groups;
        cJSON_AddItemToObject(section, GEMM_DTYPE_NAMES[d], gemm_kernel_to_json(&kernel));
    }
    if (status.code != STATUS_OK) {
        cJSON_Delete(section);
        return status;
    }
    out->section = section;
    out->fitted_s = all_s;
    out->left_out = fit_score(table->num_rows, left_out_s, latency_s);
    out->all = fit_score(table->num_rows, all_s, latency_s);
    return status_ok();
}

Status gemm_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                  Arena *arena, double *predicted_s, RowEdges *edges) {
    GemmTable shapes;
    RisingGemm *gemms[NUM_GEMM_DTYPES] = {NULL};
    TRY(table_read(table, arena, &shapes));
    for (int row = 0; row < table->num_rows; row++) {
        int dtype = shapes.dtypes[row];
        double m = shapes.m[row], n = shapes.n[row], k = shapes.k[row];
        predicted_s[row] = NAN;
        if (dtype < 0 || !profile->gemm.dtypes[dtype].present ||
            gemm_peak_flops_per_s(gpu, (GemmDtype)dtype) <= 0)
            continue;
        if (!gemms[dtype])
            gemms[dtype] = rising_gemm_new(gpu, &profile->gemm, (GemmDtype)dtype, arena);
        predicted_s[row] = rising_gemm_s(gemms[dtype], m, n, k);
        if (!edges) continue;
        KernelEdges found = {0};
        rising_gemm_edges(gemms[dtype], m, n, k, &found);
        edges[row] = row_edges(&found, arena);
        edges[row].formula_s = kernel_gemm_s(gpu, &profile->gemm, (GemmDtype)dtype, m, n, k);
    }
    return status_ok();
}
