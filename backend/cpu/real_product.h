// backend/cpu/real_product.h - products by OpenBLAS.
#pragma once

#include "backend/cpu/cpu_state.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <string.h>

// out [m][n] = alpha op(a) op(b) + beta out, by rows; strides are distances between stored rows.
static void multiply(bool a_transposed, bool b_transposed, int64_t m, int64_t n, int64_t k,
                     double alpha, const Real *a, int64_t a_stride, const Real *b, int64_t b_stride,
                     double beta, Real *out, int64_t out_stride) {
    assert(m <= INT_MAX && n <= INT_MAX && k <= INT_MAX);
    assert(a_stride <= INT_MAX && b_stride <= INT_MAX && out_stride <= INT_MAX);
    if (m == 0 || n == 0) return;
    REAL_GEMM(CblasRowMajor, a_transposed ? CblasTrans : CblasNoTrans,
              b_transposed ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, (Real)alpha, a,
              (int)a_stride, b, (int)b_stride, (Real)beta, out, (int)out_stride);
}

// Puts the bias where the product is then added to.
static void place_bias(const Product *call) {
    Real *out = call->out;
    const Real *bias = call->bias;
    for (int64_t r = 0; r < call->m; r++) {
        for (int64_t c = 0; c < call->n; c++) {
            Real before = call->accumulate ? out[r * call->n + c] : (Real)0;
            out[r * call->n + c] = before + bias[c];
        }
    }
}

// Puts a product into an array of Wide, where that is not its own type.
static void widen(const Product *call, const Real *in) {
    Wide *out = call->out;
    for (int64_t i = 0; i < call->m * call->n; i++)
        out[i] = (call->accumulate ? out[i] : (Wide)0) + (Wide)in[i];
}

static void product(Backend *backend, const Product *call, BackendStream *stream) {
    (void)stream;
    if (backend->failure.code != STATUS_OK) return;
    if (call->out_wide && REAL_DTYPE != WIDE_DTYPE) {
        Real *narrow = cpu_scratch(backend, (size_t)(call->m * call->n) * sizeof *narrow);
        Product into = *call;
        into.out = narrow;
        into.out_wide = into.accumulate = false;
        if (narrow == NULL) return;
        product(backend, &into, stream);
        widen(call, narrow);
        return;
    }
    bool forward = call->layout == PRODUCT_FORWARD;
    bool weight = call->layout == PRODUCT_BACKWARD_WEIGHT;
    assert(call->bias == NULL || forward);
    if (call->bias != NULL) place_bias(call);
    if (call->k == 0) { // a sum of nothing; cblas refuses rows of no length
        if (call->bias == NULL && !call->accumulate) {
            memset(call->out, 0, (size_t)(call->m * call->n) * sizeof(Real));
        }
        return;
    }
    multiply(weight, forward, call->m, call->n, call->k, 1, call->a, weight ? call->m : call->k,
             call->b, forward ? call->k : call->n, call->accumulate || call->bias != NULL ? 1 : 0,
             call->out, call->n);
}
