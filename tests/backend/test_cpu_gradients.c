// The backward operations beside central differences of their forwards, in fp64.
//
// Of every operation the objective is the sum of its outputs times fixed numbers, so that these are
// the gradient that the backward is given. A step of 1e-5 leaves an error of about 1e-10 by the
// third derivative and 1e-11 by rounding.
#include "backend/cpu_backend.h"
#include "base/random.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

typedef struct Problem Problem;

// Runs the forward and returns the objective.
typedef double (*Objective)(Problem *problem);

struct Problem {
    Backend *backend;
    void *call; // of the operation
};

static Backend *open_fp64(void) {
    Backend *backend = NULL;
    CU_ASSERT_EQUAL_FATAL(cpu_backend_open(DTYPE_FP64, 0, &backend).code, STATUS_OK);
    return backend;
}

static void draw(double *values, int64_t count, uint32_t seed) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t counter[RANDOM_WORDS] = {seed, i};
        values[i] = random_normal(3, counter);
    }
}

#define DRAW(array, seed) draw((double *)(array), sizeof(array) / sizeof(double), (seed))

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static void expect_gradient(Problem *problem, Objective objective, double *x,
                            const double *gradient, int64_t count) {
    const double STEP = 1e-5;
    double worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double before = x[i];
        x[i] = before + STEP;
        double above = objective(problem);
        x[i] = before - STEP;
        double below = objective(problem);
        x[i] = before;
        double error = fabs((above - below) / (2 * STEP) - gradient[i]);
        if (!(error <= worst)) worst = error; // NaN too
    }
    CU_ASSERT(worst < 1e-8);
    if (!(worst < 1e-8)) printf("\n  off by %g\n", worst);
}

static void finish(Problem *problem) {
    CU_ASSERT_EQUAL(backend_sync(problem->backend).code, STATUS_OK);
    problem->backend->table->close(problem->backend);
}

// --- Products

enum { TOKENS = 5, INPUTS = 4, OUTPUTS = 3 };

static double r_outputs[TOKENS * OUTPUTS];

static double product_objective(Problem *problem) {
    double y[TOKENS * OUTPUTS];
    Product call = *(Product *)problem->call;
    call.out = y;
    problem->backend->table->product(problem->backend, &call, problem->backend->stream);
    return dot(y, r_outputs, COUNT(y));
}

static void products_have_their_gradients(void) {
    double x[TOKENS * INPUTS], weight[OUTPUTS * INPUTS], bias[OUTPUTS], dx[TOKENS * INPUTS];
    double dweight[OUTPUTS * INPUTS], dbias[OUTPUTS] = {0};
    DRAW(x, 1), DRAW(weight, 2), DRAW(bias, 3), DRAW(r_outputs, 4);
    Product forward = {.m = TOKENS, .n = OUTPUTS, .k = INPUTS, .a = x, .b = weight, .bias = bias};
    Problem problem = {open_fp64(), &forward};
    Backend *backend = problem.backend;
    Product input = {.layout = PRODUCT_BACKWARD_INPUT,
                     .m = TOKENS,
                     .n = INPUTS,
                     .k = OUTPUTS,
                     .a = r_outputs,
                     .b = weight,
                     .out = dx};
    Product weights = {.layout = PRODUCT_BACKWARD_WEIGHT,
                       .m = OUTPUTS,
                       .n = INPUTS,
                       .k = TOKENS,
                       .a = r_outputs,
                       .b = x,
                       .out = dweight,
                       .out_wide = true};
    backend->table->product(backend, &input, backend->stream);
    backend->table->product(backend, &weights, backend->stream);
    backend->table->sum_rows(backend, dbias, r_outputs, TOKENS, OUTPUTS, backend->stream);
    expect_gradient(&problem, product_objective, x, dx, COUNT(x));
    expect_gradient(&problem, product_objective, weight, dweight, COUNT(weight));
    expect_gradient(&problem, product_objective, bias, dbias, COUNT(bias));
    finish(&problem);
}

// --- Norms

enum { ROWS = 3, COLUMNS = 7 };

static double r_y[ROWS * COLUMNS], r_sum[ROWS * COLUMNS];

// Of y and of the sum, which goes past the branch.
static double norm_objective(Problem *problem) {
    double y[ROWS * COLUMNS], sum[ROWS * COLUMNS], mean[ROWS], rstd[ROWS];
    NormForward call = *(NormForward *)problem->call;
    call.y = y, call.sum = sum, call.mean = mean, call.rstd = rstd;
    problem->backend->table->norm_forward(problem->backend, &call, problem->backend->stream);
    return dot(y, r_y, COUNT(y)) + dot(sum, r_sum, COUNT(sum));
}

static void norm_has_its_gradient(NormOp op) {
    double x[ROWS * COLUMNS], added[ROWS * COLUMNS], sum[ROWS * COLUMNS], y[ROWS * COLUMNS];
    double weight[COLUMNS], bias[COLUMNS], mean[ROWS], rstd[ROWS];
    double dx[ROWS * COLUMNS], dweight[COLUMNS] = {0}, dbias[COLUMNS] = {0};
    DRAW(x, 1), DRAW(added, 2), DRAW(weight, 3), DRAW(bias, 4), DRAW(r_y, 5), DRAW(r_sum, 6);
    NormForward forward = {.op = op,
                           .rows = ROWS,
                           .columns = COLUMNS,
                           .epsilon = 0.01,
                           .x = x,
                           .add = added,
                           .sum = sum,
                           .weight = weight,
                           .bias = bias,
                           .y = y,
                           .mean = mean,
                           .rstd = rstd};
    Problem problem = {open_fp64(), &forward};
    Backend *backend = problem.backend;
    backend->table->norm_forward(backend, &forward, backend->stream);
    NormBackward backward = {.op = op,
                             .rows = ROWS,
                             .columns = COLUMNS,
                             .dy = r_y,
                             .x = sum,
                             .weight = weight,
                             .mean = mean,
                             .rstd = rstd,
                             .add = r_sum,
                             .dx = dx,
                             .dweight = dweight,
                             .dbias = dbias};
    backend->table->norm_backward(backend, &backward, backend->stream);
    expect_gradient(&problem, norm_objective, x, dx, COUNT(x));
    expect_gradient(&problem, norm_objective, added, dx, COUNT(x));
    expect_gradient(&problem, norm_objective, weight, dweight, COUNT(weight));
    expect_gradient(&problem, norm_objective, bias, dbias, COUNT(bias));
    finish(&problem);
}

static void norms_have_their_gradients(void) {
    norm_has_its_gradient(NORM_RMS);
    norm_has_its_gradient(NORM_LAYER);
}

// --- Activations

static double activation_objective(Problem *problem) {
    double y[ROWS * COLUMNS];
    Activation call = *(Activation *)problem->call;
    call.y = y;
    problem->backend->table->activation_forward(problem->backend, &call, problem->backend->stream);
    return dot(y, r_y, COUNT(y));
}

static void activations_have_their_gradients(void) {
    for (int op = 0; op < NUM_ACTIVATIONS; op++) {
        bool gated = op == ACTIVATION_SILU_GATED || op == ACTIVATION_GELU_GATED;
        double x[2 * ROWS * COLUMNS], dx[2 * ROWS * COLUMNS];
        DRAW(x, 1), DRAW(r_y, 2);
        Activation call = {.op = (ActivationOp)op, .rows = ROWS, .width = COLUMNS, .x = x};
        Problem problem = {open_fp64(), &call};
        Activation backward = call;
        backward.dy = r_y;
        backward.dx = dx;
        problem.backend->table->activation_backward(problem.backend, &backward,
                                                    problem.backend->stream);
        expect_gradient(&problem, activation_objective, x, dx, ROWS * COLUMNS * (gated ? 2 : 1));
        finish(&problem);
    }
}

// --- Rope

enum { HEADS = 4, KV_HEADS = 2, HEAD_DIM = 6 };

static double r_rope[TOKENS * HEADS * HEAD_DIM];

static double rope_objective(Problem *problem) {
    double x[TOKENS * HEADS * HEAD_DIM];
    Rope call = *(Rope *)problem->call;
    memcpy(x, call.x, sizeof x);
    call.x = x;
    problem->backend->table->rope(problem->backend, &call, problem->backend->stream);
    return dot(x, r_rope, COUNT(x));
}

static void rope_inverse_is_its_gradient(void) {
    double x[TOKENS * HEADS * HEAD_DIM], dx[TOKENS * HEADS * HEAD_DIM];
    const int32_t positions[TOKENS] = {0, 3, 17, 4, 900};
    DRAW(x, 1), DRAW(r_rope, 2);
    memcpy(dx, r_rope, sizeof dx);
    Rope call = {.tokens = TOKENS,
                 .heads = HEADS,
                 .head_dim = HEAD_DIM,
                 .x = x,
                 .stride = (int64_t)HEADS * HEAD_DIM,
                 .positions = positions,
                 .theta = 100};
    Problem problem = {open_fp64(), &call};
    Rope inverse = call;
    inverse.x = dx;
    inverse.inverse = true;
    problem.backend->table->rope(problem.backend, &inverse, problem.backend->stream);
    expect_gradient(&problem, rope_objective, x, dx, COUNT(x));
    finish(&problem);
}

// --- Attention

enum {
    BATCH = 2,
    QUERIES = 9,
    KEYS = 7,
    Q_COUNT = BATCH * QUERIES * HEADS * HEAD_DIM,
    KV_COUNT = BATCH * KEYS * KV_HEADS * HEAD_DIM,
    LSE_COUNT = BATCH * HEADS * QUERIES,
};

static double r_o[Q_COUNT];

static double attention_objective(Problem *problem) {
    double o[Q_COUNT], lse[LSE_COUNT];
    Attention call = *(Attention *)problem->call;
    call.o = o;
    call.lse = lse;
    problem->backend->table->attention_forward(problem->backend, &call, problem->backend->stream);
    return dot(o, r_o, COUNT(o));
}

static Attention small_attention(void) {
    return (Attention){
        .batch = BATCH,
        .heads = HEADS,
        .kv_heads = KV_HEADS,
        .head_dim = HEAD_DIM,
        .num_queries = QUERIES,
        .num_keys = KEYS,
        .scale = 0.4,
        .q_stride = HEADS * HEAD_DIM,
        .q_batch_stride = QUERIES * HEADS * HEAD_DIM,
        .kv_stride = KV_HEADS * HEAD_DIM,
        .kv_batch_stride = KEYS * KV_HEADS * HEAD_DIM,
        .o_stride = HEADS * HEAD_DIM,
        .o_batch_stride = QUERIES * HEADS * HEAD_DIM,
        .lse_stride = QUERIES,
    };
}

static void attention_has_its_gradient(Attention call) {
    static double q[Q_COUNT], k[KV_COUNT], v[KV_COUNT], o[Q_COUNT], lse[LSE_COUNT];
    static double dq[Q_COUNT], dk[KV_COUNT], dv[KV_COUNT];
    DRAW(q, 1), DRAW(k, 2), DRAW(v, 3), DRAW(r_o, 4);
    call.q = q, call.k = k, call.v = v, call.o = o, call.lse = lse;
    call.dout = r_o, call.dq = dq, call.dk = dk, call.dv = dv;
    Problem problem = {open_fp64(), &call};
    Backend *backend = problem.backend;
    backend->table->attention_forward(backend, &call, backend->stream);
    backend->table->attention_backward(backend, &call, backend->stream);
    expect_gradient(&problem, attention_objective, q, dq, COUNT(q));
    expect_gradient(&problem, attention_objective, k, dk, COUNT(k));
    expect_gradient(&problem, attention_objective, v, dv, COUNT(v));
    finish(&problem);
}

// All keys; up to the own; with queries that see nothing; the last three of which some are past
// the end.
static void attention_has_its_gradients(void) {
    Attention call = small_attention();
    attention_has_its_gradient(call);
    call.causal = true;
    attention_has_its_gradient(call);
    call.query_first = -3;
    attention_has_its_gradient(call);
    call.query_first = 2;
    call.window = 3;
    attention_has_its_gradient(call);
}

// --- Vocabulary

enum { WORDS = 6, PLACES = 4 };

static double embedding_objective(Problem *problem) {
    double y[TOKENS * COLUMNS];
    Embedding call = *(Embedding *)problem->call;
    call.y = y;
    problem->backend->table->embedding_forward(problem->backend, &call, problem->backend->stream);
    return dot(y, call.dy, COUNT(y));
}

// Token 9 is twice among the five, 2 is another rank's.
static void embedding_has_its_gradients(void) {
    double table[WORDS * COLUMNS], places[PLACES * COLUMNS], dy[TOKENS * COLUMNS];
    double dtable[WORDS * COLUMNS] = {0}, dplaces[PLACES * COLUMNS] = {0};
    const int32_t tokens[TOKENS] = {9, 5, 2, 9, 10}, positions[TOKENS] = {0, 1, 2, 3, 0};
    DRAW(table, 1), DRAW(places, 2), DRAW(dy, 3);
    Embedding call = {.rows = TOKENS,
                      .columns = COLUMNS,
                      .tokens = tokens,
                      .table = table,
                      .first_row = 5,
                      .num_rows = WORDS,
                      .positions_table = places,
                      .positions = positions,
                      .dy = dy,
                      .dtable = dtable,
                      .dpositions_table = dplaces};
    Problem problem = {open_fp64(), &call};
    problem.backend->table->embedding_backward(problem.backend, &call, problem.backend->stream);
    expect_gradient(&problem, embedding_objective, table, dtable, COUNT(table));
    expect_gradient(&problem, embedding_objective, places, dplaces, COUNT(places));
    finish(&problem);
}

enum { VOCABULARY = 11, STRIDE = 13 };

static double loss_objective(Problem *problem) {
    CrossEntropy call = *(CrossEntropy *)problem->call;
    double logits[TOKENS * STRIDE], loss = 0;
    memcpy(logits, call.logits, sizeof logits);
    call.logits = logits;
    call.loss = &loss;
    problem->backend->table->cross_entropy(problem->backend, &call, problem->backend->stream);
    return loss * call.scale;
}

static void cross_entropy_has_its_gradient(void) {
    double logits[TOKENS * STRIDE], gradient[TOKENS * STRIDE], loss = 0;
    const int32_t targets[TOKENS] = {0, 10, -1, 4, 4};
    DRAW(logits, 1);
    memcpy(gradient, logits, sizeof logits);
    CrossEntropy call = {.rows = TOKENS,
                         .num_columns = VOCABULARY,
                         .stride = STRIDE,
                         .logits = logits,
                         .targets = targets,
                         .scale = 0.2,
                         .loss = &loss};
    Problem problem = {open_fp64(), &call};
    CrossEntropy backward = call;
    backward.logits = gradient;
    problem.backend->table->cross_entropy(problem.backend, &backward, problem.backend->stream);
    expect_gradient(&problem, loss_objective, logits, gradient, COUNT(logits));
    finish(&problem);
}

// --- Routing

enum { EXPERTS = 5, CHOSEN = 2 };

static double r_weights[TOKENS * CHOSEN];

static double router_objective(Problem *problem) {
    double probabilities[TOKENS * EXPERTS], weights[TOKENS * CHOSEN];
    int32_t chosen[TOKENS * CHOSEN];
    Router call = *(Router *)problem->call;
    call.probabilities = probabilities, call.weights = weights, call.chosen = chosen;
    problem->backend->table->router_forward(problem->backend, &call, problem->backend->stream);
    return dot(weights, r_weights, COUNT(weights));
}

static void router_has_its_gradient(void) {
    for (int normalised = 0; normalised < 2; normalised++) {
        double logits[TOKENS * EXPERTS], probabilities[TOKENS * EXPERTS], dlogits[TOKENS * EXPERTS];
        double weights[TOKENS * CHOSEN], weighted[TOKENS * CHOSEN];
        int32_t chosen[TOKENS * CHOSEN];
        DRAW(logits, 1), DRAW(r_weights, 2);
        Router call = {.rows = TOKENS,
                       .num_experts = EXPERTS,
                       .num_chosen = CHOSEN,
                       .normalised = normalised,
                       .logits = logits,
                       .probabilities = probabilities,
                       .chosen = chosen,
                       .weights = weights,
                       .weighted_dw = weighted,
                       .dlogits = dlogits};
        Problem problem = {open_fp64(), &call};
        Backend *backend = problem.backend;
        backend->table->router_forward(backend, &call, backend->stream);
        for (int i = 0; i < TOKENS * CHOSEN; i++) weighted[i] = weights[i] * r_weights[i];
        backend->table->router_backward(backend, &call, backend->stream);
        expect_gradient(&problem, router_objective, logits, dlogits, COUNT(logits));
        finish(&problem);
    }
}

static double combine_objective(Problem *problem) {
    double y[TOKENS * COLUMNS];
    CombineRows call = *(CombineRows *)problem->call;
    call.y = y;
    problem->backend->table->combine_forward(problem->backend, &call, problem->backend->stream);
    return dot(y, call.dy, COUNT(y));
}

static void combine_has_its_gradients(void) {
    double x[TOKENS * CHOSEN * COLUMNS], weights[TOKENS * CHOSEN], dy[TOKENS * COLUMNS];
    double dx[TOKENS * CHOSEN * COLUMNS] = {0}, dweights[TOKENS * CHOSEN];
    const int32_t index[TOKENS * CHOSEN] = {9, 0, 1, 8, 2, -1, 3, 6, 5, 4};
    DRAW(x, 1), DRAW(weights, 2), DRAW(dy, 3);
    CombineRows call = {.rows = TOKENS,
                        .columns = COLUMNS,
                        .num_chosen = CHOSEN,
                        .x = x,
                        .index = index,
                        .weights = weights,
                        .dy = dy,
                        .dx = dx,
                        .dweights = dweights};
    Problem problem = {open_fp64(), &call};
    problem.backend->table->combine_backward(problem.backend, &call, problem.backend->stream);
    expect_gradient(&problem, combine_objective, x, dx, COUNT(x));
    expect_gradient(&problem, combine_objective, weights, dweights, COUNT(weights));
    finish(&problem);
}

CU_TestInfo cpu_gradients_tests[] = {
    {"products_have_their_gradients", products_have_their_gradients},
    {"norms_have_their_gradients", norms_have_their_gradients},
    {"activations_have_their_gradients", activations_have_their_gradients},
    {"rope_inverse_is_its_gradient", rope_inverse_is_its_gradient},
    {"attention_has_its_gradients", attention_has_its_gradients},
    {"embedding_has_its_gradients", embedding_has_its_gradients},
    {"cross_entropy_has_its_gradient", cross_entropy_has_its_gradient},
    {"router_has_its_gradient", router_has_its_gradient},
    {"combine_has_its_gradients", combine_has_its_gradients},
    CU_TEST_INFO_NULL,
};
