#include "calibrate/fit_nccl.h"

#include "calibrate/fit_surface.h"
#include "config/machine/gpu_link.h"
#include "costmodel/kernel/kernel_nccl.h"
#include "costmodel/kernel/rising_nccl.h"
#include "costmodel/kernel/surface_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_FOLDS = 7, MIN_CURVE_ROWS = 4, MAX_KNOTS = 48 };

static const double OUTLIER = 0.05; // of the log, Cauchy's scale

typedef struct {
    int op, dtype; // NcclOp and NCCL_HALF or NCCL_INT8; negative where unknown
    int num_gpus;
    double element_bytes, num_elements, bytes;
} NcclRow;

// What bytes of an element a format has, and whose curve it takes.
const char *const NCCL_ELEMENT_NAMES[] = {"half", "bfloat16", "float", "int8", NULL};
static const struct {
    int dtype;
    double bytes;
} ELEMENTS[] = {{NCCL_HALF, 2}, {NCCL_HALF, 2}, {NCCL_HALF, 4}, {NCCL_INT8, 1}};

static Status rows_read(const KernelTable *table, Arena *arena, NcclRow **out) {
    double *num_gpus, *sizes;
    TRY(kernel_table_counts(table, "num_gpus", 2, 1 << 20, arena, &num_gpus));
    TRY(kernel_table_counts(table, "message_size", 1, 1e14, arena, &sizes));
    const int *ops = kernel_table_choices(table, "op_name", NCCL_OP_NAMES, arena);
    const int *dtypes = kernel_table_choices(table, "nccl_dtype", NCCL_ELEMENT_NAMES, arena);
    NcclRow *rows = ARENA_ARRAY(arena, table->num_rows, NcclRow);
    for (int i = 0; i < table->num_rows; i++) {
        rows[i].op = ops[i];
        rows[i].dtype = dtypes[i] < 0 ? -1 : ELEMENTS[dtypes[i]].dtype;
        rows[i].num_gpus = (int)num_gpus[i];
        rows[i].element_bytes = dtypes[i] < 0 ? 0 : ELEMENTS[dtypes[i]].bytes;
        rows[i].num_elements = sizes[i];
        rows[i].bytes = sizes[i] * rows[i].element_bytes;
    }
    *out = rows;
    return status_ok();
}

static Status rows_check(const KernelTable *table, Arena *arena) {
    const int *ops = kernel_table_choices(table, "op_name", NCCL_OP_NAMES, arena);
    const int *dtypes = kernel_table_choices(table, "nccl_dtype", NCCL_ELEMENT_NAMES, arena);
    TRY(kernel_table_check_choices(table, "op_name", ops, NCCL_OP_NAMES));
    return kernel_table_check_choices(table, "nccl_dtype", dtypes, NCCL_ELEMENT_NAMES);
}

static bool op_adds(int op) {
    return op == NCCL_ALL_REDUCE || op == NCCL_REDUCE_SCATTER;
}

static bool row_on_curve(const NcclRow *row, const NcclCurve *curve) {
    return row->op == curve->op && row->num_gpus == curve->num_gpus &&
           (curve->dtype == NCCL_ANY || row->dtype == curve->dtype);
}

// Of one curve: its rows, and the sizes they have.
typedef struct {
    int num_rows, num_sizes;
    const int *rows;      // [num_rows], in the table
    const double *places; // [num_rows], log2 of bytes
    const double *log_s;  // [num_rows], measured
    const int *folds;     // [num_rows], -1 for the smallest and the largest size
    const double *sizes;  // [num_sizes], rising
} CurveRows;

static int size_index(const CurveRows *c, double bytes) {
    const double *at = bsearch(&bytes, c->sizes, (size_t)c->num_sizes, sizeof bytes, fit_compare);
    return (int)(at - c->sizes);
}

static CurveRows curve_rows(const NcclRow *table, int num_table, const double *latency_s,
                            const NcclCurve *curve, Arena *arena) {
    int *rows = ARENA_ARRAY(arena, num_table, int), *folds = ARENA_ARRAY(arena, num_table, int);
    double *places = ARENA_ARRAY(arena, num_table, double);
    double *log_s = ARENA_ARRAY(arena, num_table, double);
    double *sizes = ARENA_ARRAY(arena, num_table, double);
    CurveRows c = {0, 0, rows, places, log_s, folds, sizes};
    for (int i = 0; i < num_table; i++) {
        if (!row_on_curve(&table[i], curve)) continue;
        rows[c.num_rows] = i;
        places[c.num_rows] = log2(table[i].bytes);
        log_s[c.num_rows] = log(latency_s[i]);
        sizes[c.num_rows++] = table[i].bytes;
    }
    qsort(sizes, (size_t)c.num_rows, sizeof *sizes, fit_compare);
    for (int i = 0; i < c.num_rows; i++)
        if (i == 0 || sizes[i] != sizes[i - 1]) sizes[c.num_sizes++] = sizes[i];
    for (int i = 0; i < c.num_rows; i++) {
        int at = size_index(&c, table[rows[i]].bytes);
        folds[i] = at == 0 || at == c.num_sizes - 1 ? -1 : at % NUM_FOLDS;
    }
    return c;
}

// Every size is a knot; where there are more, as many, evenly.
static int knots_choose(const CurveRows *c, double *knots) {
    int num_knots = c->num_sizes < MAX_KNOTS ? c->num_sizes : MAX_KNOTS;
    for (int i = 0; i < num_knots; i++)
        knots[i] = c->sizes[(int64_t)i * (c->num_sizes - 1) / (num_knots - 1)];
    return num_knots;
}

// The curve without the rows of one fold (-2: all rows).
static void curve_fit(const CurveRows *c, int fold, Arena *arena, NcclCurve *curve) {
    double *knots = ARENA_ARRAY(arena, MAX_KNOTS, double);
    double *seconds = ARENA_ARRAY(arena, MAX_KNOTS, double);
    double *weights = ARENA_ARRAY(arena, c->num_rows, double);
    for (int i = 0; i < c->num_rows; i++) weights[i] = c->folds[i] != fold;
    SurfaceSpec spec = {.num_axes = 1, .stiffness = {0.05}, .prior = 1e-6};
    spec.axes[0] = surface_axis("bytes", knots, knots_choose(c, knots), arena);
    SurfaceData data = {c->num_rows, c->log_s, weights, OUTLIER, 4};
    Surface surface;
    fit_surfaces(&spec, &c->places, 1, &data, arena, &surface);
    curve->num_points = spec.axes[0].num_knots;
    for (int i = 0; i < curve->num_points; i++) seconds[i] = fit_round(exp(surface.values[i]));
    curve->bytes = knots;
    curve->seconds = seconds;
}

static void curve_cross_validate(const CurveRows *c, const NcclRow *table, const NcclCurve *curve,
                                 double *predicted_s) {
    for (int fold = 0; fold < NUM_FOLDS; fold++) {
        Arena scratch = {0};
        NcclCurve without = *curve;
        curve_fit(c, fold, &scratch, &without);
        for (int i = 0; i < c->num_rows; i++)
            if (c->folds[i] == fold)
                predicted_s[c->rows[i]] = nccl_curve_s(&without, table[c->rows[i]].bytes);
        arena_free(&scratch);
    }
}

// The errors of one curve's left-out rows.
static void curve_score(const CurveRows *c, const double *predicted_s, const double *latency_s,
                        NcclCurve *curve) {
    FitScore score = fit_score_rows(c->num_rows, c->rows, predicted_s, latency_s);
    curve->residual_median_frac = fit_round(score.median_frac);
    curve->residual_p90_frac = fit_round(score.p90_frac);
}

static int compare_curves(const void *a, const void *b) {
    const NcclCurve *x = a, *y = b;
    if (x->op != y->op) return x->op - y->op;
    if (x->dtype != y->dtype) return x->dtype - y->dtype;
    return x->num_gpus - y->num_gpus;
}

static NcclCurve *curves_list(const NcclRow *rows, int num_rows, Arena *arena, int *num_curves) {
    NcclCurve *curves = ARENA_ARRAY(arena, num_rows, NcclCurve);
    *num_curves = 0;
    for (int i = 0; i < num_rows; i++) {
        bool known = false;
        for (int c = 0; c < *num_curves && !known; c++) known = row_on_curve(&rows[i], &curves[c]);
        if (known) continue;
        curves[(*num_curves)++] =
            (NcclCurve){.op = rows[i].op,
                        .dtype = op_adds(rows[i].op) ? rows[i].dtype : NCCL_ANY,
                        .num_gpus = rows[i].num_gpus};
    }
    qsort(curves, (size_t)*num_curves, sizeof *curves, compare_curves);
    return curves;
}

// A host without peer-to-peer copies reaches 1 to 2 GB/s (8 L40S): nothing that works is slower
// than a hundredth of this.
static const double SLOW_BYTES_PER_S = 1e10;

// No collective moves its bytes faster than the link, or where that is unknown the GPU's memory.
static Status limits_check(const KernelTable *table, const NcclRow *rows, const double *latency_s,
                           const Gpu *gpu, const Link *link, Arena *arena) {
    KernelLimits limits = kernel_limits_new(table, arena);
    Link memory = {.name = "the GPU's memory",
                   .bandwidth_bytes_per_s = gpu->memory_bandwidth_bytes_per_s};
    const Link *bound = link ? link : &memory;
    for (int i = 0; i < table->num_rows; i++) {
        NcclOp op = (NcclOp)rows[i].op;
        limits.least_s[i] = nccl_least_s(bound, op, rows[i].num_gpus, rows[i].bytes);
        limits.work_s[i] = nccl_wire_frac(op, rows[i].num_gpus) * rows[i].bytes / SLOW_BYTES_PER_S;
    }
    return kernel_table_check_limits(table, latency_s, &limits,
                                     arena_printf(arena, "the bandwidth of %s", bound->name));
}

Status nccl_fit(const KernelTable *table, const double *latency_s, const Gpu *gpu, Arena *arena,
                KindFit *out) {
    int n = table->num_rows, num_curves;
    NcclRow *rows;
    TRY(rows_read(table, arena, &rows));
    TRY(rows_check(table, arena));
    Link link;
    bool found;
    TRY(gpu_link_find(gpu->name, arena, &link, &found));
    TRY(limits_check(table, rows, latency_s, gpu, found ? &link : NULL, arena));
    NcclCurve *curves = curves_list(rows, n, arena, &num_curves);
    double *left_out_s = ARENA_ARRAY(arena, n, double), *fitted_s = ARENA_ARRAY(arena, n, double);
    for (int i = 0; i < n; i++) left_out_s[i] = NAN;
    for (int k = 0; k < num_curves; k++) {
        CurveRows c = curve_rows(rows, n, latency_s, &curves[k], arena);
        if (c.num_sizes < MIN_CURVE_ROWS)
            return kernel_table_error(table, c.rows[0],
                                      "message_size: %d sizes of %s on %d GPUs; expected at least "
                                      "%d",
                                      c.num_sizes, NCCL_OP_NAMES[curves[k].op], curves[k].num_gpus,
                                      MIN_CURVE_ROWS);
        curve_fit(&c, -2, arena, &curves[k]);
        curve_cross_validate(&c, rows, &curves[k], left_out_s);
        curve_score(&c, left_out_s, latency_s, &curves[k]);
        for (int i = 0; i < c.num_rows; i++)
            fitted_s[c.rows[i]] = nccl_curve_s(&curves[k], rows[c.rows[i]].bytes);
        out->num_groups += c.num_sizes;
    }
    out->section = nccl_kernels_to_json(
        &(NcclKernels){num_curves, curves, found ? link.name : NULL, found && link.switched});
    out->fitted_s = fitted_s;
    out->left_out = fit_score(n, left_out_s, latency_s);
    out->all = fit_score(n, fitted_s, latency_s);
    return status_ok();
}

Status nccl_price(const KernelTable *table, const Gpu *gpu, const KernelProfile *profile,
                  Arena *arena, double *predicted_s, RowEdges *edges) {
    (void)gpu;
    NcclRow *rows;
    RisingNccl *nccl = rising_nccl_new(&profile->nccl, arena);
    TRY(rows_read(table, arena, &rows));
    for (int i = 0; i < table->num_rows; i++) {
        const NcclRow *row = &rows[i];
        predicted_s[i] = NAN;
        if (row->op < 0 || row->dtype < 0) continue;
        const NcclCall call = {(NcclOp)row->op, (NcclDtype)row->dtype, row->element_bytes,
                               row->num_gpus, row->num_elements};
        predicted_s[i] = rising_nccl_s(nccl, &call);
        if (!edges || isnan(predicted_s[i])) continue;
        KernelEdges found = {0};
        rising_nccl_edges(nccl, &call, &found);
        edges[i] = row_edges(&found, arena);
    }
    return status_ok();
}
