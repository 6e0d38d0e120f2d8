// backend/cpu/real_routing.h - routing to experts.
#pragma once

#include "backend/cpu/cpu_state.h"

#include <math.h>
#include <string.h>

static void softmax(const Wide *x, Wide *p, int count) {
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < count; i++) max = x[i] > max ? x[i] : max;
    for (int i = 0; i < count; i++) sum += exp(x[i] - max);
    for (int i = 0; i < count; i++) p[i] = (Wide)(exp(x[i] - max) / sum);
}

static bool is_among(const int32_t *chosen, int num_chosen, int expert) {
    for (int j = 0; j < num_chosen; j++) {
        if (chosen[j] == expert) return true;
    }
    return false;
}

// By logits and not by probabilities: where two of these round to the same, the order stays.
static int32_t largest_left(const Wide *logits, int num_experts, const int32_t *chosen,
                            int num_chosen) {
    int32_t best = -1;
    for (int e = 0; e < num_experts; e++) {
        if (is_among(chosen, num_chosen, e)) continue;
        if (best < 0 || logits[e] > logits[best]) best = e;
    }
    return best;
}

static void router_forward(const Router *call) {
    for (int64_t r = 0; r < call->rows; r++) {
        const Wide *logits = (const Wide *)call->logits + r * call->num_experts;
        Wide *p = (Wide *)call->probabilities + r * call->num_experts;
        int32_t *chosen = call->chosen + r * call->num_chosen;
        Wide *weights = (Wide *)call->weights + r * call->num_chosen;
        softmax(logits, p, call->num_experts);
        double sum = 0;
        for (int j = 0; j < call->num_chosen; j++) {
            if (!call->chosen_given) chosen[j] = largest_left(logits, call->num_experts, chosen, j);
            weights[j] = p[chosen[j]];
            sum += weights[j];
        }
        for (int j = 0; call->normalised && j < call->num_chosen; j++) {
            weights[j] = (Wide)(weights[j] / sum);
        }
    }
}

// As backend/backend.h says; a weight that is not normalised is its probability.
static void router_backward(const Router *call) {
    for (int64_t r = 0; r < call->rows; r++) {
        const Wide *p = (const Wide *)call->probabilities + r * call->num_experts;
        const int32_t *chosen = call->chosen + r * call->num_chosen;
        const Wide *weights = (const Wide *)call->weights + r * call->num_chosen;
        const Wide *given = (const Wide *)call->weighted_dw + r * call->num_chosen;
        Wide *dlogits = (Wide *)call->dlogits + r * call->num_experts;
        double sum = 0;
        for (int j = 0; j < call->num_chosen; j++) sum += given[j];
        const double others = call->normalised ? 0 : sum; // reaches what was not chosen
        for (int e = 0; e < call->num_experts; e++) dlogits[e] = (Wide)(-others * p[e]);
        for (int j = 0; j < call->num_chosen; j++)
            dlogits[chosen[j]] = (Wide)(given[j] - (double)weights[j] * sum);
    }
}

static void row_dots(const RowDots *call) {
    for (int64_t r = 0; r < call->rows; r++) {
        const Real *a = (const Real *)call->a + r * call->columns;
        const Real *b = (const Real *)call->b + r * call->columns;
        double dot = 0;
        for (int64_t c = 0; c < call->columns; c++) dot += (double)a[c] * b[c];
        ((Wide *)call->dots)[r] = (Wide)dot;
    }
}

static void gather_rows(const GatherRows *call) {
    const size_t bytes = call->wide ? sizeof(Wide) : sizeof(Real);
    const size_t row_bytes = (size_t)call->columns * bytes;
    for (int64_t r = 0; r < call->rows; r++) {
        char *y = (char *)call->y + (size_t)r * row_bytes;
        if (call->index[r] < 0)
            memset(y, 0, row_bytes);
        else
            memcpy(y, (const char *)call->x + (size_t)call->index[r] * row_bytes, row_bytes);
    }
}

static double weight_of(const CombineRows *call, int64_t slot) {
    return call->weights == NULL ? 1 : ((const Wide *)call->weights)[slot];
}

static void combine_forward(const CombineRows *call) {
    for (int64_t t = 0; t < call->rows; t++) {
        Real *y = (Real *)call->y + t * call->columns;
        memset(y, 0, (size_t)call->columns * sizeof(Real));
        for (int64_t slot = t * call->num_chosen; slot < (t + 1) * call->num_chosen; slot++) {
            if (call->index[slot] < 0) continue;
            const Real *x = (const Real *)call->x + call->index[slot] * call->columns;
            double weight = weight_of(call, slot);
            for (int64_t c = 0; c < call->columns; c++) y[c] = (Real)(y[c] + weight * x[c]);
        }
    }
}

static void combine_backward(const CombineRows *call) {
    Wide *dweights = call->dweights;
    for (int64_t slot = 0; slot < call->rows * call->num_chosen; slot++) {
        if (call->index[slot] < 0) {
            if (dweights != NULL) dweights[slot] = 0;
            continue;
        }
        const Real *dy = (const Real *)call->dy + slot / call->num_chosen * call->columns;
        if (dweights != NULL) {
            const Real *x = (const Real *)call->x + call->index[slot] * call->columns;
            double dot = 0;
            for (int64_t c = 0; c < call->columns; c++) dot += (double)dy[c] * x[c];
            dweights[slot] = (Wide)dot;
        }
        Real *dx = (Real *)call->dx + call->index[slot] * call->columns;
        double weight = weight_of(call, slot);
        for (int64_t c = 0; c < call->columns; c++) dx[c] = (Real)(weight * dy[c]);
    }
}
