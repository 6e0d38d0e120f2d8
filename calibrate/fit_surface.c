#include "calibrate/fit_surface.h"

#include "costmodel/kernel/surface_value.h"

#include <math.h>
#include <string.h>

// A sparse least-squares problem: rows of (column, coefficient), each with weight and right side.
typedef struct {
    int num_rows, num_columns;
    int *start; // [num_rows + 1], into columns and coefficients
    int *columns;
    double *coefficients;
    double *right;   // [num_rows]
    double *weights; // [num_rows]
} SparseRows;

// Octaves. Knots closer than this (256 and 257) are there for a jump, which is not to be smoothed.
#define SHORTEST_STEP 0.2

// Of the squared error, where the solver stops: values are stored in thousandths.
#define TOLERANCE 1e-9

SurfaceAxis surface_axis(const char *name, const double *plain_knots, int num_knots, Arena *arena) {
    double *knots = ARENA_ARRAY(arena, num_knots, double);
    for (int i = 0; i < num_knots; i++) knots[i] = log2(plain_knots[i]);
    return (SurfaceAxis){name, num_knots, knots};
}

static void rows_init(SparseRows *rows, int max_rows, int max_entries, Arena *arena) {
    *rows = (SparseRows){0};
    rows->start = ARENA_ARRAY(arena, max_rows + 1, int);
    rows->columns = ARENA_ARRAY(arena, max_entries, int);
    rows->coefficients = ARENA_ARRAY(arena, max_entries, double);
    rows->right = ARENA_ARRAY(arena, max_rows, double);
    rows->weights = ARENA_ARRAY(arena, max_rows, double);
}

static void row_entry(SparseRows *rows, int column, double coefficient) {
    int at = rows->start[rows->num_rows + 1]++;
    rows->columns[at] = column;
    rows->coefficients[at] = coefficient;
}

static void row_end(SparseRows *rows, double right, double weight) {
    rows->right[rows->num_rows] = right;
    rows->weights[rows->num_rows] = weight;
    rows->num_rows++;
    rows->start[rows->num_rows + 1] = rows->start[rows->num_rows];
}

// One row per measurement: its corners in every surface.
static void data_rows(SparseRows *rows, const Surface *surfaces, const double *const *places,
                      int num_surfaces, const SurfaceData *data) {
    for (int row = 0; row < data->num_rows; row++) {
        double weight = data->weights ? data->weights[row] : 1;
        if (weight == 0) continue;
        for (int s = 0, first = 0; s < num_surfaces; s++) {
            SurfaceCell cell;
            surface_cell(&surfaces[s], places[s] + (size_t)row * (size_t)surfaces[s].num_axes,
                         &cell);
            for (int i = 0; i < cell.num_corners; i++)
                row_entry(rows, first + cell.index[i], cell.weights[i]);
            first += surface_num_values(&surfaces[s]);
        }
        row_end(rows, data->residual[row], weight);
    }
}

// Stiffness and flatness along one axis at one knot; stride is the axis' distance in the grid.
static void bend_rows(SparseRows *rows, const SurfaceAxis *axis, int knot, int column, int stride,
                      double stiffness, double flatness) {
    const double *x = axis->knots;
    if (knot + 1 < axis->num_knots && flatness > 0) {
        double step = fmax(x[knot + 1] - x[knot], SHORTEST_STEP);
        row_entry(rows, column, -1);
        row_entry(rows, column + stride, 1);
        row_end(rows, 0, flatness / step);
    }
    if (knot + 2 >= axis->num_knots) return;
    double a = fmax(x[knot + 1] - x[knot], SHORTEST_STEP);
    double b = fmax(x[knot + 2] - x[knot + 1], SHORTEST_STEP);
    // The middle against the straight line between its neighbours; distant neighbours bind less.
    row_entry(rows, column, -b / (a + b));
    row_entry(rows, column + stride, 1);
    row_entry(rows, column + 2 * stride, -a / (a + b));
    row_end(rows, 0, stiffness * (a + b) / (2 * a * b));
}

static void penalty_rows(SparseRows *rows, const SurfaceSpec *spec, int first, int num_values) {
    for (int i = 0; i < num_values; i++) {
        row_entry(rows, first + i, 1);
        row_end(rows, 0, spec->prior);
        for (int a = spec->num_axes - 1, stride = 1; a >= 0; a--) {
            int knot = i / stride % spec->axes[a].num_knots;
            bend_rows(rows, &spec->axes[a], knot, first + i, stride, spec->stiffness[a],
                      spec->flatness[a]);
            stride *= spec->axes[a].num_knots;
        }
    }
}

// out = A' W (A x), with W of the rows times extra where given.
static void normal_product(const SparseRows *rows, const double *x, double *out) {
    memset(out, 0, (size_t)rows->num_columns * sizeof *out);
    for (int r = 0; r < rows->num_rows; r++) {
        double sum = 0;
        for (int i = rows->start[r]; i < rows->start[r + 1]; i++)
            sum += rows->coefficients[i] * x[rows->columns[i]];
        sum *= rows->weights[r];
        for (int i = rows->start[r]; i < rows->start[r + 1]; i++)
            out[rows->columns[i]] += rows->coefficients[i] * sum;
    }
}

static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// Conjugate gradients with the diagonal as preconditioner, from x, which it improves.
static void normal_solve(const SparseRows *rows, Arena *scratch, double *x) {
    int n = rows->num_columns;
    double *diagonal = ARENA_ARRAY(scratch, n, double), *rest = ARENA_ARRAY(scratch, n, double);
    double *direction = ARENA_ARRAY(scratch, n, double), *product = ARENA_ARRAY(scratch, n, double);
    double *scaled = ARENA_ARRAY(scratch, n, double);
    normal_product(rows, x, product);
    for (int r = 0; r < rows->num_rows; r++)
        for (int i = rows->start[r]; i < rows->start[r + 1]; i++) {
            double c = rows->coefficients[i];
            diagonal[rows->columns[i]] += rows->weights[r] * c * c;
            rest[rows->columns[i]] += rows->weights[r] * c * rows->right[r];
        }
    double size_of_zero = 0; // the error of x = 0
    for (int i = 0; i < n; i++) size_of_zero += rest[i] * rest[i] / diagonal[i];
    for (int i = 0; i < n; i++) rest[i] -= product[i];
    for (int i = 0; i < n; i++) direction[i] = scaled[i] = rest[i] / diagonal[i];
    double size = dot(rest, scaled, n), target = TOLERANCE * size_of_zero;
    for (int round = 0; round < 400 && size > target && size > 1e-30; round++) {
        normal_product(rows, direction, product);
        double step = size / dot(direction, product, n);
        for (int i = 0; i < n; i++) x[i] += step * direction[i];
        for (int i = 0; i < n; i++) rest[i] -= step * product[i];
        for (int i = 0; i < n; i++) scaled[i] = rest[i] / diagonal[i];
        double next = dot(rest, scaled, n);
        for (int i = 0; i < n; i++) direction[i] = scaled[i] + next / size * direction[i];
        size = next;
    }
}

// Cauchy's weights by the present error of each measurement (the first num_data rows).
static void reweight(SparseRows *rows, int num_data, const double *base_weights, const double *x,
                     double outlier) {
    for (int r = 0; r < num_data; r++) {
        double fit = 0;
        for (int i = rows->start[r]; i < rows->start[r + 1]; i++)
            fit += rows->coefficients[i] * x[rows->columns[i]];
        double e = (rows->right[r] - fit) / outlier;
        rows->weights[r] = base_weights[r] / (1 + e * e);
    }
}

static void sizes_count(const Surface *surfaces, int num_surfaces, int num_data, int *num_rows,
                        int *num_entries, int *num_columns) {
    *num_rows = num_data;
    *num_entries = *num_columns = 0;
    for (int s = 0; s < num_surfaces; s++) {
        int num_values = surface_num_values(&surfaces[s]), num_axes = surfaces[s].num_axes;
        *num_columns += num_values;
        *num_rows += num_values * (1 + 2 * num_axes);
        *num_entries += num_values * (1 + 5 * num_axes) + num_data * (1 << num_axes);
    }
}

void fit_surfaces(const SurfaceSpec *specs, const double *const *places, int num_surfaces,
                  const SurfaceData *data, Arena *arena, Surface *out) {
    Arena scratch = {0};
    SparseRows rows;
    int num_rows, num_entries, num_columns;
    for (int s = 0; s < num_surfaces; s++) {
        out[s] = (Surface){.num_axes = specs[s].num_axes};
        memcpy(out[s].axes, specs[s].axes, sizeof out[s].axes);
    }
    sizes_count(out, num_surfaces, data->num_rows, &num_rows, &num_entries, &num_columns);
    rows_init(&rows, num_rows + 1, num_entries, &scratch);
    rows.num_columns = num_columns;
    data_rows(&rows, out, places, num_surfaces, data);
    int num_data = rows.num_rows;
    for (int s = 0, first = 0; s < num_surfaces; s++) {
        int num_values = surface_num_values(&out[s]);
        penalty_rows(&rows, &specs[s], first, num_values);
        first += num_values;
    }
    double *values = ARENA_ARRAY(arena, num_columns, double);
    double *base_weights = ARENA_ARRAY(&scratch, num_data, double);
    memcpy(base_weights, rows.weights, (size_t)num_data * sizeof *base_weights);
    for (int round = 0; round < data->num_rounds; round++) {
        if (round > 0) reweight(&rows, num_data, base_weights, values, data->outlier);
        normal_solve(&rows, &scratch, values);
    }
    for (int s = 0, first = 0; s < num_surfaces; s++) {
        out[s].values = values + first;
        first += surface_num_values(&out[s]);
    }
    arena_free(&scratch);
}
