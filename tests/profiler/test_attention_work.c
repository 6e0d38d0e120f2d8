// The call that is measured, on the CPU's backend.
#include "profiler/attention_work.h"

#include "backend/cpu_backend.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const AttentionRequest SMALL = {
    .backward = true, .batch = 2, .tokens = 3, .heads = 4, .kv_heads = 2, .head_dim = 8};

// q, o and their gradients 2 x 3 x 4 x 8 elements, k and v half of that, lse 2 x 4 x 3.
static void arrays_hold_what_the_shape_says(void) {
    AttentionArrays arrays = attention_arrays(&SMALL, 2, 4);
    static const size_t BYTES[] = {384, 192, 192, 384, 96, 384, 384, 192, 192};
    size_t end = 0;
    for (int i = 0; i < NUM_ATTENTION_ARRAYS; i++) {
        CU_ASSERT_EQUAL(arrays.bytes[i], BYTES[i]);
        CU_ASSERT(arrays.at[i] % 256 == 0 && arrays.at[i] >= end);
        end = arrays.at[i] + arrays.bytes[i];
    }
    CU_ASSERT(arrays.all_bytes >= end);
    static char memory[2048]; // nothing is read there
    AttentionRequest forward = SMALL;
    forward.backward = false;
    arrays = attention_arrays(&forward, 2, 4);
    CU_ASSERT_EQUAL(arrays.all_bytes, 512 + 256 + 256 + 512 + 256); // rounded up to 256
    CU_ASSERT_PTR_NULL(attention_call(&forward, &arrays, memory).dq);
}

// Of 3 tokens each head has 1 + 2 + 3 = 6 pairs: 2 x 4 x 6 x 8 x 4 flops, backward 10 for 4.
static void flops_are_those_of_the_causal_half(void) {
    AttentionRequest request = SMALL;
    CU_ASSERT_DOUBLE_EQUAL(attention_flops(&request), 3840, 0);
    request.backward = false;
    CU_ASSERT_DOUBLE_EQUAL(attention_flops(&request), 1536, 0);
}

typedef struct {
    Backend *backend;
    char *base;
    AttentionArrays arrays;
    Attention call;
} Case;

static double *array(const Case *c, AttentionArray name) {
    return (double *)(void *)(c->base + c->arrays.at[name]);
}

static Case case_open(void) {
    Case c;
    CU_ASSERT_EQUAL_FATAL(cpu_backend_open(DTYPE_FP64, 0, &c.backend).code, STATUS_OK);
    c.arrays = attention_arrays(&SMALL, 8, 8);
    c.base = aligned_alloc(256, c.arrays.all_bytes);
    memset(c.base, 0, c.arrays.all_bytes);
    c.call = attention_call(&SMALL, &c.arrays, c.base);
    for (size_t i = 0; i < c.arrays.bytes[ATTENTION_Q] / 8; i++)
        array(&c, ATTENTION_Q)[i] = sin(12.9898 * (double)i);
    for (size_t i = 0; i < c.arrays.bytes[ATTENTION_K] / 8; i++) {
        array(&c, ATTENTION_K)[i] = sin(78.233 * (double)i);
        array(&c, ATTENTION_V)[i] = sin(37.719 * (double)i);
    }
    c.backend->table->attention_forward(c.backend, &c.call, c.backend->stream);
    return c;
}

static void case_close(Case *c) {
    CU_ASSERT_EQUAL(backend_sync(c->backend).code, STATUS_OK);
    c->backend->table->close(c->backend);
    free(c->base);
}

// Token t of sequence b, head h of so many.
static double *head_of(const Case *c, AttentionArray name, int heads, int b, int t, int h) {
    return array(c, name) + ((b * 3 + t) * heads + h) * 8;
}

// The first query of each sequence sees its own key alone: o is that key's v, lse the scaled score.
// The last sees three: its lse is higher than any score of it.
static void the_first_token_gives_its_own_value(void) {
    Case c = case_open();
    for (int b = 0; b < 2; b++)
        for (int h = 0; h < 4; h++) {
            const double *q = head_of(&c, ATTENTION_Q, 4, b, 0, h);
            const double *k = head_of(&c, ATTENTION_K, 2, b, 0, h / 2);
            double score = 0;
            for (int d = 0; d < 8; d++) {
                score += q[d] * k[d] / sqrt(8);
                CU_ASSERT_DOUBLE_EQUAL(head_of(&c, ATTENTION_O, 4, b, 0, h)[d],
                                       head_of(&c, ATTENTION_V, 2, b, 0, h / 2)[d], 1e-12);
            }
            const double *lse = array(&c, ATTENTION_LSE) + (b * 4 + h) * 3;
            CU_ASSERT_DOUBLE_EQUAL(lse[0], score, 1e-12);
            CU_ASSERT(isfinite(lse[2]));
        }
    case_close(&c);
}

// With a gradient of the first token's output alone, dv of its key is the sum over the heads that
// share it; every other gradient of v is 0.
static void gradients_go_where_the_layout_says(void) {
    Case c = case_open();
    for (int h = 0; h < 4; h++)
        for (int d = 0; d < 8; d++) head_of(&c, ATTENTION_DOUT, 4, 1, 0, h)[d] = h + 10 * d;
    for (size_t i = 0; i < c.arrays.bytes[ATTENTION_DV] / 8; i++) array(&c, ATTENTION_DV)[i] = NAN;
    c.backend->table->attention_backward(c.backend, &c.call, c.backend->stream);
    for (int b = 0; b < 2; b++)
        for (int t = 0; t < 3; t++)
            for (int h = 0; h < 2; h++)
                for (int d = 0; d < 8; d++) {
                    // heads 0 + 1 or 2 + 3, and 10 d twice
                    double expected = b == 1 && t == 0 ? (h == 0 ? 1 : 5) + 20 * d : 0;
                    CU_ASSERT_DOUBLE_EQUAL(head_of(&c, ATTENTION_DV, 2, b, t, h)[d], expected,
                                           1e-12);
                }
    case_close(&c);
}

CU_TestInfo attention_work_tests[] = {
    {"arrays_hold_what_the_shape_says", arrays_hold_what_the_shape_says},
    {"flops_are_those_of_the_causal_half", flops_are_those_of_the_causal_half},
    {"the_first_token_gives_its_own_value", the_first_token_gives_its_own_value},
    {"gradients_go_where_the_layout_says", gradients_go_where_the_layout_says},
    CU_TEST_INFO_NULL,
};
