// Passes over a spread vocabulary between the work of a schedule.
#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

static const ScheduleKind KINDS[] = {
    SCHEDULE_GPIPE, SCHEDULE_1F1B,   SCHEDULE_ZB_H1, SCHEDULE_ZB_H2,
    SCHEDULE_ZB_V,  SCHEDULE_V_HALF, SCHEDULE_V_MIN, SCHEDULE_BREADTH_FIRST,
};
enum { NUM_KINDS = sizeof KINDS / sizeof *KINDS };

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
    for (int i = 0; i < NUM_KINDS * 5 * 12 * 2 * 3; i++) {
        const ScheduleKind kind = KINDS[i % NUM_KINDS];
        const int pp = 2 + i / NUM_KINDS % 5, m = 1 + i / NUM_KINDS / 5 % 12;
        const int barriers = 1 + i / NUM_KINDS / 60 % 2, size = i / NUM_KINDS / 120;
        const int vpp = schedule_takes(kind, pp, 1, m) && kind != SCHEDULE_BREADTH_FIRST ? 1 : 2;
        const ScheduleShape shape = shape_of(pp, vpp, m, barriers, size);
        Arena arena = {0};
        check(schedule_find(kind), &shape, schedule_orders(schedule_find(kind), &shape, &arena),
              &arena);
        arena_free(&arena);
    }
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
    const bool split = schedule->splits_backward;
    for (int r = 0; r < shape->pp; r++) {
        int held = 0, most = 0, num = 0;
        for (int i = 0; i < orders[r].num_items; i++) {
            const WorkItem *item = &orders[r].items[i];
            if (is_pass(shape, item)) continue;
            num++;
            if (item->kind != WORK_BACKWARD_INPUT) held += item->kind == WORK_FORWARD ? 1 : -1;
            if (held > most) most = held;
        }
        CU_ASSERT_EQUAL(num, (split ? 3 : 2) * shape->vpp * shape->num_microbatches);
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
static void a_barrier_costs_one_micro_batch(void) {
    for (int barriers = 0; barriers <= 2; barriers++) {
        const ScheduleShape one = shape_of(4, 1, 16, barriers, 1),
                            two = shape_of(4, 2, 16, barriers, 1);
        for (int r = 0; r < 4; r++)
            CU_ASSERT_EQUAL(schedule_find(SCHEDULE_1F1B)->in_flight(&one, r), 4 - r + barriers);
        CU_ASSERT_EQUAL(schedule_find(SCHEDULE_ZB_H1)->in_flight(&one, 0), 4 + barriers);
        CU_ASSERT_EQUAL(schedule_find(SCHEDULE_V_HALF)->in_flight(&two, 0), 2 * (3 + barriers));
    }
}

// What a rank of 2 does with 3 micro-batches: "F0.1" as ever, "L" lookup, "S", "T", "R" gradient of
// the rows.
static void assert_order(int barriers, int rank, const char *expected) {
    Arena arena = {0};
    const ScheduleShape shape = shape_of(2, 1, 3, barriers, 1);
    const RankOrder order = schedule_orders(schedule_find(SCHEDULE_1F1B), &shape, &arena)[rank];
    const char *text = "";
    for (int i = 0; i < order.num_items; i++) {
        const WorkItem *item = &order.items[i];
        const char *space = i ? " " : "";
        if (item->chunk == 3 && item->kind == WORK_BACKWARD_INPUT) continue; // S, second part
        if (is_pass(&shape, item))
            text = arena_printf(&arena, "%s%s%c%d", text, space,
                                item->chunk == 2 ? "LR"[item->kind != WORK_FORWARD]
                                                 : "ST"[item->kind != WORK_FORWARD],
                                item -> microbatch);
        else
            text = arena_printf(&arena, "%s%s%c%d.%d", text, space, "FB"[item->kind], item -> chunk,
                                item -> microbatch);
    }
    CU_ASSERT_STRING_EQUAL(text, expected);
    arena_free(&arena);
}

// S of one barrier takes 12 units, T 6, lookups and rows 1, a message 1. Forwards of rank 0 are at
// 2, 19 and 35, that of rank 1 at 19: S0 is there at 36, when rank 1 is idle, and rank 0 has it
// at 51. F1.1 is done at 64: then T0 and S1 are there for rank 0, which waits for B1.0 (64 to 96),
// and behind it for rank 1. B0.0 is from 97 to 129, F1.2 done at 130; T1 and S2 follow on rank 0,
// on rank 1 behind B1.1 (130 to 162). T2 needs S2 of rank 1, which ends at 180: it is before B1.2
// there, and behind B0.1 (163 to 195) on rank 0, before R0.
static void one_barrier_on_two_ranks(void) {
    assert_order(1, 0, "L0 L1 F0.0 L2 F0.1 F0.2 S0 T0 S1 B0.0 T1 S2 B0.1 T2 R0 B0.2 R1 R2");
    assert_order(1, 1, "L0 L1 L2 F1.0 S0 F1.1 B1.0 T0 S1 F1.2 B1.1 T1 S2 T2 B1.2 R0 R1 R2");
}

// S of two barriers takes 6 units, T 12. Rank 1 has S0 at 36, F1.1 from 42 to 58; rank 0 S0 at 51,
// so that T0 is there at 58, before F1.1's S1 at 59. B1.0 needs T0 of rank 1, which is done at 70:
// it comes in its turn, behind F1.2 (76 to 92) and T1 and S2, of which S2 is there at 93.
static void two_barriers_on_two_ranks(void) {
    assert_order(2, 0, "L0 L1 F0.0 L2 F0.1 F0.2 S0 T0 S1 T1 S2 T2 B0.0 B0.1 B0.2 R0 R1 R2");
    assert_order(2, 1, "L0 L1 L2 F1.0 S0 F1.1 T0 S1 F1.2 T1 S2 B1.0 T2 B1.1 B1.2 R0 R1 R2");
}

CU_TestInfo schedule_vocab_tests[] = {
    {"every_rank_has_every_pass_once", every_rank_has_every_pass_once},
    {"passes_of_all_ranks_stand_in_one_order", passes_of_all_ranks_stand_in_one_order},
    {"no_more_is_in_flight_than_said", no_more_is_in_flight_than_said},
    {"a_barrier_costs_one_micro_batch", a_barrier_costs_one_micro_batch},
    {"one_barrier_on_two_ranks", one_barrier_on_two_ranks},
    {"two_barriers_on_two_ranks", two_barriers_on_two_ranks},
    CU_TEST_INFO_NULL,
};
