// backend/cpu/real_activation.h - activations and their derivatives; rope.
#pragma once

#include "backend/cpu/cpu_state.h"
#include "backend/rope_scaling.h"

#include <math.h>

static bool is_gated(ActivationOp op) {
    return op == ACTIVATION_SILU_GATED || op == ACTIVATION_GELU_GATED;
}

// f(x) of the part that is bent, and f'(x).
static double bend(ActivationOp op, double x, double *slope) {
    if (op == ACTIVATION_RELU) {
        *slope = x > 0 ? 1 : 0;
        return x > 0 ? x : 0;
    }
    if (op == ACTIVATION_SILU_GATED) {
        double sigmoid = 1 / (1 + exp(-x));
        *slope = sigmoid * (1 + x * (1 - sigmoid));
        return x * sigmoid;
    }
    const double ROOT = 0.79788456080286535588, CUBIC = 0.044715; // sqrt(2 / pi)
    double t = tanh(ROOT * (x + CUBIC * x * x * x));
    *slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * CUBIC * x * x);
    return 0.5 * x * (1 + t);
}

static void activation_forward(const Activation *call) {
    bool gated = is_gated(call->op);
    for (int64_t r = 0; r < call->rows; r++) {
        const Real *x = (const Real *)call->x + r * call->width * (gated ? 2 : 1);
        Real *y = (Real *)call->y + r * call->width;
        for (int64_t c = 0; c < call->width; c++) {
            double slope, bent = bend(call->op, x[c], &slope);
            y[c] = (Real)(gated ? bent * x[call->width + c] : bent);
        }
    }
}

static void activation_backward(const Activation *call) {
    bool gated = is_gated(call->op);
    for (int64_t r = 0; r < call->rows; r++) {
        int64_t first = r * call->width * (gated ? 2 : 1);
        const Real *x = (const Real *)call->x + first;
        const Real *dy = (const Real *)call->dy + r * call->width;
        Real *dx = (Real *)call->dx + first;
        for (int64_t c = 0; c < call->width; c++) {
            double slope, bent = bend(call->op, x[c], &slope);
            double other = gated ? x[call->width + c] : 1; // read before dx, which may be x
            dx[c] = (Real)(dy[c] * slope * other);
            if (gated) dx[call->width + c] = (Real)(dy[c] * bent);
        }
    }
}

static void rope(const Rope *call) {
    int half = call->head_dim / 2;
    for (int i = 0; i < half; i++) {
        double frequency = rope_scaled(&call->scaling, pow(call->theta, -2.0 * i / call->head_dim));
        for (int64_t t = 0; t < call->tokens; t++) {
            double angle = call->positions[t] * frequency;
            double cosine = cos(angle), sine = call->inverse ? -sin(angle) : sin(angle);
            Real *x = (Real *)call->x + t * call->stride + i;
            for (int h = 0; h < call->heads; h++, x += call->head_dim) {
                double a = x[0], b = x[half];
                x[0] = (Real)(a * cosine - b * sine);
                x[half] = (Real)(a * sine + b * cosine);
            }
        }
    }
}
