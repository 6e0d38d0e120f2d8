#include "base/random.h"
#include "profiler/memory_reference.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 8, MOST = 2 * ROWS * COLUMNS };

// An operator with all its numbers as floats, so that rounding hides no slope, and its arrays.
typedef struct {
    MemoryOp op;
    float arrays[MEMORY_MAX_BUFFERS][MOST];
    void *buffers[MEMORY_MAX_BUFFERS];
} OpCase;

static double normal(uint32_t i) {
    const uint32_t counter[RANDOM_WORDS] = {i, 0, 0, 0};
    return random_normal(11, counter);
}

static void case_build(OpCase *c, const char *name) {
    c->op = *memory_op_find(name);
    for (int b = 0; b < c->op.num_buffers; b++) {
        if (c->op.buffers[b].dtype == NUMBER_BFLOAT16) c->op.buffers[b].dtype = NUMBER_FLOAT32;
        c->buffers[b] = c->arrays[b];
        for (uint32_t i = 0; i < MOST; i++) c->arrays[b][i] = (float)normal((uint32_t)b * 1000 + i);
    }
}

static void run(OpCase *c) {
    memory_reference(&c->op, ROWS, COLUMNS, c->buffers);
}

// Sum of weights dy times outputs.
static double loss(OpCase *c, int output, const float *dy, int n) {
    run(c);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)dy[i] * (double)c->arrays[output][i];
    return sum;
}

// Claims that slopes[i] is how the loss changes with element i of an input, by differences of 0.01
// on both sides: the error of those is of the second order, 1e-4.
static void assert_slopes(OpCase *forward, int input, int output, const float *dy, int num_outputs,
                          const float *slopes, int num_inputs) {
    for (int i = 0; i < num_inputs; i++) {
        float *x = &forward->arrays[input][i], kept = *x;
        *x = kept + 0.01f;
        double above = loss(forward, output, dy, num_outputs);
        *x = kept - 0.01f;
        double below = loss(forward, output, dy, num_outputs);
        *x = kept;
        CU_ASSERT_DOUBLE_EQUAL((above - below) / 0.02, (double)slopes[i],
                               5e-3 * (1 + fabs((double)slopes[i])));
    }
    run(forward);
}

static void gradients_of_norms_are_slopes(void) {
    for (int centred = 0; centred < 2; centred++) {
        OpCase forward, backward;
        case_build(&forward, centred ? "layernorm_forward" : "rmsnorm_forward");
        case_build(&backward, centred ? "layernorm_backward" : "rmsnorm_backward");
        run(&forward);
        int y = centred ? 3 : 2, statistics = centred ? 4 : 3;
        memcpy(backward.arrays[1], forward.arrays[0], sizeof forward.arrays[0]);
        memcpy(backward.arrays[2], forward.arrays[1], sizeof forward.arrays[1]);
        for (int i = 0; i <= centred; i++)
            memcpy(backward.arrays[3 + i], forward.arrays[statistics + i],
                   sizeof forward.arrays[0]);
        run(&backward);
        const float *dy = backward.arrays[0], *dx = backward.arrays[4 + centred];
        const float *dweight = backward.arrays[5 + centred];
        assert_slopes(&forward, 0, y, dy, ROWS * COLUMNS, dx, ROWS * COLUMNS);
        assert_slopes(&forward, 1, y, dy, ROWS * COLUMNS, dweight, COLUMNS);
        if (centred) assert_slopes(&forward, 2, y, dy, ROWS * COLUMNS, dweight + COLUMNS, COLUMNS);
    }
}

// Backwards that read dy and the forward's input, and write its gradient.
static void gradients_of_activations_are_slopes(void) {
    static const char *const NAMES[][2] = {{"swiglu_forward", "swiglu_backward"},
                                           {"gelu_forward", "gelu_backward"}};
    for (int i = 0; i < 2; i++) {
        OpCase forward, backward;
        case_build(&forward, NAMES[i][0]);
        case_build(&backward, NAMES[i][1]);
        memcpy(backward.arrays[1], forward.arrays[0], sizeof forward.arrays[0]);
        run(&backward);
        assert_slopes(&forward, 0, 1, backward.arrays[0], ROWS * COLUMNS, backward.arrays[2],
                      (i == 0 ? 2 : 1) * ROWS * COLUMNS);
    }
}

static void gradient_of_softmax_is_its_slope(void) {
    OpCase forward, backward;
    case_build(&forward, "softmax_forward");
    case_build(&backward, "softmax_backward");
    run(&forward);
    memcpy(backward.arrays[1], forward.arrays[1], sizeof forward.arrays[1]);
    run(&backward);
    assert_slopes(&forward, 0, 1, backward.arrays[0], ROWS * COLUMNS, backward.arrays[2],
                  ROWS * COLUMNS);
}

// Four queries of eight columns see 5, 6, 7 and 8 of them; each row of what is seen adds up to 1.
static void softmax_is_causal(void) {
    OpCase c;
    case_build(&c, "softmax_forward");
    run(&c);
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int i = 0; i < COLUMNS; i++) {
            float y = c.arrays[1][r * COLUMNS + i];
            CU_ASSERT_EQUAL(y > 0, i < COLUMNS - ROWS + 1 + r);
            sum += (double)y;
        }
        CU_ASSERT_DOUBLE_EQUAL(sum, 1, 1e-6);
    }
}

static void gradient_of_cross_entropy_is_its_slope(void) {
    OpCase forward, backward;
    case_build(&forward, "cross_entropy_forward");
    case_build(&backward, "cross_entropy_backward");
    int32_t targets[ROWS] = {0, 7, 3, 3};
    memcpy(forward.arrays[1], targets, sizeof targets);
    memcpy(backward.arrays[1], targets, sizeof targets);
    run(&forward);
    memcpy(backward.arrays[0], forward.arrays[0], sizeof forward.arrays[0]);
    memcpy(backward.arrays[2], forward.arrays[3], sizeof forward.arrays[3]);
    run(&backward);
    assert_slopes(&forward, 0, 2, backward.arrays[3], ROWS, backward.arrays[4], ROWS * COLUMNS);
}

// Turning by an angle and back again changes nothing; cosine 1, sine 0 neither.
static void rope_turns_back(void) {
    enum { N = 2 * MEMORY_HEAD };
    float x[N], cosine[MEMORY_HEAD / 2], sine[MEMORY_HEAD / 2], y[N], z[N];
    MemoryOp op = *memory_op_find("rope");
    op.buffers[0].dtype = op.buffers[3].dtype = NUMBER_FLOAT32;
    for (uint32_t i = 0; i < N; i++) x[i] = (float)normal(i);
    for (int i = 0; i < MEMORY_HEAD / 2; i++) {
        cosine[i] = cosf(0.1f * (float)i);
        sine[i] = sinf(0.1f * (float)i);
    }
    memory_reference(&op, 1, N, (void *[]){x, cosine, sine, y});
    // The first pair of the second head, at the second angle.
    CU_ASSERT_DOUBLE_EQUAL(y[129], x[129] * cosine[1] - x[193] * sine[1], 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(y[193], x[193] * cosine[1] + x[129] * sine[1], 1e-6);
    for (int i = 0; i < MEMORY_HEAD / 2; i++) sine[i] = -sine[i];
    memory_reference(&op, 1, N, (void *[]){y, cosine, sine, z});
    for (int i = 0; i < N; i++) CU_ASSERT_DOUBLE_EQUAL(z[i], x[i], 1e-5);
}

// The first step from nothing: both corrected moments are those of the gradient, so that a
// parameter of 1 moves by rate (sign(g) + decay) = 1e-3 (1 + 0.1).
static void first_step_of_adamw(void) {
    OpCase c;
    case_build(&c, "adamw");
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        c.arrays[0][i] = 5;
        c.arrays[1][i] = 1;
        c.arrays[2][i] = c.arrays[3][i] = 0;
    }
    run(&c);
    CU_ASSERT_DOUBLE_EQUAL(c.arrays[1][3], 1 - 1.1e-3, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(c.arrays[2][3], 0.5, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(c.arrays[3][3], 1.25, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(c.arrays[4][3], c.arrays[1][3], 0);
}

// The norm adds to what is there: 10 + 32 x 4.
static void sum_of_squares_is_added(void) {
    OpCase c;
    case_build(&c, "gradient_norm");
    for (int i = 0; i < ROWS * COLUMNS; i++) c.arrays[0][i] = -2;
    c.arrays[1][0] = 10;
    run(&c);
    CU_ASSERT_DOUBLE_EQUAL(c.arrays[1][0], 138, 0);
}

CU_TestInfo memory_reference_tests[] = {
    {"gradients_of_norms_are_slopes", gradients_of_norms_are_slopes},
    {"gradients_of_activations_are_slopes", gradients_of_activations_are_slopes},
    {"gradient_of_softmax_is_its_slope", gradient_of_softmax_is_its_slope},
    {"softmax_is_causal", softmax_is_causal},
    {"gradient_of_cross_entropy_is_its_slope", gradient_of_cross_entropy_is_its_slope},
    {"rope_turns_back", rope_turns_back},
    {"first_step_of_adamw", first_step_of_adamw},
    {"sum_of_squares_is_added", sum_of_squares_is_added},
    CU_TEST_INFO_NULL,
};
