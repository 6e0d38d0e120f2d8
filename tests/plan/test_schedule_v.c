// The V schedules over a grid of shapes: complete, legal, with the memory and the bubble of their
// source, where a forward and both parts of a backward take 1 second and messages none.
#include "plan/plan_orders.h"

#include "plan/plan.h"

#include <CUnit/CUnit.h>

static const ScheduleKind KINDS[] = {SCHEDULE_ZB_V, SCHEDULE_V_HALF, SCHEDULE_V_MIN};
enum { NUM_KINDS = sizeof KINDS / sizeof *KINDS, NUM_WORKS = 3, MAX_PP = 32 };

typedef struct {
    const Schedule *schedule;
    ScheduleShape shape;
    Plan plan;
    int num_items;           // of each rank
    const RankOrder *orders; // [pp]
    int *end;                // [WorkKind F, B, W][chunk][micro-batch], 0 before
} Case;

static void for_all_shapes(void (*check)(Case *c)) {
    static const int RANKS[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, MAX_PP};
    static const int MICROBATCHES[] = {1, 2, 3, 5, 8, 13, 17, 40};
    Arena arena = {0};
    for (int k = 0; k < NUM_KINDS; k++)
        for (size_t p = 0; p < sizeof RANKS / sizeof *RANKS; p++)
            for (size_t m = 0; m < sizeof MICROBATCHES / sizeof *MICROBATCHES; m++) {
                Case c = {.schedule = schedule_find(KINDS[k]),
                          .shape = schedule_shape(RANKS[p], 2, MICROBATCHES[m]),
                          .plan = {.schedule = KINDS[k], .pp = RANKS[p], .vpp = 2}};
                c.num_items = c.schedule->num_items(&c.shape, 0);
                c.orders = schedule_orders(c.schedule, &c.shape, &arena);
                c.end = ARENA_ARRAY(&arena, NUM_WORKS * 2 * RANKS[p] * MICROBATCHES[m], int);
                check(&c);
                arena_reset(&arena);
            }
    arena_free(&arena);
}

static int work_of(const WorkItem *item) {
    return item->kind == WORK_FORWARD ? 0 : item->kind == WORK_BACKWARD_INPUT ? 1 : 2;
}

static int *end_of(const Case *c, int work, int chunk, int microbatch) {
    const int num_chunks = 2 * c->shape.pp;
    return &c->end[(work * num_chunks + chunk) * c->shape.num_microbatches + microbatch];
}

// When the inputs of an item are there; 0 where they are not, and 1 at the start.
static int inputs_end(const Case *c, const WorkItem *item) {
    const int last = 2 * c->shape.pp - 1, chunk = item->chunk, m = item->microbatch;
    switch (work_of(item)) {
    case 0:
        return chunk == 0 ? 1 : *end_of(c, 0, chunk - 1, m);
    case 1:
        if (*end_of(c, 0, chunk, m) == 0) return 0;
        return chunk == last ? *end_of(c, 0, chunk, m) : *end_of(c, 1, chunk + 1, m);
    default:
        return *end_of(c, 1, chunk, m);
    }
}

// Runs all ranks; times are one more than seconds. Returns the seconds of all, -1 in a circle.
static int run(Case *c) {
    int next[MAX_PP] = {0}, free_at[MAX_PP], last = 1, num_left = c->shape.pp * c->num_items;
    for (int r = 0; r < c->shape.pp; r++) free_at[r] = 1;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->shape.pp; r++)
            for (; next[r] < c->num_items; next[r]++) {
                const WorkItem *item = &c->orders[r].items[next[r]];
                const int ready = inputs_end(c, item);
                if (ready == 0) break;
                free_at[r] = (ready > free_at[r] ? ready : free_at[r]) + 1;
                *end_of(c, work_of(item), item->chunk, item->microbatch) = free_at[r];
                if (free_at[r] > last) last = free_at[r];
                num_left--;
                moved = true;
            }
    }
    return num_left ? -1 : last - 1;
}

static void check_complete(Case *c) {
    for (int r = 0; r < c->shape.pp; r++)
        for (int i = 0; i < c->num_items; i++) {
            const WorkItem *item = &c->orders[r].items[i];
            CU_ASSERT_FATAL(item->kind != WORK_BACKWARD && !item->joined);
            CU_ASSERT_EQUAL_FATAL(plan_chunk_rank(&c->plan, item->chunk), r);
            CU_ASSERT_EQUAL(++*end_of(c, work_of(item), item->chunk, item->microbatch), 1);
        }
    CU_ASSERT_EQUAL(c->num_items, NUM_WORKS * 2 * c->shape.num_microbatches);
}

static void orders_are_complete(void) {
    for_all_shapes(check_complete);
}

// On one rank there is no pipeline.
static void check_bubble(Case *c) {
    const int seconds = run(c), busy = c->num_items;
    CU_ASSERT_FATAL(seconds > 0);
    const int idle = seconds - busy, m = c->shape.num_microbatches;
    const double stated = c->schedule->bubble_frac(&c->shape) * busy;
    const bool exact = c->schedule->kind == SCHEDULE_V_MIN ? m > 1 : m >= c->shape.pp;
    if (exact || c->shape.pp == 1) CU_ASSERT_DOUBLE_EQUAL(idle, stated, 1e-9);
}

static void bubble_is_the_closed_form(void) {
    for_all_shapes(check_bubble);
}

// A rank holds a chunk's input from its forward to the weight part of its backward.
static void check_in_flight(Case *c) {
    int most = 0;
    for (int r = 0; r < c->shape.pp; r++) {
        int held = 0, most_of_rank = 0;
        for (int i = 0; i < c->num_items; i++) {
            const int work = work_of(&c->orders[r].items[i]);
            held += work == 0 ? 1 : work == 2 ? -1 : 0;
            if (held > most_of_rank) most_of_rank = held;
        }
        CU_ASSERT_EQUAL(held, 0);
        CU_ASSERT(most_of_rank <= c->schedule->in_flight(&c->shape, r));
        if (most_of_rank > most) most = most_of_rank;
    }
    if (c->shape.num_microbatches > c->shape.pp || c->schedule->kind == SCHEDULE_ZB_V)
        CU_ASSERT_EQUAL(most, c->schedule->in_flight(&c->shape, 0));
}

static void in_flight_is_the_most_held(void) {
    for_all_shapes(check_in_flight);
}

// Qi et al. 2024, table 1, in micro-batches (two chunks each) at pp 8: 8, 5, 4.
static void memory_is_that_of_the_paper(void) {
    static const int MICROBATCHES_HELD[] = {8, 5, 4};
    const ScheduleShape shape = schedule_shape(8, 2, 64);
    for (int k = 0; k < NUM_KINDS; k++)
        CU_ASSERT_EQUAL(schedule_find(KINDS[k])->in_flight(&shape, 0), 2 * MICROBATCHES_HELD[k]);
}

// Chunks 0 and 3 are on rank 0, 1 and 2 on rank 1.
static void chunks_go_there_and_back(void) {
    const Plan plan = {.schedule = SCHEDULE_V_HALF, .pp = 2, .vpp = 2};
    static const int RANKS[] = {0, 1, 1, 0};
    for (int chunk = 0; chunk < 4; chunk++)
        CU_ASSERT_EQUAL(plan_chunk_rank(&plan, chunk), RANKS[chunk]);
    CU_ASSERT_EQUAL(plan_rank_chunk(&plan, 0, 1), 3);
    CU_ASSERT_EQUAL(plan_rank_chunk(&plan, 1, 1), 2);
    const Plan round = {.schedule = SCHEDULE_INTERLEAVED, .pp = 2, .vpp = 2};
    CU_ASSERT_EQUAL(plan_chunk_rank(&round, 2), 0);
    CU_ASSERT_EQUAL(plan_rank_chunk(&round, 1, 1), 3);
}

CU_TestInfo schedule_v_tests[] = {
    {"orders_are_complete", orders_are_complete},
    {"bubble_is_the_closed_form", bubble_is_the_closed_form},
    {"in_flight_is_the_most_held", in_flight_is_the_most_held},
    {"memory_is_that_of_the_paper", memory_is_that_of_the_paper},
    {"chunks_go_there_and_back", chunks_go_there_and_back},
    CU_TEST_INFO_NULL,
};
