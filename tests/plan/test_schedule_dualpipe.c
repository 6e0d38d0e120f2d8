// DualPipe over a grid of shapes: complete, legal, with the memory and the bubble of its source,
// where a forward and each part of a backward take 1 second and messages none.
#include "plan/plan_orders.h"

#include "plan/plan.h"

#include <CUnit/CUnit.h>

enum { MAX_PP = 32 };

static const int WORK_S[NUM_WORK_KINDS] = {1, 2, 1, 1};

typedef struct {
    const Schedule *schedule;
    ScheduleShape shape;
    Plan plan;
    const RankOrder *orders;  // [pp]
    int *end[NUM_WORK_KINDS]; // [num_chunks x num_microbatches], 0 before
} Case;

static void for_all_shapes(void (*check)(Case *c)) {
    static const int RANKS[] = {2, 4, 6, 8, 10, 16, MAX_PP};
    Arena arena = {0};
    for (size_t p = 0; p < sizeof RANKS / sizeof *RANKS; p++)
        for (int more = 0; more <= 20; more += 2) {
            const int pp = RANKS[p], m = 2 * pp + more;
            Case c = {.schedule = schedule_find(SCHEDULE_DUALPIPE),
                      .shape = schedule_shape(pp, 2, m)};
            c.plan = (Plan){.schedule = SCHEDULE_DUALPIPE, .pp = pp, .vpp = 2};
            c.orders = schedule_orders(c.schedule, &c.shape, &arena);
            for (int k = 0; k < NUM_WORK_KINDS; k++)
                c.end[k] = ARENA_ARRAY(&arena, 2 * pp * m, int);
            check(&c);
            arena_reset(&arena);
        }
    arena_free(&arena);
}

static int cell_of(const Case *c, int chunk, int microbatch) {
    return chunk * c->shape.num_microbatches + microbatch;
}

// Each chunk runs its half of the micro-batches in their order, forward and backward, the latter
// whole or its input part before its weight part.
static void check_complete(Case *c) {
    const int half = c->shape.num_microbatches / 2;
    for (int r = 0; r < c->shape.pp; r++) {
        int num[NUM_WORK_KINDS] = {0};
        for (int i = 0; i < c->orders[r].num_items; i++) {
            const WorkItem *item = &c->orders[r].items[i];
            CU_ASSERT_EQUAL_FATAL(plan_chunk_rank(&c->plan, item->chunk), r);
            CU_ASSERT_EQUAL_FATAL(item->microbatch / half, item->chunk / c->shape.pp);
            const int cell = cell_of(c, item->chunk, item->microbatch);
            CU_ASSERT_EQUAL(c->end[item->kind][cell]++, 0);
            if (item->kind == WORK_BACKWARD_WEIGHT)
                CU_ASSERT_EQUAL(c->end[WORK_BACKWARD_INPUT][cell], 1);
            CU_ASSERT(!c->end[WORK_BACKWARD][cell] || !c->end[WORK_BACKWARD_INPUT][cell]);
            num[item->kind]++;
        }
        CU_ASSERT_EQUAL(num[WORK_FORWARD], 2 * half);
        CU_ASSERT_EQUAL(num[WORK_BACKWARD] + num[WORK_BACKWARD_INPUT], 2 * half);
        CU_ASSERT_EQUAL(num[WORK_BACKWARD_WEIGHT], num[WORK_BACKWARD_INPUT]);
    }
}

static void orders_are_complete(void) {
    for_all_shapes(check_complete);
}

static int backward_end(const Case *c, int chunk, int microbatch) {
    const int cell = cell_of(c, chunk, microbatch), whole = c->end[WORK_BACKWARD][cell];
    return whole ? whole : c->end[WORK_BACKWARD_INPUT][cell];
}

// When the inputs of an item are there; 0 where they are not, and 1 at the start.
static int inputs_end(const Case *c, const WorkItem *item) {
    const int stage = item->chunk % c->shape.pp, m = item->microbatch;
    const int forward_end = c->end[WORK_FORWARD][cell_of(c, item->chunk, m)];
    switch (item->kind) {
    case WORK_FORWARD:
        return stage == 0 ? 1 : c->end[WORK_FORWARD][cell_of(c, item->chunk - 1, m)];
    case WORK_BACKWARD_WEIGHT:
        return backward_end(c, item->chunk, m);
    default:
        if (stage == c->shape.pp - 1 || forward_end == 0) return forward_end;
        return backward_end(c, item->chunk + 1, m);
    }
}

// Runs the next item of a rank, with the one that goes beside it. False where an input is missing.
static bool rank_step(Case *c, const RankOrder *order, int *next, int *free_at) {
    const WorkItem *item = &order->items[*next];
    const int num = *next + 1 < order->num_items && item[1].joined == JOINED_OVERLAP ? 2 : 1;
    int at = *free_at;
    for (int i = 0; i < num; i++) {
        const int ready = inputs_end(c, &item[i]);
        if (ready == 0) return false;
        if (ready > at) at = ready;
    }
    for (int i = 0; i < num; i++) at += WORK_S[item[i].kind];
    for (int i = 0; i < num; i++)
        c->end[item[i].kind][cell_of(c, item[i].chunk, item[i].microbatch)] = at;
    *free_at = at;
    *next += num;
    return true;
}

// Runs all ranks; times are one more than seconds. Returns the seconds of all, -1 in a circle.
static int run(Case *c) {
    int next[MAX_PP] = {0}, free_at[MAX_PP], last = 1, num_done = 0;
    for (int r = 0; r < c->shape.pp; r++) free_at[r] = 1;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->shape.pp; r++)
            while (next[r] < c->orders[r].num_items &&
                   rank_step(c, &c->orders[r], &next[r], &free_at[r]))
                moved = true;
    }
    for (int r = 0; r < c->shape.pp; r++) {
        num_done += next[r] == c->orders[r].num_items;
        if (free_at[r] > last) last = free_at[r];
    }
    return num_done == c->shape.pp ? last - 1 : -1;
}

// DeepSeek-V3, table 2: (PP/2 - 1)(F&B + B - 3W) with F = W = 1, B = 2, F&B = 3 is pp - 2.
static void check_bubble(Case *c) {
    const int busy = 3 * c->shape.num_microbatches;
    CU_ASSERT_EQUAL(run(c) - busy, c->shape.pp - 2);
    CU_ASSERT_DOUBLE_EQUAL(c->schedule->bubble_frac(&c->shape) * busy, c->shape.pp - 2, 1e-9);
}

static void bubble_is_that_of_table_2(void) {
    for_all_shapes(check_bubble);
}

// A rank holds a chunk's input from its forward to the last part of its backward: of PP + 1
// micro-batches, on every rank.
static void check_in_flight(Case *c) {
    for (int r = 0; r < c->shape.pp; r++) {
        int held = 0, most = 0;
        for (int i = 0; i < c->orders[r].num_items; i++) {
            const int kind = c->orders[r].items[i].kind;
            held += kind == WORK_FORWARD ? 1 : kind == WORK_BACKWARD_INPUT ? 0 : -1;
            if (held > most) most = held;
        }
        CU_ASSERT_EQUAL(held, 0);
        CU_ASSERT_EQUAL(most, c->shape.pp + 1);
        CU_ASSERT_EQUAL(most, c->schedule->in_flight(&c->shape, r));
    }
}

static void in_flight_is_that_of_table_2(void) {
    for_all_shapes(check_in_flight);
}

// DeepSeek-V3, figure 5, device 0 of 8 with 20 micro-batches: seven forwards of its own direction,
// then one of the other, whose three first backwards come with their weight parts; the last five
// backwards are split. "&" marks what runs beside the item before it.
static void first_rank_is_that_of_figure_5(void) {
    static const char *const EXPECTED =
        "F0.0 F0.1 F0.2 F0.3 F0.4 F0.5 F0.6 F15.10 "
        "I15.10 W15.10 F15.11 I15.11 W15.11 F15.12 I15.12 W15.12 F15.13 "
        "F0.7 &B15.13 F15.14 &B0.0 F0.8 &B15.14 F15.15 &B0.1 F0.9 &B15.15 F15.16 &B0.2 "
        "B15.16 F15.17 &B0.3 B15.17 F15.18 &B0.4 B15.18 F15.19 &B0.5 "
        "B15.19 I0.6 W0.6 I0.7 W0.7 I0.8 W0.8 I0.9 W0.9";
    Arena arena = {0};
    const ScheduleShape shape = schedule_shape(8, 2, 20);
    const RankOrder order = schedule_orders(schedule_find(SCHEDULE_DUALPIPE), &shape, &arena)[0];
    const char *text = "";
    for (int i = 0; i < order.num_items; i++)
        text = arena_printf(&arena, "%s%s%s%c%d.%d", text, i ? " " : "",
                            order.items[i].joined == JOINED_OVERLAP ? "&" : "",
                            "FBIW"[order.items[i].kind], order.items[i].chunk,
                            order.items[i].microbatch);
    CU_ASSERT_STRING_EQUAL(text, EXPECTED);
    arena_free(&arena);
}

// Ranks r and pp - 1 - r hold the same stages: both copies of each.
static void stages_lie_on_two_ranks(void) {
    const Plan plan = {.schedule = SCHEDULE_DUALPIPE, .pp = 4, .vpp = 2, .num_microbatches = 10};
    static const int RANKS[] = {0, 1, 2, 3, 3, 2, 1, 0};
    for (int chunk = 0; chunk < 8; chunk++)
        CU_ASSERT_EQUAL(plan_chunk_rank(&plan, chunk), RANKS[chunk]);
    CU_ASSERT_EQUAL(plan_rank_chunk(&plan, 1, 1), 6);
    CU_ASSERT_EQUAL(plan_num_stages(&plan), 4);
    CU_ASSERT_EQUAL(plan_chunk_microbatches(&plan), 5);
}

CU_TestInfo schedule_dualpipe_tests[] = {
    {"orders_are_complete", orders_are_complete},
    {"bubble_is_that_of_table_2", bubble_is_that_of_table_2},
    {"in_flight_is_that_of_table_2", in_flight_is_that_of_table_2},
    {"first_rank_is_that_of_figure_5", first_rank_is_that_of_figure_5},
    {"stages_lie_on_two_ranks", stages_lie_on_two_ranks},
    CU_TEST_INFO_NULL,
};
