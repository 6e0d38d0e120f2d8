// backend/check_routing.c - cases of routing to experts.
#include "backend/check_case.h"

#include <string.h>

// Whole numbers as logits where there are to be ties: many are the same.
static const CheckArray *router_logits(Checker *checker, int64_t count, bool ties) {
    if (!ties) return case_random(checker, "logits", CHECK_WIDE, CHECK_READ, count, 1);
    int32_t *drawn = draw_ints(checker, count, -2, 3);
    double *values = ARENA_ARRAY(&checker->arena, count, double);
    for (int64_t i = 0; i < count; i++) values[i] = drawn[i];
    return case_values(checker, "logits", CHECK_WIDE, CHECK_READ, count, values);
}

static void begin(Checker *checker, const char *name, const Router *call, bool ties) {
    case_begin(checker, name, "%lld, %d of %d%s%s", (long long)call->rows, call->num_chosen,
               call->num_experts, call->normalised ? ", normalised" : "",
               ties ? (call->chosen_given ? ", given" : ", ties") : "");
}

// One after the other, from another first in each row.
static const int32_t *chosen_make(Checker *checker, const Router *call) {
    int32_t *chosen = ARENA_ARRAY(&checker->arena, call->rows * call->num_chosen, int32_t);
    for (int64_t i = 0; i < call->rows * call->num_chosen; i++)
        chosen[i] = (int32_t)((i + i / call->num_chosen) % call->num_experts);
    return chosen;
}

static void check_router_forward(Checker *checker, Router call, bool ties) {
    int64_t count = call.rows * call.num_experts, slots = call.rows * call.num_chosen;
    begin(checker, "router_forward", &call, ties);
    const CheckArray *logits = router_logits(checker, count, ties);
    const CheckArray *probabilities = case_written(checker, "probabilities", CHECK_WIDE, count);
    const CheckArray *chosen =
        call.chosen_given ? case_ints(checker, "chosen", slots, chosen_make(checker, &call))
                          : case_written(checker, "chosen", CHECK_INT, slots);
    const CheckArray *weights = case_written(checker, "weights", CHECK_WIDE, slots);
    FOR_EACH_SIDE(side) {
        call.logits = logits->at[side];
        call.probabilities = probabilities->at[side];
        call.chosen = chosen->at[side];
        call.weights = weights->at[side];
        table_of(checker, side)
            ->router_forward(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

static void check_router_backward(Checker *checker, Router call, bool ties) {
    int64_t count = call.rows * call.num_experts, slots = call.rows * call.num_chosen;
    begin(checker, "router_backward", &call, ties);
    Router forward = call; // by the reference, whose arrays are in the host's memory
    Backend *reference = checker->sides[CHECK_REFERENCE];
    forward.logits = router_logits(checker, count, ties)->at[CHECK_REFERENCE];
    forward.probabilities = ARENA_ARRAY(&checker->arena, count, double);
    forward.chosen = ARENA_ARRAY(&checker->arena, slots, int32_t);
    forward.weights = ARENA_ARRAY(&checker->arena, slots, double);
    reference->table->router_forward(reference, &forward, reference->stream);
    const CheckArray *probabilities =
        case_values(checker, "probabilities", CHECK_WIDE, CHECK_READ, count, forward.probabilities);
    const CheckArray *weights =
        case_values(checker, "weights", CHECK_WIDE, CHECK_READ, slots, forward.weights);
    const CheckArray *chosen = case_ints(checker, "chosen", slots, forward.chosen);
    const CheckArray *given = case_random(checker, "weighted_dw", CHECK_WIDE, CHECK_READ, slots, 1);
    const CheckArray *dlogits = case_written(checker, "dlogits", CHECK_WIDE, count);
    FOR_EACH_SIDE(side) {
        call.probabilities = probabilities->at[side];
        call.chosen = chosen->at[side];
        call.weights = weights->at[side];
        call.weighted_dw = given->at[side];
        call.dlogits = dlogits->at[side];
        table_of(checker, side)
            ->router_backward(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

static void check_dots(Checker *checker, int64_t rows, int64_t columns) {
    case_begin(checker, "row_dots", "%lld x %lld", (long long)rows, (long long)columns);
    const CheckArray *a = case_random(checker, "a", CHECK_ACT, CHECK_READ, rows * columns, 1);
    const CheckArray *b = case_random(checker, "b", CHECK_ACT, CHECK_READ, rows * columns, 1);
    const CheckArray *dots = case_written(checker, "dots", CHECK_WIDE, rows);
    FOR_EACH_SIDE(side) {
        RowDots call = {.rows = rows,
                        .columns = columns,
                        .a = a->at[side],
                        .b = b->at[side],
                        .dots = dots->at[side]};
        table_of(checker, side)
            ->row_dots(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

static void check_gather(Checker *checker, int64_t rows, int64_t columns, int32_t num_sources,
                         bool wide) {
    const CheckFormat format = wide ? CHECK_WIDE : CHECK_ACT;
    case_begin(checker, "gather_rows", "%lld x %lld of %d%s", (long long)rows, (long long)columns,
               num_sources, wide ? ", wide" : "");
    const CheckArray *x = case_random(checker, "x", format, CHECK_READ, num_sources * columns, 1);
    const CheckArray *index =
        case_ints(checker, "index", rows, draw_ints(checker, rows, -2, num_sources));
    const CheckArray *y = case_written(checker, "y", format, rows * columns);
    FOR_EACH_SIDE(side) {
        GatherRows call = {.rows = rows,
                           .columns = columns,
                           .wide = wide,
                           .x = x->at[side],
                           .index = index->at[side],
                           .y = y->at[side]};
        table_of(checker, side)
            ->gather_rows(checker->sides[side], &call, checker->sides[side]->stream);
    }
    case_end(checker);
}

// Each slot has a row of its own, in a drawn order; some slots are empty.
static const CheckArray *slots_make(Checker *checker, int64_t slots) {
    int32_t *index = ARENA_ARRAY(&checker->arena, slots, int32_t);
    for (int32_t i = 0; i < slots; i++) index[i] = i;
    const double *fracs = draw_fracs(checker, slots);
    for (int64_t i = slots - 1; i > 0; i--) {
        int64_t other = (int64_t)(fracs[i] * (double)(i + 1));
        int32_t kept = index[i];
        index[i] = index[other];
        index[other] = kept;
    }
    for (int64_t i = 4; i < slots; i += 7) index[i] = -1;
    return case_ints(checker, "index", slots, index);
}

// Backward: rows of dx of empty slots stay as they are.
static void check_combine(Checker *checker, CombineRows call, bool backward, bool weighted) {
    int64_t slots = call.rows * call.num_chosen;
    case_begin(checker, backward ? "combine_backward" : "combine_forward", "%lld x %lld of %d%s",
               (long long)call.rows, (long long)call.columns, call.num_chosen,
               weighted ? ", weighted" : "");
    const CheckArray *index = slots_make(checker, slots);
    const CheckArray *x = case_random(checker, "x", CHECK_ACT, CHECK_READ, slots * call.columns, 1);
    const CheckArray *weights = case_random(checker, "weights", CHECK_WIDE, CHECK_READ, slots, 1);
    const CheckArray *y =
        backward ? case_random(checker, "dy", CHECK_ACT, CHECK_READ, call.rows * call.columns, 1)
                 : case_written(checker, "y", CHECK_ACT, call.rows * call.columns);
    const CheckArray *dx = case_written(checker, "dx", CHECK_ACT, slots * call.columns);
    const CheckArray *dweights = case_written(checker, "dweights", CHECK_WIDE, slots);
    FOR_EACH_SIDE(side) {
        const BackendTable *table = table_of(checker, side);
        call.x = x->at[side];
        call.index = index->at[side];
        call.weights = weighted ? weights->at[side] : NULL;
        call.y = backward ? NULL : y->at[side];
        call.dy = backward ? y->at[side] : NULL;
        call.dx = backward ? dx->at[side] : NULL;
        call.dweights = backward && weighted ? dweights->at[side] : NULL;
        (backward ? table->combine_backward : table->combine_forward)(checker->sides[side], &call,
                                                                      checker->sides[side]->stream);
    }
    case_end(checker);
}

void check_routing(Checker *checker) {
    static const Router ROUTERS[] = {
        {.rows = 333, .num_experts = 8, .num_chosen = 2},
        {.rows = 37, .num_experts = 64, .num_chosen = 6},
        {.rows = 65, .num_experts = 33, .num_chosen = 1},
        {.rows = 17, .num_experts = 256, .num_chosen = 8},
        {.rows = 5, .num_experts = 4, .num_chosen = 4},
    };
    for (size_t i = 0; i < sizeof ROUTERS / sizeof *ROUTERS; i++) {
        for (int variant = 0; variant < 4; variant++) {
            Router call = ROUTERS[i];
            call.normalised = variant & 1;
            check_router_forward(checker, call, variant & 2);
            check_router_backward(checker, call, variant & 2);
            call.chosen_given = true;
            if (variant & 2) check_router_forward(checker, call, true);
        }
    }
    check_dots(checker, 130, 1600);
    check_dots(checker, 7, 33);
    check_gather(checker, 130, 1600, 37, false);
    check_gather(checker, 7, 33, 100, false);
    check_gather(checker, 130, 1, 200, true);
    for (int variant = 0; variant < 4; variant++) {
        bool backward = variant & 1, weighted = variant & 2;
        check_combine(checker, (CombineRows){.rows = 37, .columns = 1600, .num_chosen = 2},
                      backward, weighted);
        check_combine(checker, (CombineRows){.rows = 65, .columns = 33, .num_chosen = 6}, backward,
                      weighted);
        check_combine(checker, (CombineRows){.rows = 130, .columns = 768, .num_chosen = 1},
                      backward, weighted);
    }
}
