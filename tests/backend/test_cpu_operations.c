// Operations of the CPU beside numbers worked out by hand, and their laws.
#include "backend/cpu_backend.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

static Backend *open_fp64(void) {
    Backend *backend = NULL;
    CU_ASSERT_EQUAL_FATAL(cpu_backend_open(DTYPE_FP64, 0, &backend).code, STATUS_OK);
    return backend;
}

static void finish(Backend *backend) {
    CU_ASSERT_EQUAL(backend_sync(backend).code, STATUS_OK);
    backend->table->close(backend);
}

static void expect(const double *found, const double *expected, int count) {
    for (int i = 0; i < count; i++) CU_ASSERT_DOUBLE_EQUAL(found[i], expected[i], 1e-12);
}

// Numbers between -1 and 1 that look random.
static void fill(double *values, int count, double phase) {
    for (int i = 0; i < count; i++) values[i] = sin(12.9898 * i + phase);
}

// x = (1 2; 3 4), W = (5 6; 7 8; 9 10) of three outputs, bias (1 2 3):
//   x W^T = (17 23 29; 39 53 67).
static void product_is_x_w_transposed(void) {
    Backend *backend = open_fp64();
    const double x[] = {1, 2, 3, 4}, weight[] = {5, 6, 7, 8, 9, 10}, bias[] = {1, 2, 3};
    double y[6] = {NAN, NAN, NAN, NAN, NAN, NAN};
    Product call = {.m = 2, .n = 3, .k = 2, .a = x, .b = weight, .out = y};
    backend->table->product(backend, &call, backend->stream);
    expect(y, (const double[]){17, 23, 29, 39, 53, 67}, 6);
    call.bias = bias;
    call.accumulate = true;
    backend->table->product(backend, &call, backend->stream);
    expect(y, (const double[]){35, 48, 61, 79, 108, 137}, 6);
    call.k = 0; // a sum of nothing
    backend->table->product(backend, &call, backend->stream);
    expect(y, (const double[]){36, 50, 64, 80, 110, 140}, 6);
    finish(backend);
}

// Of (1 2 3 4): mean 2.5, variance 1.25, mean square 7.5; epsilon 0.
static void norms_are_as_defined(void) {
    Backend *backend = open_fp64();
    const double x[] = {1, 2, 3, 4}, weight[] = {1, 1, 2, 2}, bias[] = {0, 0, 0, 1};
    double y[4], mean = NAN, rstd;
    NormForward call = {.op = NORM_RMS,
                        .rows = 1,
                        .columns = 4,
                        .x = x,
                        .weight = weight,
                        .y = y,
                        .mean = &mean,
                        .rstd = &rstd};
    backend->table->norm_forward(backend, &call, backend->stream);
    double rms = sqrt(7.5);
    expect(y, (const double[]){1 / rms, 2 / rms, 6 / rms, 8 / rms}, 4);
    CU_ASSERT_DOUBLE_EQUAL(rstd, 1 / rms, 1e-15);
    CU_ASSERT(isnan(mean)); // is not its business
    call.op = NORM_LAYER;
    call.bias = bias;
    backend->table->norm_forward(backend, &call, backend->stream);
    double deviation = sqrt(1.25);
    expect(y,
           (const double[]){-1.5 / deviation, -0.5 / deviation, 1 / deviation, 3 / deviation + 1},
           4);
    CU_ASSERT_EQUAL(mean, 2.5);
    finish(backend);
}

// silu(1) = 0.7310585786300049; gelu(1) = 0.8411919906082768 by tanh.
static void activations_are_as_defined(void) {
    static const struct {
        ActivationOp op;
        double y[2];
    } CASES[] = {
        {ACTIVATION_SILU_GATED, {0.7310585786300049 * 3, 0}},
        {ACTIVATION_GELU_GATED, {0.8411919906082768 * 3, 0}},
        {ACTIVATION_GELU, {0.8411919906082768, 0}},
        {ACTIVATION_RELU, {1, 0}},
    };
    Backend *backend = open_fp64();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const double x[] = {1, 0, 3, 5};
        double y[2];
        Activation call = {.op = CASES[i].op, .rows = 1, .width = 2, .x = x, .y = y};
        backend->table->activation_forward(backend, &call, backend->stream);
        expect(y, CASES[i].y, 2);
    }
    finish(backend);
}

// Halves (1, 0 | 0, 1) of head_dim 4 and theta 4: angles are p and p / 2.
static void rope_turns_halves(void) {
    Backend *backend = open_fp64();
    double x[] = {1, 0, 0, 1};
    const int32_t position = 2;
    Rope call = {.tokens = 1,
                 .heads = 1,
                 .head_dim = 4,
                 .x = x,
                 .stride = 4,
                 .positions = &position,
                 .theta = 4};
    backend->table->rope(backend, &call, backend->stream);
    expect(x, (const double[]){cos(2), -sin(1), sin(2), cos(1)}, 4);
    call.inverse = true;
    backend->table->rope(backend, &call, backend->stream);
    expect(x, (const double[]){1, 0, 0, 1}, 4);
    finish(backend);
}

// Llama 3.1's frequencies of 128 columns: short waves stay, long ones are divided by 8, between
// them a mixture. At position 1 a frequency is the angle. By the formula in another language.
static void rope_scales_long_waves(void) {
    enum { HEAD_DIM = 128 };
    static const struct {
        int column;
        double frequency;
    } CASES[] = {{0, 1.0},
                 {20, 0.016560440080994446},
                 {28, 0.003211445994752591},
                 {32, 0.0005248461609929547},
                 {36, 7.78465527393245e-05},
                 {63, 3.068925988914511e-07}};
    Backend *backend = open_fp64();
    double x[HEAD_DIM];
    for (int i = 0; i < HEAD_DIM; i++) x[i] = i < HEAD_DIM / 2;
    const int32_t position = 1;
    Rope call = {.tokens = 1,
                 .heads = 1,
                 .head_dim = HEAD_DIM,
                 .x = x,
                 .stride = HEAD_DIM,
                 .positions = &position,
                 .theta = 5e5,
                 .scaling = {8, 8192, 2048}};
    backend->table->rope(backend, &call, backend->stream);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        CU_ASSERT_DOUBLE_EQUAL(x[HEAD_DIM / 2 + CASES[i].column], sin(CASES[i].frequency), 1e-15);
    finish(backend);
}

// One head of size 1, keys log 1, log 2, log 3, queries 1: scores are these, p (1 2 3) / 6 or (1 2)
// / 3 where two keys are seen, or nothing. Values 6, 12, 18.
static void attention_sees_keys_up_to_its_position(void) {
    Backend *backend = open_fp64();
    const double q[] = {1, 1, 1, 1}, k[] = {0, log(2), log(3)}, v[] = {6, 12, 18};
    double o[4], lse[4];
    Attention call = {.batch = 1,
                      .heads = 1,
                      .kv_heads = 1,
                      .head_dim = 1,
                      .num_queries = 4,
                      .num_keys = 3,
                      .causal = true,
                      .query_first = -1,
                      .scale = 1,
                      .q = q,
                      .k = k,
                      .v = v,
                      .q_stride = 1,
                      .kv_stride = 1,
                      .o = o,
                      .o_stride = 1,
                      .lse = lse,
                      .lse_stride = 4};
    backend->table->attention_forward(backend, &call, backend->stream);
    expect(o, (const double[]){0, 6, 10, 14}, 4);
    CU_ASSERT_EQUAL(lse[0], -INFINITY);
    expect(lse + 1, (const double[]){0, log(3), log(6)}, 3);
    call.window = 2; // of the last two keys: (2 3) / 5
    backend->table->attention_forward(backend, &call, backend->stream);
    expect(o, (const double[]){0, 6, 10, 15.6}, 4);
    call.query_first = 2; // query 2 sees the last key, query 3 is past all
    backend->table->attention_forward(backend, &call, backend->stream);
    expect(o, (const double[]){15.6, 18, 0, 0}, 4);
    finish(backend);
}

// --- Attention by parts of the keys

enum { HEADS = 2, SIZE = 4, TOKENS = 70, WIDTH = HEADS * SIZE, FIRST_PART = 30 };

typedef struct {
    double q[TOKENS * WIDTH], k[TOKENS * WIDTH], v[TOKENS * WIDTH], o[TOKENS * WIDTH];
    double dout[TOKENS * WIDTH], dq[TOKENS * WIDTH], dk[TOKENS * WIDTH], dv[TOKENS * WIDTH];
    double lse[HEADS * TOKENS];
} AttentionArrays;

// Of keys [first, end).
static Attention part_of(AttentionArrays *arrays, int first, int end) {
    return (Attention){
        .batch = 1,
        .heads = HEADS,
        .kv_heads = HEADS,
        .head_dim = SIZE,
        .num_queries = TOKENS,
        .num_keys = end - first,
        .causal = true,
        .query_first = -first,
        .scale = 0.5,
        .q = arrays->q,
        .k = arrays->k + first * WIDTH,
        .v = arrays->v + first * WIDTH,
        .q_stride = WIDTH,
        .kv_stride = WIDTH,
        .o = arrays->o,
        .o_stride = WIDTH,
        .lse = arrays->lse,
        .lse_stride = TOKENS,
        .dout = arrays->dout,
        .dq = arrays->dq,
        .dk = arrays->dk + first * WIDTH,
        .dv = arrays->dv + first * WIDTH,
    };
}

static void attention_by_parts_is_the_whole(void) {
    Backend *backend = open_fp64();
    const BackendTable *table = backend->table;
    static AttentionArrays whole, parts;
    fill(whole.q, TOKENS * WIDTH, 1);
    fill(whole.k, TOKENS * WIDTH, 2);
    fill(whole.v, TOKENS * WIDTH, 3);
    fill(whole.dout, TOKENS * WIDTH, 4);
    parts = whole;
    Attention call = part_of(&whole, 0, TOKENS);
    table->attention_forward(backend, &call, backend->stream);
    table->attention_backward(backend, &call, backend->stream);

    static double o_sum[TOKENS * WIDTH], lse_sum[HEADS * TOKENS], dq_sum[TOKENS * WIDTH];
    const int BOUNDS[] = {FIRST_PART, TOKENS, 0, FIRST_PART}; // later keys first
    for (int i = 0; i < 2; i++) {
        call = part_of(&parts, BOUNDS[2 * i], BOUNDS[2 * i + 1]);
        table->attention_forward(backend, &call, backend->stream);
        AttentionMerge merge = {.batch = 1,
                                .heads = HEADS,
                                .head_dim = SIZE,
                                .num_queries = TOKENS,
                                .first = i == 0,
                                .o = parts.o,
                                .o_stride = WIDTH,
                                .lse = parts.lse,
                                .o_sum = o_sum,
                                .sum_stride = WIDTH,
                                .lse_sum = lse_sum,
                                .lse_stride = TOKENS};
        table->attention_merge(backend, &merge, backend->stream);
    }
    expect(o_sum, whole.o, TOKENS * WIDTH);
    expect(lse_sum, whole.lse, HEADS * TOKENS);
    memcpy(parts.o, o_sum, sizeof o_sum);
    memcpy(parts.lse, lse_sum, sizeof lse_sum);
    for (int i = 0; i < 2; i++) {
        call = part_of(&parts, BOUNDS[2 * i], BOUNDS[2 * i + 1]);
        table->attention_backward(backend, &call, backend->stream);
        table->add(backend, dq_sum, dq_sum, parts.dq, TOKENS * WIDTH, backend->stream);
    }
    expect(dq_sum, whole.dq, TOKENS * WIDTH);
    expect(parts.dk, whole.dk, TOKENS * WIDTH);
    expect(parts.dv, whole.dv, TOKENS * WIDTH);
    finish(backend);
}

// --- Vocabulary

// Two ranks of 4 and 3 columns, the second with a column of padding, are one of 7 columns.
static void shared_cross_entropy_is_that_of_one(void) {
    enum { ROWS = 3, COLUMNS = 7, LEFT = 4, RIGHT = 3 };
    Backend *backend = open_fp64();
    const BackendTable *table = backend->table;
    const int32_t targets[ROWS] = {1, 5, -1};
    double logits[ROWS * COLUMNS], parts[2][ROWS * LEFT], loss = 1, losses[2] = {1, 1};
    double max[2][ROWS], sums[2][2 * ROWS];
    fill(logits, ROWS * COLUMNS, 1);
    CrossEntropy calls[2];
    for (int p = 0; p < 2; p++) {
        int columns = p == 0 ? LEFT : RIGHT;
        for (int i = 0; i < ROWS * LEFT; i++) {
            int column = p * LEFT + i % LEFT;
            parts[p][i] = column < COLUMNS ? logits[i / LEFT * COLUMNS + column] : NAN;
        }
        calls[p] = (CrossEntropy){.rows = ROWS,
                                  .num_columns = columns,
                                  .stride = LEFT,
                                  .first_column = p * LEFT,
                                  .logits = parts[p],
                                  .targets = targets,
                                  .scale = 0.5,
                                  .max = max[p],
                                  .sums = sums[p],
                                  .loss = &losses[p]};
        table->row_max(backend, &calls[p], backend->stream);
    }
    for (int r = 0; r < ROWS; r++) max[0][r] = max[1][r] = fmax(max[0][r], max[1][r]);
    for (int p = 0; p < 2; p++) table->row_sums(backend, &calls[p], backend->stream);
    for (int i = 0; i < 2 * ROWS; i++) sums[0][i] = sums[1][i] = sums[0][i] + sums[1][i];
    for (int p = 0; p < 2; p++) table->cross_entropy_shared(backend, &calls[p], backend->stream);
    CrossEntropy alone = {.rows = ROWS,
                          .num_columns = COLUMNS,
                          .stride = COLUMNS,
                          .logits = logits,
                          .targets = targets,
                          .scale = 0.5,
                          .loss = &loss};
    table->cross_entropy(backend, &alone, backend->stream);
    for (int p = 0; p < 2; p++) {
        CU_ASSERT_DOUBLE_EQUAL(losses[p], loss, 1e-12);
        for (int i = 0; i < ROWS * LEFT; i++) {
            int column = p * LEFT + i % LEFT;
            double gradient = column < COLUMNS ? logits[i / LEFT * COLUMNS + column] : 0;
            CU_ASSERT_DOUBLE_EQUAL(parts[p][i], gradient, 1e-12);
        }
    }
    finish(backend);
}

// --- Optimizers

// Gradient 2 scaled by a half: g = 1. Moments 0, step 1: m = 0.1, v = 0.05, both divided to 1, so
// that the change is 1 / (1 + 1) with epsilon 1; w = 3 - 0.1 (0.5 + 0.2 3) = 2.89.
static void adamw_takes_its_step(void) {
    Backend *backend = open_fp64();
    const double gradient = 2;
    double master = 3, weight, moment = 0, variance = 0;
    AdamW call = {.count = 1,
                  .gradient = &gradient,
                  .gradient_scale = 0.5,
                  .master = &master,
                  .weight = &weight,
                  .moment = &moment,
                  .variance = &variance,
                  .learning_rate = 0.1,
                  .beta1 = 0.9,
                  .beta2 = 0.95,
                  .epsilon = 1,
                  .weight_decay = 0.2,
                  .step = 1};
    backend->table->adamw(backend, &call, backend->stream);
    expect((const double[]){master, weight, moment, variance},
           (const double[]){2.89, 2.89, 0.1, 0.05}, 4);
    finish(backend);
}

// g = 1 + 0.2 3 = 1.6; momentum 0.9 2 + 1.6 = 3.4; w = 3 - 0.1 3.4, or 3 - 0.1 1.6 without.
static void sgd_takes_its_step(void) {
    Backend *backend = open_fp64();
    const double gradient = 2;
    double master = 3, momentum = 2;
    Sgd call = {.count = 1,
                .gradient = &gradient,
                .gradient_scale = 0.5,
                .master = &master,
                .momentum = &momentum,
                .learning_rate = 0.1,
                .momentum_frac = 0.9,
                .weight_decay = 0.2};
    backend->table->sgd(backend, &call, backend->stream);
    expect((const double[]){master, momentum}, (const double[]){2.66, 3.4}, 2);
    master = 3;
    call.momentum = NULL;
    backend->table->sgd(backend, &call, backend->stream);
    CU_ASSERT_DOUBLE_EQUAL(master, 2.84, 1e-12);
    finish(backend);
}

// --- Routing

// Logits of probabilities (1 2 2 3) / 8: of three, the last and the first two of the rest by size.
static void router_takes_the_first_of_equals(void) {
    Backend *backend = open_fp64();
    const double logits[] = {0, log(2), log(2), log(3)};
    double probabilities[4], weights[2];
    int32_t chosen[2];
    Router call = {.rows = 1,
                   .num_experts = 4,
                   .num_chosen = 2,
                   .logits = logits,
                   .probabilities = probabilities,
                   .chosen = chosen,
                   .weights = weights};
    backend->table->router_forward(backend, &call, backend->stream);
    CU_ASSERT_EQUAL(chosen[0], 3);
    CU_ASSERT_EQUAL(chosen[1], 1);
    expect(probabilities, (const double[]){0.125, 0.25, 0.25, 0.375}, 4);
    expect(weights, (const double[]){0.375, 0.25}, 2);
    call.normalised = true;
    backend->table->router_forward(backend, &call, backend->stream);
    expect(weights, (const double[]){0.6, 0.4}, 2);
    finish(backend);
}

static void rows_are_gathered_and_combined(void) {
    Backend *backend = open_fp64();
    const double x[] = {1, 2, 3, 4, 5, 6}, weights[] = {2, 10, 1, 100};
    const int32_t index[] = {2, 0, -1, 1};
    double y[8];
    GatherRows gather = {.rows = 4, .columns = 2, .x = x, .index = index, .y = y};
    backend->table->gather_rows(backend, &gather, backend->stream);
    expect(y, (const double[]){5, 6, 1, 2, 0, 0, 3, 4}, 8);
    CombineRows combine = {.rows = 2,
                           .columns = 2,
                           .num_chosen = 2,
                           .x = x,
                           .index = index,
                           .weights = weights,
                           .y = y};
    backend->table->combine_forward(backend, &combine, backend->stream);
    expect(y, (const double[]){20, 32, 300, 400}, 4);
    combine.weights = NULL;
    backend->table->combine_forward(backend, &combine, backend->stream);
    expect(y, (const double[]){6, 8, 3, 4}, 4);
    finish(backend);
}

CU_TestInfo cpu_operations_tests[] = {
    {"product_is_x_w_transposed", product_is_x_w_transposed},
    {"norms_are_as_defined", norms_are_as_defined},
    {"activations_are_as_defined", activations_are_as_defined},
    {"rope_turns_halves", rope_turns_halves},
    {"rope_scales_long_waves", rope_scales_long_waves},
    {"attention_sees_keys_up_to_its_position", attention_sees_keys_up_to_its_position},
    {"attention_by_parts_is_the_whole", attention_by_parts_is_the_whole},
    {"shared_cross_entropy_is_that_of_one", shared_cross_entropy_is_that_of_one},
    {"adamw_takes_its_step", adamw_takes_its_step},
    {"sgd_takes_its_step", sgd_takes_its_step},
    {"router_takes_the_first_of_equals", router_takes_the_first_of_equals},
    {"rows_are_gathered_and_combined", rows_are_gathered_and_combined},
    CU_TEST_INFO_NULL,
};
