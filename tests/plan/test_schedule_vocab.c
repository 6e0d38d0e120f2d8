// Passes over a spread vocabulary between the work of a schedule.
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

// Forward 16 units, backward 32; of a small vocabulary, a larger one, one that outweighs the
// layers.
static ScheduleShape shape_of(int pp, int vpp, int num_microbatches, int barriers, int size) {
    static const int S[] = {1, 6, 40};
    ScheduleShape shape = schedule_shape(pp, vpp, num_microbatches);
    shape.vocab = (VocabPasses){.barriers = barriers, .chunk_units = {16, 32, 16, 16}};
    for (int kind = 0; kind < NUM_WORK_KINDS; kind++) {
        shape.vocab.pass_units[VOCAB_INPUT][kind] = 1;
        shape.vocab.pass_units[VOCAB_OUTPUT][kind] = S[size] * (kind == WORK_BACKWARD ? 2 : 1);
    }
    return shape;
}

static void for_all_shapes(void (*check)(const Schedule *schedule, const ScheduleShape *shape,
                                         const RankOrder *orders, Arena *arena)) {
    int num_shapes[NUM_SCHEDULES] = {0};
    for (int i = 0; i < NUM_SCHEDULES * 3 * 5 * 12 * 2 * 3; i++) {
        const ScheduleKind kind = (ScheduleKind)(i % NUM_SCHEDULES);
        const int k = i / NUM_SCHEDULES, vpp = 1 + k % 3, pp = 2 + k / 3 % 5, m = 1 + k / 15 % 12;
        if (!schedule_takes(kind, pp, vpp, m)) continue;
        const ScheduleShape shape = shape_of(pp, vpp, m, 1 + k / 180 % 2, k / 360);
        Arena arena = {0};
        check(schedule_find(kind), &shape, schedule_orders(schedule_find(kind), &shape, &arena),
              &arena);
        arena_free(&arena);
        num_shapes[kind]++;
    }
    for (int kind = 0; kind < NUM_SCHEDULES; kind++)
        CU_ASSERT(!schedule_find((ScheduleKind)kind) || num_shapes[kind] >= 50);
}

static bool is_pass(const ScheduleShape *shape, const WorkItem *item) {
    return item->chunk >= shape->pp * shape->vpp;
}

static int count_kind(const ScheduleShape *shape, const RankOrder *order, int vocab_chunk,
                      WorkKind kind) {
    int num = 0;
    for (int i = 0; i < order->num_items; i++)
        num += order->items[i].chunk == shape->pp * shape->vpp + vocab_chunk &&
               order->items[i].kind == kind;
    return num;
}

static void check_complete(const Schedule *schedule, const ScheduleShape *shape,
                           const RankOrder *orders, Arena *arena) {
    (void)schedule, (void)arena;
    const int n = shape->num_microbatches, one = shape->vocab.barriers == 1 ? n : 0;
    for (int r = 0; r < shape->pp; r++) {
        CU_ASSERT_EQUAL(count_kind(shape, &orders[r], VOCAB_INPUT, WORK_FORWARD), n);
        CU_ASSERT_EQUAL(count_kind(shape, &orders[r], VOCAB_INPUT, WORK_BACKWARD), n);
        CU_ASSERT_EQUAL(count_kind(shape, &orders[r], VOCAB_OUTPUT, WORK_FORWARD), n);
        CU_ASSERT_EQUAL(count_kind(shape, &orders[r], VOCAB_OUTPUT, WORK_BACKWARD_INPUT), one);
        CU_ASSERT_EQUAL(count_kind(shape, &orders[r], VOCAB_OUTPUT, WORK_BACKWARD_WEIGHT), one);
        CU_ASSERT_EQUAL(count_kind(shape, &orders[r], VOCAB_OUTPUT, WORK_BACKWARD), n - one);
    }
}

static void every_rank_has_every_pass_once(void) {
    for_all_shapes(check_complete);
}

// Their collectives meet in the order in which the passes stand.
static void check_one_order(const Schedule *schedule, const ScheduleShape *shape,
                            const RankOrder *orders, Arena *arena) {
    (void)schedule, (void)arena;
    for (int r = 1; r < shape->pp; r++) {
        int first = 0;
        for (int i = 0; i < orders[r].num_items; i++) {
            const WorkItem *item = &orders[r].items[i];
            if (!is_pass(shape, item)) continue;
            while (!is_pass(shape, &orders[0].items[first])) first++;
            const WorkItem *other = &orders[0].items[first++];
            CU_ASSERT_FATAL(item->chunk == other->chunk && item->kind == other->kind &&
                            item->microbatch == other->microbatch);
        }
    }
}

static void passes_of_all_ranks_stand_in_one_order(void) {
    for_all_shapes(check_one_order);
}

// The chunks' work as the schedule alone has it, with as many micro-batches more in flight.
static void check_base(const Schedule *schedule, const ScheduleShape *shape,
                       const RankOrder *orders, Arena *arena) {
    (void)arena;
    for (int r = 0; r < shape->pp; r++) {
        int held = 0, most = 0, num = 0;
        for (int i = 0; i < orders[r].num_items; i++) {
            const WorkItem *item = &orders[r].items[i];
            if (is_pass(shape, item)) continue;
            num++;
            if (item->kind != WORK_BACKWARD_INPUT) held += item->kind == WORK_FORWARD ? 1 : -1;
            if (held > most) most = held;
        }
        CU_ASSERT_EQUAL(num, schedule->num_items(shape, r));
        CU_ASSERT_EQUAL(held, 0);
        CU_ASSERT(most <= schedule->in_flight(shape, r));
        if (!plan_is_v(&(Plan){.schedule = schedule->kind, .pp = shape->pp}))
            CU_ASSERT_EQUAL(most, schedule->in_flight(shape, r));
    }
}

static void no_more_is_in_flight_than_said(void) {
    for_all_shapes(check_base);
}

// Yeung et al. 2024, section 6: p + 1 micro-batches with algorithm 2 (one barrier), p + 2 with
// algorithm 1 (two), of p = 4 and many micro-batches; and V-half as many more than its (p + 2) / 2.
// DualPipe as many more than its p + 1; interleaved one forward of a chunk more for each.
static void a_barrier_costs_one_micro_batch(void) {
    for (int barriers = 0; barriers <= 2; barriers++) {
        const ScheduleShape one = shape_of(4, 1, 16, barriers, 1),
                            two = shape_of(4, 2, 16, barriers, 1);
        for (int r = 0; r < 4; r++) {
            CU_ASSERT_EQUAL(schedule_find(SCHEDULE_1F1B)->in_flight(&one, r), 4 - r + barriers);
            CU_ASSERT_EQUAL(schedule_find(SCHEDULE_INTERLEAVED)->in_flight(&two, r),
                            2 * (4 - r - 1) + 4 + 1 + barriers);
            CU_ASSERT_EQUAL(schedule_find(SCHEDULE_DUALPIPE)->in_flight(&two, r), 5 + barriers);
        }
        CU_ASSERT_EQUAL(schedule_find(SCHEDULE_ZB_H1)->in_flight(&one, 0), 4 + barriers);
        CU_ASSERT_EQUAL(schedule_find(SCHEDULE_V_HALF)->in_flight(&two, 0), 2 * (3 + barriers));
    }
}

// "F0.1" as ever, "&" beside the item before it, "L" lookup, "S", "T", "R" gradient of the rows.
static void assert_text(const ScheduleShape *shape, const RankOrder *order, const char *expected) {
    Arena arena = {0};
    const int input = shape->pp * shape->vpp + VOCAB_INPUT, output = input + 1;
    const char *text = "";
    for (int i = 0; i < order->num_items; i++) {
        const WorkItem *item = &order->items[i];
        const char *joint[] = {"", "+", "&"}, *space = i ? " " : "";
        if (item->chunk == output && item->kind == WORK_BACKWARD_INPUT) continue; // of S
        if (is_pass(shape, item))
            text = arena_printf(&arena, "%s%s%c%d", text, space,
                                (item->chunk == input ? "LR" : "ST")[item->kind != WORK_FORWARD],
                                item->microbatch);
        else
            text = arena_printf(&arena, "%s%s%s%c%d.%d", text, space, joint[item->joined],
                                "FBIW"[item->kind], item -> chunk, item -> microbatch);
    }
    CU_ASSERT_STRING_EQUAL(text, expected);
    arena_free(&arena);
}

static void assert_order(ScheduleKind kind, ScheduleShape shape, int rank, const char *expected) {
    Arena arena = {0};
    assert_text(&shape, &schedule_orders(schedule_find(kind), &shape, &arena)[rank], expected);
    arena_free(&arena);
}

static void assert_chunk_order(ScheduleKind kind, ScheduleShape shape, int rank,
                               const char *expected) {
    Arena arena = {0};
    const Plan plan = {.schedule = kind, .pp = shape.pp, .vpp = shape.vpp};
    assert_text(&shape, &plan_chunk_orders(&plan, &shape, &arena)[rank], expected);
    arena_free(&arena);
}

// S of one barrier takes 12 units, T 6, lookups and rows 1, a message 1. Forwards of rank 0 are at
// 2, 19 and 35, that of rank 1 at 19: S0 is there at 36, when rank 1 is idle, and rank 0 has it
// at 51. F1.1 is done at 64: then T0 and S1 are there for rank 0, which waits for B1.0 (64 to 96),
// and behind it for rank 1. B0.0 is from 97 to 129, F1.2 done at 130; T1 and S2 follow on rank 0,
// on rank 1 behind B1.1 (130 to 162). T2 needs S2 of rank 1, which ends at 180: it is before B1.2
// there, and behind B0.1 (163 to 195) on rank 0, before R0.
static void one_barrier_on_two_ranks(void) {
    assert_order(SCHEDULE_1F1B, shape_of(2, 1, 3, 1, 1), 0,
                 "L0 L1 F0.0 L2 F0.1 F0.2 S0 T0 S1 B0.0 T1 S2 B0.1 T2 R0 B0.2 R1 R2");
    assert_order(SCHEDULE_1F1B, shape_of(2, 1, 3, 1, 1), 1,
                 "L0 L1 L2 F1.0 S0 F1.1 B1.0 T0 S1 F1.2 B1.1 T1 S2 T2 B1.2 R0 R1 R2");
}

// S of two barriers takes 6 units, T 12. Rank 1 has S0 at 36, F1.1 from 42 to 58; rank 0 S0 at 51,
// so that T0 is there at 58, before F1.1's S1 at 59. B1.0 needs T0 of rank 1, which is done at 70:
// it comes in its turn, behind F1.2 (76 to 92) and T1 and S2, of which S2 is there at 93.
static void two_barriers_on_two_ranks(void) {
    assert_order(SCHEDULE_1F1B, shape_of(2, 1, 3, 2, 1), 0,
                 "L0 L1 F0.0 L2 F0.1 F0.2 S0 T0 S1 T1 S2 T2 B0.0 B0.1 B0.2 R0 R1 R2");
    assert_order(SCHEDULE_1F1B, shape_of(2, 1, 3, 2, 1), 1,
                 "L0 L1 L2 F1.0 S0 F1.1 T0 S1 F1.2 T1 S2 B1.0 T2 B1.1 B1.2 R0 R1 R2");
}

// Half of 4 micro-batches enter at each of two ranks, which do the same at the same time: what is
// said of rank 0 holds for rank 1 with chunk 2 for 0 and 1 for 3. Lookups until 4, F0.0 until 20,
// F3.2 from 21 to 37, when F1.0 ends: S0 and S2 are there at 38, and run when F0.1 is done, from 53
// to 77. F3.3 (until 93) is the forward that comes before B3.2 for the barrier's sake. F1.1 ends
// with it: at 125 there are S1 and S3, each behind the T of its direction, and then the last T.
// B0.0 and B3.3 run from 173 to 237, I0.1 from 238 and W0.1 until 270, when all rows are there.
static void dualpipe_on_two_ranks(void) {
    const ScheduleShape shape = shape_of(2, 2, 4, 1, 1);
    assert_order(SCHEDULE_DUALPIPE, shape, 0,
                 "L0 L2 L1 L3 F0.0 F3.2 F0.1 S0 S2 F3.3 B3.2 T0 S1 T2 S3 T1 T3 B0.0 B3.3 I0.1 W0.1 "
                 "R0 R2 R1 R3");
    assert_order(SCHEDULE_DUALPIPE, shape, 1,
                 "L0 L2 L1 L3 F2.2 F1.0 F2.3 S0 S2 F1.1 B1.0 T0 S1 T2 S3 T1 T3 B2.2 B1.1 I2.3 W2.3 "
                 "R0 R2 R1 R3");
}

// The order of figure 5 (tests/workload/test_schedule_dualpipe.c), each backward behind the forward
// that comes after its own there; the last are beside none.
static void dualpipe_puts_backwards_one_forward_later(void) {
    assert_chunk_order(SCHEDULE_DUALPIPE, shape_of(8, 2, 20, 1, 1), 0,
                       "F0.0 F0.1 F0.2 F0.3 F0.4 F0.5 F0.6 F15.10 "
                       "F15.11 I15.10 W15.10 F15.12 I15.11 W15.11 F15.13 I15.12 W15.12 F0.7 "
                       "F15.14 &B15.13 F0.8 &B0.0 F15.15 &B15.14 F0.9 &B0.1 F15.16 &B15.15 "
                       "F15.17 &B0.2 B15.16 F15.18 &B0.3 B15.17 F15.19 &B0.4 B15.18 B0.5 "
                       "B15.19 I0.6 W0.6 I0.7 W0.7 I0.8 W0.8 I0.9 W0.9");
}

// Megatron's order (tests/workload/test_schedule.c) has +B3.0 beside F3.0.
static void interleaved_puts_backwards_one_forward_later(void) {
    assert_chunk_order(SCHEDULE_INTERLEAVED, shape_of(2, 2, 4, 1, 1), 1,
                       "F1.0 F1.1 F3.0 F3.1 +B3.0 F1.2 +B3.1 F1.3 +B1.0 F3.2 +B1.1 F3.3 +B3.2 "
                       "B3.3 B1.2 B1.3");
}

CU_TestInfo schedule_vocab_tests[] = {
    {"every_rank_has_every_pass_once", every_rank_has_every_pass_once},
    {"passes_of_all_ranks_stand_in_one_order", passes_of_all_ranks_stand_in_one_order},
    {"no_more_is_in_flight_than_said", no_more_is_in_flight_than_said},
    {"a_barrier_costs_one_micro_batch", a_barrier_costs_one_micro_batch},
    {"one_barrier_on_two_ranks", one_barrier_on_two_ranks},
    {"two_barriers_on_two_ranks", two_barriers_on_two_ranks},
    {"dualpipe_on_two_ranks", dualpipe_on_two_ranks},
    {"dualpipe_puts_backwards_one_forward_later", dualpipe_puts_backwards_one_forward_later},
    {"interleaved_puts_backwards_one_forward_later", interleaved_puts_backwards_one_forward_later},
    CU_TEST_INFO_NULL,
};
