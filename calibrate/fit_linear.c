#include "calibrate/fit_linear.h"

#include <math.h>
#include <string.h>

enum { MAX = FIT_LINEAR_MAX, NUM_REWEIGHTS = 30 };

// Errors below this weigh alike, so that a weight stays finite.
static const double LEAST_ERROR_FRAC = 1e-3;

typedef struct {
    int num_costs;
    double products[MAX][MAX], target[MAX]; // of the weighted columns, scaled to 1 on the diagonal
    double scale[MAX];
} Normal;

static double row_s(const double *row, const double *costs, int num_costs) {
    double time_s = 0;
    for (int j = 0; j < num_costs; j++) time_s += row[j] * costs[j];
    return time_s;
}

static Normal normal_of(const double *a, const double *times, const double *weights, int num_rows,
                        int num_costs) {
    Normal n = {.num_costs = num_costs};
    for (int i = 0; i < num_rows; i++)
        for (int j = 0; j < num_costs; j++) {
            double w = weights[i] * a[i * num_costs + j] / times[i];
            n.target[j] += w;
            for (int k = 0; k < num_costs; k++)
                n.products[j][k] += w * a[i * num_costs + k] / times[i];
        }
    for (int j = 0; j < num_costs; j++)
        n.scale[j] = n.products[j][j] > 0 ? sqrt(n.products[j][j]) : 1;
    for (int j = 0; j < num_costs; j++) {
        n.target[j] /= n.scale[j];
        for (int k = 0; k < num_costs; k++) n.products[j][k] /= n.scale[j] * n.scale[k];
    }
    return n;
}

// Solves the columns of a subset (bits), by Gauss with the largest pivot; others are 0. Returns by
// how much it lowers the squares, or -1 where it is not to be had or a cost lies below 0.
static double subset_solve(const Normal *n, int subset, double *x) {
    double m[MAX][MAX + 1];
    int columns[MAX], num = 0;
    for (int j = 0; j < n->num_costs; j++)
        if (subset & 1 << j) columns[num++] = j;
    for (int r = 0; r < num; r++) {
        for (int c = 0; c < num; c++) m[r][c] = n->products[columns[r]][columns[c]];
        m[r][num] = n->target[columns[r]];
    }
    for (int c = 0; c < num; c++) {
        int pivot = c;
        for (int r = c + 1; r < num; r++)
            if (fabs(m[r][c]) > fabs(m[pivot][c])) pivot = r;
        if (fabs(m[pivot][c]) < 1e-10) return -1;
        for (int k = 0; k <= num; k++) {
            double held = m[c][k];
            m[c][k] = m[pivot][k];
            m[pivot][k] = held;
        }
        for (int r = 0; r < num; r++) {
            double factor = m[r][c] / m[c][c];
            for (int k = c; k <= num && r != c; k++) m[r][k] -= factor * m[c][k];
        }
    }
    double gain = 0;
    memset(x, 0, MAX * sizeof *x);
    for (int c = 0; c < num; c++) {
        x[columns[c]] = m[c][num] / m[c][c];
        if (!(x[columns[c]] >= 0)) return -1;
        gain += x[columns[c]] * n->target[columns[c]];
    }
    return gain;
}

void fit_linear(const double *a, const double *times, int num_rows, int num_costs, Arena *scratch,
                double *costs) {
    double *weights = ARENA_ARRAY(scratch, num_rows + 1, double);
    for (int j = 0; j < num_costs; j++) costs[j] = 0;
    for (int i = 0; i < num_rows; i++) weights[i] = 1;
    for (int round = 0; round < NUM_REWEIGHTS; round++) {
        Normal n = normal_of(a, times, weights, num_rows, num_costs);
        double best = 0, x[MAX];
        for (int subset = 1; subset < 1 << num_costs; subset++) {
            double gain = subset_solve(&n, subset, x);
            if (gain <= best) continue;
            best = gain;
            for (int j = 0; j < num_costs; j++) costs[j] = x[j] / n.scale[j];
        }
        for (int i = 0; i < num_rows; i++) {
            double error = fabs(row_s(&a[i * num_costs], costs, num_costs) / times[i] - 1);
            weights[i] = 1 / fmax(error, LEAST_ERROR_FRAC);
        }
    }
}
