// backend/check_dense.c - cases of products, norms, activations and rope.
#include "backend/check_case.h"

#include <math.h>

// --- Products

static const char *const LAYOUT_NAMES[] = {"forward", "backward input", "backward weight"};

static void check_product(Checker *checker, Product call, bool with_bias) {
    case_begin(checker, "product", "%s %lld x %lld x %lld%s%s%s%s", LAYOUT_NAMES[call.layout],
               (long long)call.m, (long long)call.n, (long long)call.k,
               call.out_wide ? ", wide" : "", call.accumulate ? ", added" : "",
               with_bias ? ", bias" : "", call.rows_vary ? ", rows vary" : "");
    CheckFormat format = call.out_wide ? CHECK_WIDE : CHECK_ACT;
    const CheckArray *a = case_random(checker, "a", CHECK_ACT, CHECK_READ, call.m * call.k, 1);
    const CheckArray *b =
        case_random(checker, "b", CHECK_ACT, CHECK_READ, call.n * call.k, 1 / sqrt((double)call.k));
    const CheckArray *bias = case_random(checker, "bias", CHECK_ACT, CHECK_READ, call.n, 1);
    const CheckArray *out =
        call.accumulate ? case_random(checker, "out", format, CHECK_CHANGED, call.m * call.n, 1)
                        : case_written(checker, "out", format, call.m * call.n);
    FOR_EACH_SIDE(side) {
        call.a = a->at[side];
        call.b = b->at[side];
        call.bias = with_bias ? bias->at[side] : NULL;
        call.out = out->at[side];
        table_of(checker, side)->product(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

// As a router gives them to an expert: of one size after another, and of one as a whole.
static void check_rows_that_vary(Checker *checker) {
    static const int64_t ROWS[] = {1, 5, 18, 17, 24, 100, 103, 404, 401, 1000};
    for (int layout = 0; layout <= PRODUCT_BACKWARD_WEIGHT; layout++) {
        const bool weight = layout == PRODUCT_BACKWARD_WEIGHT;
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
            Product call = {.layout = (ProductLayout)layout,
                            .m = weight ? 192 : ROWS[i],
                            .n = 256,
                            .k = weight ? ROWS[i] : 192,
                            .out_wide = weight,
                            .accumulate = weight,
                            .rows_vary = true};
            check_product(checker, call, false);
            call.rows_vary = false;
            if (ROWS[i] == 24) check_product(checker, call, false);
        }
    }
}

void check_products(Checker *checker) {
    check_rows_that_vary(checker);
    static const int64_t SIZES[][3] = {
        {64, 64, 64}, {37, 1600, 800}, {257, 768, 1536}, {1, 1600, 33}, {33, 7, 1}, {130, 65, 129},
    };
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        for (int layout = 0; layout <= PRODUCT_BACKWARD_WEIGHT; layout++) {
            for (int variant = 0; variant < 4; variant++) {
                Product call = {.layout = (ProductLayout)layout,
                                .m = SIZES[i][0],
                                .n = SIZES[i][1],
                                .k = SIZES[i][2],
                                .out_wide = variant & 1,
                                .accumulate = variant & 2};
                check_product(checker, call, false);
                if (layout == PRODUCT_FORWARD) check_product(checker, call, true);
            }
        }
    }
}

// --- Norms

// What the norm adds to its input, and where it leaves the sum.
typedef enum { ADD_NOTHING, ADD_APART, ADD_INTO_X, ADD_INTO_ADDEND, NUM_ADDS } NormAdd;

static const char *const ADD_NAMES[] = {"", ", added", ", added into x", ", added into add"};

static void check_norm_forward(Checker *checker, NormForward call, NormAdd with_add) {
    int64_t count = call.rows * call.columns;
    bool layer = call.op == NORM_LAYER;
    case_begin(checker, "norm_forward", "%s %lld x %lld%s", layer ? "layer" : "rms",
               (long long)call.rows, (long long)call.columns, ADD_NAMES[with_add]);
    const CheckArray *x = case_random(
        checker, "x", CHECK_ACT, with_add == ADD_INTO_X ? CHECK_CHANGED : CHECK_READ, count, 2);
    const CheckArray *addend =
        case_random(checker, "add", CHECK_ACT,
                    with_add == ADD_INTO_ADDEND ? CHECK_CHANGED : CHECK_READ, count, 1);
    const CheckArray *sum = case_written(checker, "sum", CHECK_ACT, count);
    if (with_add == ADD_INTO_X) sum = x;
    if (with_add == ADD_INTO_ADDEND) sum = addend;
    const CheckArray *weight =
        case_random(checker, "weight", CHECK_ACT, CHECK_READ, call.columns, 1);
    const CheckArray *bias = case_random(checker, "bias", CHECK_ACT, CHECK_READ, call.columns, 1);
    const CheckArray *y = case_written(checker, "y", CHECK_ACT, count);
    // Of the sum as it is kept or as it is added up: both are right.
    CheckFormat wide = with_add == ADD_NOTHING ? CHECK_WIDE : CHECK_WIDE_OF_ACT;
    const CheckArray *mean =
        layer ? case_written(checker, "mean", wide, call.rows)
              : case_random(checker, "mean", CHECK_WIDE, CHECK_READ, call.rows, 1);
    const CheckArray *rstd = case_written(checker, "rstd", wide, call.rows);
    FOR_EACH_SIDE(side) {
        call.x = x->at[side];
        call.add = with_add == ADD_NOTHING ? NULL : addend->at[side];
        call.sum = with_add == ADD_NOTHING ? NULL : sum->at[side];
        call.weight = weight->at[side];
        call.bias = layer ? bias->at[side] : NULL;
        call.y = y->at[side];
        call.mean = mean->at[side];
        call.rstd = rstd->at[side];
        table_of(checker, side)
            ->norm_forward(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

typedef enum { DX_APART, DX_ADDED, DX_IS_DY, DX_IS_ADD, NUM_DX } NormDx;

static const char *const DX_NAMES[] = {"", ", added", ", dx is dy", ", added, dx is add"};

// Mean and 1 / sqrt(variance) of rows as the forward leaves them, from the very x of the case.
static void row_statistics(Checker *checker, const NormBackward *call, const CheckArray *x,
                           const CheckArray **mean, const CheckArray **rstd) {
    const double *values = x->at[CHECK_REFERENCE];
    double *means = ARENA_ARRAY(&checker->arena, call->rows, double);
    double *rstds = ARENA_ARRAY(&checker->arena, call->rows, double);
    for (int64_t r = 0; r < call->rows; r++) {
        double sum = 0, square = 0, count = (double)call->columns;
        for (int64_t c = 0; c < call->columns; c++) {
            sum += values[r * call->columns + c];
            square += values[r * call->columns + c] * values[r * call->columns + c];
        }
        means[r] = call->op == NORM_LAYER ? sum / count : 0;
        rstds[r] = 1 / sqrt(square / count - means[r] * means[r] + 1e-5);
    }
    *mean = case_values(checker, "mean", CHECK_WIDE, CHECK_READ, call->rows, means);
    *rstd = case_values(checker, "rstd", CHECK_WIDE, CHECK_READ, call->rows, rstds);
}

static void check_norm_backward(Checker *checker, NormBackward call, NormDx variant) {
    int64_t count = call.rows * call.columns;
    bool layer = call.op == NORM_LAYER;
    case_begin(checker, "norm_backward", "%s %lld x %lld%s", layer ? "layer" : "rms",
               (long long)call.rows, (long long)call.columns, DX_NAMES[variant]);
    const CheckArray *x = case_random(checker, "x", CHECK_ACT, CHECK_READ, count, 2);
    const CheckArray *dy = case_random(checker, "dy", CHECK_ACT,
                                       variant == DX_IS_DY ? CHECK_CHANGED : CHECK_READ, count, 1);
    const CheckArray *addend = case_random(
        checker, "add", CHECK_ACT, variant == DX_IS_ADD ? CHECK_CHANGED : CHECK_READ, count, 1);
    const CheckArray *dx = variant == DX_IS_DY    ? dy
                           : variant == DX_IS_ADD ? addend
                                                  : case_written(checker, "dx", CHECK_ACT, count);
    const CheckArray *weight =
        case_random(checker, "weight", CHECK_ACT, CHECK_READ, call.columns, 1);
    const CheckArray *dweight =
        case_random(checker, "dweight", CHECK_WIDE, CHECK_CHANGED, call.columns, 1);
    const CheckArray *dbias =
        case_random(checker, "dbias", CHECK_WIDE, CHECK_CHANGED, call.columns, 1);
    const CheckArray *mean, *rstd;
    row_statistics(checker, &call, x, &mean, &rstd);
    FOR_EACH_SIDE(side) {
        call.x = x->at[side];
        call.dy = dy->at[side];
        call.add = variant == DX_ADDED || variant == DX_IS_ADD ? addend->at[side] : NULL;
        call.dx = dx->at[side];
        call.weight = weight->at[side];
        call.mean = mean->at[side];
        call.rstd = rstd->at[side];
        call.dweight = dweight->at[side];
        call.dbias = layer ? dbias->at[side] : NULL;
        table_of(checker, side)
            ->norm_backward(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

void check_norms(Checker *checker) {
    static const int64_t SIZES[][2] = {{37, 1600}, {5, 33}, {513, 768}, {1, 4096}, {3, 1}};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        for (int op = 0; op <= NORM_LAYER; op++) {
            NormForward forward = {
                .op = (NormOp)op, .rows = SIZES[i][0], .columns = SIZES[i][1], .epsilon = 1e-5};
            for (int with_add = 0; with_add < NUM_ADDS; with_add++) {
                check_norm_forward(checker, forward, (NormAdd)with_add);
            }
            if (SIZES[i][1] == 1) continue; // its gradient is all cancellation
            NormBackward backward = {.op = (NormOp)op, .rows = SIZES[i][0], .columns = SIZES[i][1]};
            for (int variant = 0; variant < NUM_DX; variant++) {
                check_norm_backward(checker, backward, (NormDx)variant);
            }
        }
    }
}

// --- Activations and rope

static void check_activation(Checker *checker, Activation call, bool backward, bool in_place) {
    static const char *const NAMES[NUM_ACTIVATIONS] = {"silu gated", "gelu gated", "gelu", "relu"};
    bool gated = call.op == ACTIVATION_SILU_GATED || call.op == ACTIVATION_GELU_GATED;
    int64_t count = call.rows * call.width * (gated ? 2 : 1), y_count = call.rows * call.width;
    case_begin(checker, backward ? "activation_backward" : "activation_forward", "%s %lld x %lld%s",
               NAMES[call.op], (long long)call.rows, (long long)call.width,
               in_place ? ", dx is x" : "");
    const CheckArray *x =
        case_random(checker, "x", CHECK_ACT, in_place ? CHECK_CHANGED : CHECK_READ, count, 2);
    const CheckArray *dy = case_random(checker, "dy", CHECK_ACT, CHECK_READ, y_count, 1);
    const CheckArray *out = in_place ? x
                                     : case_written(checker, backward ? "dx" : "y", CHECK_ACT,
                                                    backward ? count : y_count);
    FOR_EACH_SIDE(side) {
        call.x = x->at[side];
        call.y = backward ? NULL : out->at[side];
        call.dy = backward ? dy->at[side] : NULL;
        call.dx = backward ? out->at[side] : NULL;
        const BackendTable *table = table_of(checker, side);
        (backward ? table->activation_backward : table->activation_forward)(
            checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

static void check_rope(Checker *checker, Rope call) {
    case_begin(checker, "rope", "%lld tokens, %d heads of %d, stride %lld%s",
               (long long)call.tokens, call.heads, call.head_dim, (long long)call.stride,
               call.inverse ? ", inverse" : "");
    enum { MAX_POSITION = 5000 };
    const CheckArray *x =
        case_random(checker, "x", CHECK_ACT, CHECK_CHANGED, call.tokens * call.stride, 1);
    const CheckArray *positions = case_ints(checker, "positions", call.tokens,
                                            draw_ints(checker, call.tokens, 0, MAX_POSITION));
    FOR_EACH_SIDE(side) {
        call.x = x->at[side];
        call.positions = positions->at[side];
        table_of(checker, side)->rope(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

void check_activations(Checker *checker) {
    static const int64_t SIZES[][2] = {{37, 1600}, {5, 33}, {130, 2752}, {1, 1}};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        for (int op = 0; op < NUM_ACTIVATIONS; op++) {
            Activation call = {.op = (ActivationOp)op, .rows = SIZES[i][0], .width = SIZES[i][1]};
            check_activation(checker, call, false, false);
            check_activation(checker, call, true, false);
            check_activation(checker, call, true, true);
        }
    }
    for (int inverse = 0; inverse < 2; inverse++) {
        check_rope(checker, (Rope){.tokens = 77,
                                   .heads = 25,
                                   .head_dim = 64,
                                   .stride = 25 * 64,
                                   .theta = 1e4,
                                   .inverse = inverse});
        check_rope(checker, (Rope){.tokens = 130,
                                   .heads = 8,
                                   .head_dim = 128,
                                   .stride = 48 * 128,
                                   .theta = 5e5,
                                   .scaling = {8, 50, 10}, // some waves of each kind
                                   .inverse = inverse});
        check_rope(checker, (Rope){.tokens = 3,
                                   .heads = 3,
                                   .head_dim = 80,
                                   .stride = 251,
                                   .theta = 1e4,
                                   .inverse = inverse});
    }
}
