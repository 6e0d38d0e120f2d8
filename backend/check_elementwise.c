// backend/check_elementwise.c - cases of optimizers, sums, casts and copies.
#include "backend/check_case.h"

// --- Optimizers

// Squares of numbers of this deviation: variances are not negative.
static const CheckArray *variances_make(Checker *checker, int64_t count, double deviation) {
    double *values = draw_fracs(checker, count);
    for (int64_t i = 0; i < count; i++) values[i] *= 3 * deviation * deviation * values[i];
    return case_values(checker, "variance", CHECK_WIDE, CHECK_CHANGED, count, values);
}

// The masters are small beside a step, so that an error of the step shows.
static void check_adamw(Checker *checker, AdamW call, bool with_weight) {
    case_begin(checker, "adamw", "%lld, step %lld%s", (long long)call.count, (long long)call.step,
               with_weight ? "" : ", no copy");
    const CheckArray *gradient =
        case_random(checker, "gradient", CHECK_WIDE, CHECK_READ, call.count, 1);
    const CheckArray *master =
        case_random(checker, "master", CHECK_WIDE, CHECK_CHANGED, call.count, 0.01);
    const CheckArray *weight = case_written(checker, "weight", CHECK_ACT, call.count);
    const CheckArray *moment =
        case_random(checker, "moment", CHECK_WIDE, CHECK_CHANGED, call.count, 0.3);
    const CheckArray *variance = variances_make(checker, call.count, 0.5);
    FOR_EACH_SIDE(side) {
        call.gradient = gradient->at[side];
        call.master = master->at[side];
        call.weight = with_weight ? weight->at[side] : NULL;
        call.moment = moment->at[side];
        call.variance = variance->at[side];
        table_of(checker, side)->adamw(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

static void check_sgd(Checker *checker, Sgd call, bool with_momentum) {
    case_begin(checker, "sgd", "%lld%s", (long long)call.count, with_momentum ? ", momentum" : "");
    const CheckArray *gradient =
        case_random(checker, "gradient", CHECK_WIDE, CHECK_READ, call.count, 1);
    const CheckArray *master =
        case_random(checker, "master", CHECK_WIDE, CHECK_CHANGED, call.count, 0.1);
    const CheckArray *weight = case_written(checker, "weight", CHECK_ACT, call.count);
    const CheckArray *momentum =
        case_random(checker, "momentum", CHECK_WIDE, CHECK_CHANGED, call.count, 1);
    FOR_EACH_SIDE(side) {
        call.gradient = gradient->at[side];
        call.master = master->at[side];
        call.weight = weight->at[side];
        call.momentum = with_momentum ? momentum->at[side] : NULL;
        table_of(checker, side)->sgd(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

void check_optimizers(Checker *checker) {
    static const int64_t COUNTS[] = {1, 33, 200003};
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        AdamW adamw = {.count = COUNTS[i],
                       .gradient_scale = 0.7,
                       .learning_rate = 0.05,
                       .beta1 = 0.9,
                       .beta2 = 0.95,
                       .epsilon = 1e-8,
                       .weight_decay = 0.1};
        for (adamw.step = 1; adamw.step <= 1000; adamw.step *= 10) {
            check_adamw(checker, adamw, adamw.step != 10);
        }
        Sgd sgd = {.count = COUNTS[i],
                   .gradient_scale = 0.7,
                   .learning_rate = 0.05,
                   .momentum_frac = 0.9,
                   .weight_decay = 0.1};
        check_sgd(checker, sgd, false);
        check_sgd(checker, sgd, true);
    }
}

// --- Sums and casts

static void check_add(Checker *checker, int64_t count, bool in_place) {
    case_begin(checker, "add", "%lld%s", (long long)count, in_place ? ", y is a" : "");
    const CheckArray *a =
        case_random(checker, "a", CHECK_ACT, in_place ? CHECK_CHANGED : CHECK_READ, count, 1);
    const CheckArray *b = case_random(checker, "b", CHECK_ACT, CHECK_READ, count, 1);
    const CheckArray *y = in_place ? a : case_written(checker, "y", CHECK_ACT, count);
    FOR_EACH_SIDE(side) {
        Backend *backend = checker->sides[side];
        backend->table->add(backend, y->at[side], a->at[side], b->at[side], count, backend->stream);
    }
    case_end(checker);
}

static void check_scale(Checker *checker, int64_t count, CheckFormat format) {
    case_begin(checker, "scale", "%lld%s", (long long)count, format == CHECK_WIDE ? ", wide" : "");
    const CheckArray *y = case_random(checker, "y", format, CHECK_CHANGED, count, 1);
    FOR_EACH_SIDE(side) {
        Backend *backend = checker->sides[side];
        Dtype dtype = format == CHECK_WIDE ? backend->wide : backend->act;
        backend->table->scale(backend, y->at[side], 0.37, dtype, count, backend->stream);
    }
    case_end(checker);
}

static void check_cast(Checker *checker, int64_t count, bool widen, bool accumulate) {
    case_begin(checker, "cast", "%lld, %s%s", (long long)count, widen ? "to wide" : "to act",
               accumulate ? ", added" : "");
    CheckFormat from_format = widen ? CHECK_ACT : CHECK_WIDE;
    CheckFormat to_format = widen ? CHECK_WIDE : CHECK_ACT;
    const CheckArray *from = case_random(checker, "from", from_format, CHECK_READ, count, 1);
    const CheckArray *to = accumulate
                               ? case_random(checker, "to", to_format, CHECK_CHANGED, count, 1)
                               : case_written(checker, "to", to_format, count);
    FOR_EACH_SIDE(side) {
        Backend *backend = checker->sides[side];
        backend->table->cast(backend, to->at[side], widen ? backend->wide : backend->act,
                             from->at[side], widen ? backend->act : backend->wide, accumulate,
                             count, backend->stream);
    }
    case_end(checker);
}

static void check_sum_squares(Checker *checker, int64_t count) {
    case_begin(checker, "sum_squares", "%lld", (long long)count);
    const CheckArray *x = case_random(checker, "x", CHECK_WIDE, CHECK_READ, count, 1);
    const CheckArray *sum = case_random(checker, "sum", CHECK_WIDE, CHECK_CHANGED, 1, 1);
    FOR_EACH_SIDE(side) {
        Backend *backend = checker->sides[side];
        backend->table->sum_squares(backend, sum->at[side], x->at[side], count, backend->stream);
    }
    case_end(checker);
}

static void check_sum_rows(Checker *checker, int64_t rows, int64_t columns) {
    case_begin(checker, "sum_rows", "%lld x %lld", (long long)rows, (long long)columns);
    const CheckArray *x = case_random(checker, "x", CHECK_ACT, CHECK_READ, rows * columns, 1);
    const CheckArray *sums = case_random(checker, "sums", CHECK_WIDE, CHECK_CHANGED, columns, 1);
    FOR_EACH_SIDE(side) {
        Backend *backend = checker->sides[side];
        backend->table->sum_rows(backend, sums->at[side], x->at[side], rows, columns,
                                 backend->stream);
    }
    case_end(checker);
}

void check_elementwise(Checker *checker) {
    static const int64_t COUNTS[] = {1, 33, 59200, 200003};
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        check_add(checker, COUNTS[i], false);
        check_add(checker, COUNTS[i], true);
        check_scale(checker, COUNTS[i], CHECK_ACT);
        check_scale(checker, COUNTS[i], CHECK_WIDE);
        check_cast(checker, COUNTS[i], true, false);
        check_cast(checker, COUNTS[i], true, true);
        check_cast(checker, COUNTS[i], false, false);
        check_sum_squares(checker, COUNTS[i]);
    }
    check_sum_rows(checker, 37, 1600);
    check_sum_rows(checker, 513, 33);
    check_sum_rows(checker, 1, 1);
}

// --- Copies

static void check_copy_rows(Checker *checker, int64_t rows, int64_t columns, int64_t to_stride,
                            int64_t from_stride, CheckFormat format) {
    case_begin(checker, "copy_rows", "%lld x %lld, strides %lld and %lld%s", (long long)rows,
               (long long)columns, (long long)to_stride, (long long)from_stride,
               format == CHECK_WIDE ? ", wide" : "");
    const CheckArray *from =
        case_random(checker, "from", format, CHECK_READ, rows * from_stride, 1);
    const CheckArray *to = case_written(checker, "to", format, rows * to_stride);
    FOR_EACH_SIDE(side) {
        Backend *backend = checker->sides[side];
        int64_t size = (int64_t)dtype_bytes(format == CHECK_WIDE ? backend->wide : backend->act);
        backend->table->copy_rows(backend, to->at[side], to_stride * size, from->at[side],
                                  from_stride * size, rows, columns * size, backend->stream);
    }
    case_end(checker);
}

// Part of an array is copied, part is zeroed, the rest stays.
static void check_copy_and_zero(Checker *checker) {
    enum { COUNT = 1000, COPIED = 333, ZEROED = 444 };
    case_begin(checker, "copy and zero", "%d and %d of %d", COPIED, ZEROED, COUNT);
    const CheckArray *from = case_random(checker, "from", CHECK_ACT, CHECK_READ, COUNT, 1);
    const CheckArray *to = case_written(checker, "to", CHECK_ACT, COUNT);
    FOR_EACH_SIDE(side) {
        Backend *backend = checker->sides[side];
        size_t size = dtype_bytes(backend->act);
        backend->table->copy(backend, array_at(checker, to, side, 7), from->at[side], COPIED * size,
                             backend->stream);
        backend->table->zero(backend, array_at(checker, to, side, COPIED + 11), ZEROED * size,
                             backend->stream);
    }
    case_end(checker);
}

// A second stream waits until the first has made products, and copies the last. Leaves in
// `positive` whether the time between the events before and after them is.
static void run_on_streams(Backend *backend, const Product *call, void *copy, void *positive) {
    const BackendTable *table = backend->table;
    size_t bytes = (size_t)(call->m * call->n) * dtype_bytes(backend->act);
    BackendStream *second = table->stream_create(backend);
    BackendEvent *begun = table->event_create(backend, true);
    BackendEvent *done = table->event_create(backend, true);
    if (second == NULL || begun == NULL || done == NULL) return;
    table->event_record(backend, begun, backend->stream);
    for (int i = 0; i < 20; i++) table->product(backend, call, backend->stream);
    table->event_record(backend, done, backend->stream);
    table->event_await(backend, done, second);
    table->copy(backend, copy, call->out, bytes, second);
    if (backend_sync(backend).code == STATUS_OK) {
        const int32_t is_positive = table->event_interval_s(backend, begun, done) > 0;
        table->upload(backend, positive, &is_positive, sizeof is_positive, backend->stream);
        backend_sync(backend);
    }
    table->event_free(backend, done);
    table->event_free(backend, begun);
    table->stream_free(backend, second);
}

static void check_streams(Checker *checker) {
    enum { ROWS = 256 };
    case_begin(checker, "streams", "20 products of %d, copied by a second stream", ROWS);
    const CheckArray *a = case_random(checker, "a", CHECK_ACT, CHECK_READ, ROWS * ROWS, 1);
    const CheckArray *b = case_random(checker, "b", CHECK_ACT, CHECK_READ, ROWS * ROWS, 1);
    const CheckArray *out = case_random(checker, "out", CHECK_ACT, CHECK_CHANGED, ROWS * ROWS, 1);
    const CheckArray *copy = case_written(checker, "copy", CHECK_ACT, ROWS * ROWS);
    const CheckArray *positive = case_written(checker, "positive", CHECK_INT, 1);
    FOR_EACH_SIDE(side) {
        Product call = {.m = ROWS,
                        .n = ROWS,
                        .k = ROWS,
                        .a = a->at[side],
                        .b = b->at[side],
                        .out = out->at[side]};
        run_on_streams(checker->sides[side], &call, copy->at[side], positive->at[side]);
    }
    case_end(checker);
}

void check_moves(Checker *checker) {
    check_copy_and_zero(checker);
    check_copy_rows(checker, 37, 1600, 4800, 1600, CHECK_ACT);
    check_copy_rows(checker, 130, 33, 33, 99, CHECK_ACT);
    check_copy_rows(checker, 5, 3, 7, 5, CHECK_WIDE);
    check_streams(checker);
}
