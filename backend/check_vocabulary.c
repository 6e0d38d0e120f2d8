// backend/check_tokens.c - cases of embedding and cross entropy.
#include "backend/check_case.h"

#include <math.h>

// --- Embedding

static void check_embedding(Checker *checker, Embedding call, int num_positions, bool backward) {
    int64_t count = call.rows * call.columns, table_count = call.num_rows * call.columns;
    int64_t places_count = (int64_t)num_positions * call.columns;
    case_begin(checker, backward ? "embedding_backward" : "embedding_forward",
               "%lld x %lld, rows %lld to %lld%s", (long long)call.rows, (long long)call.columns,
               (long long)call.first_row, (long long)(call.first_row + call.num_rows),
               num_positions > 0 ? ", positions" : "");
    // Half of them are rows of other ranks, on both sides of this one's.
    int32_t first = (int32_t)(call.first_row - call.num_rows / 4);
    int32_t end = (int32_t)(call.first_row + call.num_rows + call.num_rows / 4);
    if (call.first_row == 0) first = 0;
    const CheckArray *tokens =
        case_ints(checker, "tokens", call.rows, draw_ints(checker, call.rows, first, end));
    const CheckArray *positions =
        case_ints(checker, "positions", call.rows,
                  draw_ints(checker, call.rows, 0, num_positions > 0 ? num_positions : 1));
    const CheckArray *table =
        backward ? case_random(checker, "dtable", CHECK_WIDE, CHECK_CHANGED, table_count, 1)
                 : case_random(checker, "table", CHECK_ACT, CHECK_READ, table_count, 1);
    const CheckArray *places =
        backward ? case_random(checker, "dpositions", CHECK_WIDE, CHECK_CHANGED, places_count, 1)
                 : case_random(checker, "positions", CHECK_ACT, CHECK_READ, places_count, 1);
    const CheckArray *y = backward ? case_random(checker, "dy", CHECK_ACT, CHECK_READ, count, 1)
                                   : case_written(checker, "y", CHECK_ACT, count);
    FOR_EACH_SIDE(side) {
        void *place = num_positions > 0 ? places->at[side] : NULL;
        call.tokens = tokens->at[side];
        call.positions = positions->at[side];
        const BackendTable *functions = table_of(checker, side);
        if (backward) {
            call.dy = y->at[side];
            call.dtable = table->at[side];
            call.dpositions_table = place;
        } else {
            call.y = y->at[side];
            call.table = table->at[side];
            call.positions_table = place;
        }
        (backward ? functions->embedding_backward : functions->embedding_forward)(
            checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

// --- Cross entropy

typedef enum { LOSS_ALONE, LOSS_MAX, LOSS_SUMS, LOSS_SHARED, NUM_LOSSES } LossStep;

static const char *const LOSS_NAMES[] = {"cross_entropy", "row_max", "row_sums",
                                         "cross_entropy_shared"};

// The largest logit of all ranks, a little above this one's, and the sums of a vocabulary of which
// this rank has about half.
static void shared_values(const CrossEntropy *call, const CheckArray *logits,
                          const CheckArray *targets, double *max, double *sums) {
    const double *x = logits->at[CHECK_REFERENCE];
    const int32_t *target = targets->at[CHECK_REFERENCE];
    for (int64_t r = 0; r < call->rows; r++) {
        const double *row = x + r * call->stride;
        int64_t column = target[r] - call->first_column;
        max[r] = -INFINITY;
        for (int64_t c = 0; c < call->num_columns; c++) max[r] = fmax(max[r], row[c]);
        max[r] += 0.25;
        for (int64_t c = 0; c < call->num_columns; c++) sums[r] += 2 * exp(row[c] - max[r]);
        bool here = target[r] >= 0 && column >= 0 && column < call->num_columns;
        sums[call->rows + r] = here ? row[column] : 1.5;
    }
}

static void check_loss(Checker *checker, CrossEntropy call, LossStep step) {
    case_begin(checker, LOSS_NAMES[step], "%lld x %lld, stride %lld, first %lld",
               (long long)call.rows, (long long)call.num_columns, (long long)call.stride,
               (long long)call.first_column);
    bool changes = step == LOSS_ALONE || step == LOSS_SHARED;
    int32_t end = (int32_t)(call.first_column + call.num_columns);
    int32_t *drawn = step == LOSS_ALONE ? draw_ints(checker, call.rows, 0, end)
                                        : draw_ints(checker, call.rows, 0, end * 2);
    for (int64_t r = 3; r < call.rows; r += 5) drawn[r] = -1;
    const CheckArray *targets = case_ints(checker, "targets", call.rows, drawn);
    const CheckArray *logits =
        case_random(checker, "logits", CHECK_ACT, changes ? CHECK_CHANGED : CHECK_READ,
                    call.rows * call.stride, 3);
    double *max_values = ARENA_ARRAY(&checker->arena, call.rows, double);
    double *sum_values = ARENA_ARRAY(&checker->arena, 2 * call.rows, double);
    shared_values(&call, logits, targets, max_values, sum_values);
    const CheckArray *max = step == LOSS_MAX ? case_written(checker, "max", CHECK_WIDE, call.rows)
                                             : case_values(checker, "max", CHECK_WIDE, CHECK_READ,
                                                           call.rows, max_values);
    const CheckArray *sums =
        step == LOSS_SUMS
            ? case_written(checker, "sums", CHECK_WIDE, 2 * call.rows)
            : case_values(checker, "sums", CHECK_WIDE, CHECK_READ, 2 * call.rows, sum_values);
    const CheckArray *loss = case_random(checker, "loss", CHECK_WIDE, CHECK_CHANGED, 1, 1);
    FOR_EACH_SIDE(side) {
        const BackendTable *table = table_of(checker, side);
        void (*const FUNCTIONS[])(Backend *, const CrossEntropy *, BackendStream *) = {
            table->cross_entropy, table->row_max, table->row_sums, table->cross_entropy_shared};
        call.logits = logits->at[side];
        call.targets = targets->at[side];
        call.max = step == LOSS_ALONE ? NULL : max->at[side];
        call.sums = step == LOSS_ALONE ? NULL : sums->at[side];
        call.loss = changes ? loss->at[side] : NULL;
        FUNCTIONS[step](checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

void check_vocabulary(Checker *checker) {
    for (int backward = 0; backward < 2; backward++) {
        check_embedding(checker, (Embedding){.rows = 130, .columns = 1600, .num_rows = 701}, 64,
                        backward);
        check_embedding(checker,
                        (Embedding){.rows = 777, .columns = 33, .first_row = 5000, .num_rows = 200},
                        0, backward);
        check_embedding(checker,
                        (Embedding){.rows = 64, .columns = 768, .first_row = 300, .num_rows = 301},
                        16, backward);
    }
    static const CrossEntropy LOSSES[] = {
        {.rows = 13, .num_columns = 50257, .stride = 50304, .scale = 1.0 / 13},
        {.rows = 130, .num_columns = 256, .stride = 256, .scale = 1.0 / 520},
        {.rows = 6, .num_columns = 33, .stride = 40, .scale = 1},
    };
    for (size_t i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        for (int step = 0; step < NUM_LOSSES; step++) {
            CrossEntropy call = LOSSES[i];
            if (step != LOSS_ALONE) call.first_column = call.num_columns / 2;
            check_loss(checker, call, (LossStep)step);
        }
    }
}
