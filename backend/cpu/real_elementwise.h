// backend/cpu/real_elementwise.h - optimizers, sums and casts, element by element.
#pragma once

#include "backend/cpu/cpu_state.h"

#include <assert.h>
#include <math.h>

// --- Optimizers

static void adamw(const AdamW *call) {
    const Wide *gradient = call->gradient;
    Wide *master = call->master, *moment = call->moment, *variance = call->variance;
    Real *weight = call->weight;
    double moment_scale = 1 / (1 - pow(call->beta1, (double)call->step));
    double variance_scale = 1 / (1 - pow(call->beta2, (double)call->step));
    for (int64_t i = 0; i < call->count; i++) {
        double g = gradient[i] * call->gradient_scale, w = master[i];
        double m = call->beta1 * moment[i] + (1 - call->beta1) * g;
        double v = call->beta2 * variance[i] + (1 - call->beta2) * g * g;
        double change = m * moment_scale / (sqrt(v * variance_scale) + call->epsilon);
        moment[i] = (Wide)m;
        variance[i] = (Wide)v;
        master[i] = (Wide)(w - call->learning_rate * (change + call->weight_decay * w));
        if (weight != NULL && call->weight != call->master) weight[i] = (Real)master[i];
    }
}

// The decay is part of the gradient, and so of the momentum.
static void sgd(const Sgd *call) {
    const Wide *gradient = call->gradient;
    Wide *master = call->master, *momentum = call->momentum;
    Real *weight = call->weight;
    for (int64_t i = 0; i < call->count; i++) {
        double w = master[i];
        double change = gradient[i] * call->gradient_scale + call->weight_decay * w;
        if (momentum != NULL) {
            change += call->momentum_frac * momentum[i];
            momentum[i] = (Wide)change;
        }
        master[i] = (Wide)(w - call->learning_rate * change);
        if (weight != NULL && call->weight != call->master) weight[i] = (Real)master[i];
    }
}

// --- Without a struct of their own: as BackendTable has them

static void add(Backend *backend, void *y, const void *a, const void *b, int64_t count,
                BackendStream *stream) {
    (void)stream;
    if (backend->failure.code != STATUS_OK) return;
    for (int64_t i = 0; i < count; i++) {
        ((Real *)y)[i] = ((const Real *)a)[i] + ((const Real *)b)[i];
    }
}

static void scale(Backend *backend, void *y, double factor, Dtype dtype, int64_t count,
                  BackendStream *stream) {
    (void)stream;
    assert(dtype == REAL_DTYPE || dtype == WIDE_DTYPE);
    if (backend->failure.code != STATUS_OK) return;
    if (dtype == REAL_DTYPE)
        for (int64_t i = 0; i < count; i++) ((Real *)y)[i] = (Real)(((Real *)y)[i] * factor);
    else
        for (int64_t i = 0; i < count; i++) ((Wide *)y)[i] = (Wide)(((Wide *)y)[i] * factor);
}

static double element_of(const void *x, Dtype dtype, int64_t i) {
    return dtype == REAL_DTYPE ? (double)((const Real *)x)[i] : (double)((const Wide *)x)[i];
}

static void cast(Backend *backend, void *to, Dtype to_dtype, const void *from, Dtype from_dtype,
                 bool accumulate, int64_t count, BackendStream *stream) {
    (void)stream;
    assert(to_dtype == REAL_DTYPE || to_dtype == WIDE_DTYPE);
    assert(from_dtype == REAL_DTYPE || from_dtype == WIDE_DTYPE);
    if (backend->failure.code != STATUS_OK) return;
    for (int64_t i = 0; i < count; i++) {
        const double before = accumulate ? element_of(to, to_dtype, i) : 0;
        const double value = before + element_of(from, from_dtype, i);
        if (to_dtype == REAL_DTYPE)
            ((Real *)to)[i] = (Real)value;
        else
            ((Wide *)to)[i] = (Wide)value;
    }
}

static void sum_squares(Backend *backend, void *sum, const void *x, int64_t count,
                        BackendStream *stream) {
    (void)stream;
    if (backend->failure.code != STATUS_OK) return;
    const Wide *element = x;
    double total = 0;
    for (int64_t i = 0; i < count; i++) total += (double)element[i] * element[i];
    *(Wide *)sum = (Wide)(*(Wide *)sum + total);
}

static void sum_rows(Backend *backend, void *sums, const void *x, int64_t rows, int64_t columns,
                     BackendStream *stream) {
    (void)stream;
    if (backend->failure.code != STATUS_OK) return;
    Wide *out = sums;
    const Real *in = x;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) out[c] += in[r * columns + c];
    }
}
