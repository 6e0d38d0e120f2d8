// backend/cpu/real_vocabulary.h - embedding and cross entropy.
#pragma once

#include "backend/cpu/cpu_state.h"

#include <math.h>
#include <string.h>

// --- Embedding

// Row of the table of a token, or -1 where another rank has it.
static int64_t row_of_token(const Embedding *call, int64_t r) {
    int64_t row = call->tokens[r] - call->first_row;
    return row >= 0 && row < call->num_rows ? row : -1;
}

static void embedding_forward(const Embedding *call) {
    size_t row_bytes = (size_t)call->columns * sizeof(Real);
    for (int64_t r = 0; r < call->rows; r++) {
        Real *y = (Real *)call->y + r * call->columns;
        int64_t row = row_of_token(call, r);
        if (row < 0)
            memset(y, 0, row_bytes);
        else
            memcpy(y, (const Real *)call->table + row * call->columns, row_bytes);
        if (call->positions_table == NULL) continue;
        const Real *place =
            (const Real *)call->positions_table + call->positions[r] * call->columns;
        for (int64_t c = 0; c < call->columns; c++) y[c] += place[c];
    }
}

static void embedding_backward(const Embedding *call) {
    for (int64_t r = 0; r < call->rows; r++) {
        const Real *dy = (const Real *)call->dy + r * call->columns;
        int64_t row = row_of_token(call, r);
        if (row >= 0) {
            Wide *dword = (Wide *)call->dtable + row * call->columns;
            for (int64_t c = 0; c < call->columns; c++) dword[c] += dy[c];
        }
        if (call->dpositions_table != NULL) {
            Wide *dplace = (Wide *)call->dpositions_table + call->positions[r] * call->columns;
            for (int64_t c = 0; c < call->columns; c++) dplace[c] += dy[c];
        }
    }
}

// --- Cross entropy

static double max_of_row(const CrossEntropy *call, int64_t r) {
    const Real *x = (const Real *)call->logits + r * call->stride;
    double max = -INFINITY;
    for (int64_t c = 0; c < call->num_columns; c++) max = x[c] > max ? x[c] : max;
    return max;
}

static double sum_of_row(const CrossEntropy *call, int64_t r, double max) {
    const Real *x = (const Real *)call->logits + r * call->stride;
    double sum = 0;
    for (int64_t c = 0; c < call->num_columns; c++) sum += exp(x[c] - max);
    return sum;
}

// Column of the target here, or -1.
static int64_t target_column(const CrossEntropy *call, int64_t r) {
    int64_t column = call->targets[r] - call->first_column;
    return call->targets[r] >= 0 && column >= 0 && column < call->num_columns ? column : -1;
}

// The target's logit; 0 where another rank has it or there is none.
static double target_logit(const CrossEntropy *call, int64_t r) {
    int64_t column = target_column(call, r);
    return column < 0 ? 0 : ((const Real *)call->logits)[r * call->stride + column];
}

// Logits become scale (p - [the target's]).
static void leave_gradient(const CrossEntropy *call, int64_t r, double max, double sum) {
    Real *x = (Real *)call->logits + r * call->stride;
    bool counts = call->targets[r] >= 0;
    int64_t target = target_column(call, r);
    for (int64_t c = 0; c < call->stride; c++) {
        if (!counts || c >= call->num_columns) {
            x[c] = 0;
            continue;
        }
        double p = exp(x[c] - max) / sum;
        x[c] = (Real)(call->scale * (p - (c == target ? 1 : 0)));
    }
}

static void cross_entropy(const CrossEntropy *call) {
    double loss = 0;
    for (int64_t r = 0; r < call->rows; r++) {
        double max = max_of_row(call, r), sum = sum_of_row(call, r, max);
        if (call->targets[r] >= 0) loss += log(sum) + max - target_logit(call, r);
        leave_gradient(call, r, max, sum);
    }
    *(Wide *)call->loss += (Wide)loss;
}

static void row_max(const CrossEntropy *call) {
    for (int64_t r = 0; r < call->rows; r++) ((Wide *)call->max)[r] = (Wide)max_of_row(call, r);
}

static void row_sums(const CrossEntropy *call) {
    Wide *sums = call->sums;
    for (int64_t r = 0; r < call->rows; r++) {
        sums[r] = (Wide)sum_of_row(call, r, ((const Wide *)call->max)[r]);
        sums[call->rows + r] = (Wide)target_logit(call, r);
    }
}

static void cross_entropy_shared(const CrossEntropy *call) {
    const Wide *max = call->max, *sums = call->sums;
    double loss = 0;
    for (int64_t r = 0; r < call->rows; r++) {
        if (call->targets[r] >= 0) loss += log(sums[r]) + max[r] - sums[call->rows + r];
        leave_gradient(call, r, max[r], sums[r]);
    }
    *(Wide *)call->loss += (Wide)loss;
}
