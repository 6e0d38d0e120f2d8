// backend/cpu/real_norm.h - RMSNorm and LayerNorm.
#pragma once

#include "backend/cpu/cpu_state.h"

#include <math.h>

// Mean, and mean of the squares of the distances to it; of RMSNorm the mean is 0.
static void row_moments(NormOp op, const Real *x, int64_t columns, double *mean, double *square) {
    *mean = *square = 0;
    if (op == NORM_LAYER) {
        for (int64_t c = 0; c < columns; c++) *mean += x[c];
        *mean /= (double)columns;
    }
    for (int64_t c = 0; c < columns; c++) *square += (x[c] - *mean) * (x[c] - *mean);
    *square /= (double)columns;
}

static void norm_forward(const NormForward *call) {
    const Real *weight = call->weight, *bias = call->bias;
    for (int64_t r = 0; r < call->rows; r++) {
        const Real *x = (const Real *)call->x + r * call->columns;
        Real *y = (Real *)call->y + r * call->columns;
        if (call->add != NULL) {
            const Real *addend = (const Real *)call->add + r * call->columns;
            Real *sum = (Real *)call->sum + r * call->columns;
            for (int64_t c = 0; c < call->columns; c++) sum[c] = x[c] + addend[c];
            x = sum;
        }
        double mean, square;
        row_moments(call->op, x, call->columns, &mean, &square);
        double rstd = 1 / sqrt(square + call->epsilon);
        for (int64_t c = 0; c < call->columns; c++) {
            y[c] = (Real)((x[c] - mean) * rstd * weight[c] + (bias == NULL ? 0 : bias[c]));
        }
        if (call->op == NORM_LAYER) ((Wide *)call->mean)[r] = (Wide)mean;
        ((Wide *)call->rstd)[r] = (Wide)rstd;
    }
}

// With h = (x - mean) rstd and g = dy weight:
//   dx = rstd (g - mean(g) - h mean(g h)), of RMSNorm without mean(g);  dweight = sum dy h
static void norm_backward_row(const NormBackward *call, int64_t row) {
    const Real *dy = (const Real *)call->dy + row * call->columns;
    const Real *x = (const Real *)call->x + row * call->columns;
    const Real *addend = call->add == NULL ? NULL : (const Real *)call->add + row * call->columns;
    const Real *weight = call->weight;
    Real *dx = (Real *)call->dx + row * call->columns;
    Wide *dweight = call->dweight, *dbias = call->dbias;
    double mean = call->op == NORM_LAYER ? ((const Wide *)call->mean)[row] : 0;
    double rstd = ((const Wide *)call->rstd)[row];
    double g_mean = 0, gh_mean = 0;
    for (int64_t c = 0; c < call->columns; c++) {
        double h = (x[c] - mean) * rstd, g = (double)dy[c] * weight[c];
        g_mean += g;
        gh_mean += g * h;
        dweight[c] += (Wide)(dy[c] * h);
        if (dbias != NULL) dbias[c] += dy[c];
    }
    g_mean = call->op == NORM_LAYER ? g_mean / (double)call->columns : 0;
    gh_mean /= (double)call->columns;
    for (int64_t c = 0; c < call->columns; c++) {
        double h = (x[c] - mean) * rstd, g = (double)dy[c] * weight[c];
        dx[c] = (Real)(rstd * (g - g_mean - h * gh_mean) + (addend == NULL ? 0 : addend[c]));
    }
}

static void norm_backward(const NormBackward *call) {
    for (int64_t r = 0; r < call->rows; r++) norm_backward_row(call, r);
}
