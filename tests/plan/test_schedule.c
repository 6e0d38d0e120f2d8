// Every row of plan/schedule/schedules.c over a grid of shapes: the order is complete and legal,
// holds as many inputs as stated, and idles as long as stated on equal chunks.
#include "plan/plan_orders.h"

#include "tests/workload/pipeline_case.h"

#include <CUnit/CUnit.h>

#include <stdbool.h>
#include <string.h>

enum { NUM_KINDS = NUM_WORK_KINDS, MOST_PP = 16 };

// Seconds of each WorkKind.
static const double WORK_S[NUM_KINDS] = {1, 2, 1, 1};

// All ranks' orders of one shape, and when each work item ends without messages.
typedef struct {
    const Schedule *schedule;
    ScheduleShape shape;
    int num_chunks, num_items;
    WorkItem **items;         // [pp][num_items]
    double *end_s[NUM_KINDS]; // [num_chunks x num_microbatches] by WorkKind; -1 before
} Case;

static Case case_new(ScheduleKind kind, ScheduleShape shape, Arena *arena) {
    Case c = {.schedule = schedule_find(kind), .shape = shape, .num_chunks = shape.pp * shape.vpp};
    c.num_items = c.schedule->num_items(&shape, 0);
    c.items = ARENA_ARRAY(arena, shape.pp, WorkItem *);
    for (int r = 0; r < shape.pp; r++) {
        // One more, which must stay as it is.
        c.items[r] = ARENA_ARRAY(arena, c.num_items + 1, WorkItem);
        c.items[r][c.num_items].microbatch = -7;
        c.schedule->order(&shape, r, c.items[r]);
        CU_ASSERT_EQUAL(c.items[r][c.num_items].microbatch, -7);
    }
    const int num_cells = c.num_chunks * shape.num_microbatches;
    for (int k = 0; k < NUM_KINDS; k++) {
        c.end_s[k] = ARENA_ARRAY(arena, num_cells, double);
        for (int i = 0; i < num_cells; i++) c.end_s[k][i] = -1;
    }
    return c;
}

// Runs `check` for each schedule and each shape that it takes.
static void for_all_shapes(void (*check)(Case *c)) {
    Arena arena = {0};
    for (int kind = 0; kind < NUM_SCHEDULES; kind++)
        for (int pp = 1; pp <= MOST_PP; pp = pp == 8 ? MOST_PP : pp + 1)
            for (int vpp = 1; vpp <= 4; vpp++)
                for (int m = 1; m <= 40; m++) {
                    if (!schedule_takes((ScheduleKind)kind, pp, vpp, m)) continue;
                    // test_schedule_v.c, test_schedule_dualpipe.c
                    if (!schedule_find((ScheduleKind)kind)->order) continue;
                    if (plan_is_dual(&(Plan){.schedule = (ScheduleKind)kind, .pp = pp})) continue;
                    Case c = case_new((ScheduleKind)kind, schedule_shape(pp, vpp, m), &arena);
                    check(&c);
                    arena_reset(&arena);
                }
    arena_free(&arena);
}

// When the inputs of an item are there; -1 where they are not.
static double inputs_s(const Case *c, const WorkItem *item) {
    const int n = c->shape.num_microbatches, cell = item->chunk * n + item->microbatch;
    const double *forward_end_s = c->end_s[WORK_FORWARD];
    const int back = c->schedule->splits_backward ? WORK_BACKWARD_INPUT : WORK_BACKWARD;
    if (item->kind == WORK_FORWARD) return item->chunk == 0 ? 0 : forward_end_s[cell - n];
    if (item->kind == WORK_BACKWARD_WEIGHT) return c->end_s[back][cell];
    if (item->chunk == c->num_chunks - 1 || forward_end_s[cell] < 0) return forward_end_s[cell];
    return c->end_s[back][cell + n];
}

// Runs all ranks by polling. Returns the time of the last end, or -1 where ranks wait for each
// other in a circle; and the longest that a rank idles between its first item and its last.
static double run_s(Case *c, double *inner_idle_s) {
    double last_s = 0, free_s[MOST_PP] = {0}, idle_s[MOST_PP] = {0};
    int next[MOST_PP] = {0}, num_left = c->shape.pp * c->num_items;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < c->shape.pp; r++) {
            while (next[r] < c->num_items) {
                const WorkItem *item = &c->items[r][next[r]];
                double start_s = inputs_s(c, item);
                if (start_s < 0) break;
                if (start_s < free_s[r]) start_s = free_s[r];
                if (next[r] > 0) idle_s[r] += start_s - free_s[r];
                const int cell = item->chunk * c->shape.num_microbatches + item->microbatch;
                free_s[r] = c->end_s[item->kind][cell] = start_s + WORK_S[item->kind];
                if (free_s[r] > last_s) last_s = free_s[r];
                next[r]++, num_left--;
                moved = true;
            }
        }
    }
    *inner_idle_s = 0;
    for (int r = 0; r < c->shape.pp; r++)
        if (idle_s[r] > *inner_idle_s) *inner_idle_s = idle_s[r];
    return num_left ? -1 : last_s;
}

static void check_complete(Case *c) {
    const int n = c->shape.num_microbatches;
    for (int r = 0; r < c->shape.pp; r++) {
        int num[NUM_KINDS] = {0};
        for (int i = 0; i < c->num_items; i++) {
            const WorkItem *item = &c->items[r][i];
            CU_ASSERT_EQUAL_FATAL(item->chunk % c->shape.pp, r);
            CU_ASSERT_FATAL(item->chunk >= 0 && item->chunk < c->num_chunks);
            CU_ASSERT_FATAL(item->microbatch >= 0 && item->microbatch < n);
            // Each chunk takes its micro-batches in order, so that none can come twice.
            double *end = c->end_s[item->kind];
            const int cell = item->chunk * n + item->microbatch;
            CU_ASSERT(end[cell] < 0 && (item->microbatch == 0 || end[cell - 1] >= 0));
            end[cell] = i;
            num[item->kind]++;
            CU_ASSERT(!item->joined || item->kind == WORK_BACKWARD);
        }
        const bool split = c->schedule->splits_backward;
        CU_ASSERT_EQUAL(num[WORK_FORWARD], c->shape.vpp * n);
        CU_ASSERT_EQUAL(num[WORK_BACKWARD], split ? 0 : c->shape.vpp * n);
        CU_ASSERT_EQUAL(num[WORK_BACKWARD_INPUT], split ? c->shape.vpp * n : 0);
        CU_ASSERT_EQUAL(num[WORK_BACKWARD_WEIGHT], split ? c->shape.vpp * n : 0);
    }
}

static void orders_are_complete(void) {
    for_all_shapes(check_complete);
}

static void check_legal(Case *c) {
    double inner_idle_s;
    CU_ASSERT(run_s(c, &inner_idle_s) > 0);
}

static void orders_meet_every_dependency(void) {
    for_all_shapes(check_legal);
}

static void check_in_flight(Case *c) {
    for (int r = 0; r < c->shape.pp; r++) {
        int held = 0, most = 0;
        for (int i = 0; i < c->num_items; i++) {
            const int kind = c->items[r][i].kind;
            if (kind != WORK_BACKWARD_INPUT) held += kind == WORK_FORWARD ? 1 : -1;
            if (held > most) most = held;
        }
        CU_ASSERT_EQUAL(held, 0);
        CU_ASSERT_EQUAL(most, c->schedule->in_flight(&c->shape, r));
    }
}

static void in_flight_is_the_most_held(void) {
    for_all_shapes(check_in_flight);
}

// The most that a rank holds where its k-th chunk keeps KEPT[k] and needs PEAK[k] more meanwhile.
static int peak_of(const Case *c, int rank) {
    static const int KEPT[] = {5, 2, 11, 3}, FORWARD[] = {7, 30, 12, 4}, BACKWARD[] = {1, 9, 2, 40};
    int held = 0, peak = 0;
    for (int i = 0; i < c->num_items; i++) {
        const WorkItem *item = &c->items[rank][i];
        const int k = item->chunk / c->shape.pp;
        const bool forward = item->kind == WORK_FORWARD;
        const int most = held + (forward ? FORWARD[k] : BACKWARD[k]);
        if (most > peak) peak = most;
        held += forward ? KEPT[k] : -KEPT[k];
    }
    return peak;
}

static void check_first_holds_most(Case *c) {
    if (!c->schedule->first_holds_most) return;
    CU_ASSERT(!c->schedule->splits_backward && !c->schedule->mixes_backwards);
    for (int r = 1; r < c->shape.pp; r++) CU_ASSERT(peak_of(c, r) <= peak_of(c, r - 1));
}

static void ranks_hold_no_more_than_those_before(void) {
    for_all_shapes(check_first_holds_most);
}

// Whether an item is the first forward or the last backward of its chunk.
static bool is_at_an_end(const Case *c, const WorkItem *item) {
    return item->microbatch == (item->kind == WORK_FORWARD ? 0 : c->shape.num_microbatches - 1);
}

static void check_steady(Case *c) {
    if (!c->schedule->steady) return;
    Arena arena = {0};
    for (int r = 0; r < c->shape.pp; r++) {
        const SteadyOrder steady = c->schedule->steady(&c->shape, r);
        CU_ASSERT_EQUAL(steady.num_periods, c->schedule->steady(&c->shape, 0).num_periods);
        if (steady.num_periods == 0) continue;
        ScheduleShape more = c->shape;
        more.num_microbatches += steady.num_microbatches;
        CU_ASSERT_EQUAL(c->schedule->steady(&more, r).num_periods, steady.num_periods + 1);
        CU_ASSERT_EQUAL(c->schedule->steady(&more, r).first, steady.first);
        CU_ASSERT_EQUAL(c->schedule->num_items(&more, r), c->num_items + steady.num_items);
        WorkItem *longer = ARENA_ARRAY(&arena, c->num_items + steady.num_items, WorkItem);
        c->schedule->order(&more, r, longer);
        int num_unlike = 0;
        for (int i = 0; i < c->num_items; i++) {
            WorkItem item = c->items[r][i];
            const int place = i - steady.first;
            const bool inside = place >= 0 && place < steady.num_periods * steady.num_items;
            num_unlike += inside && is_at_an_end(c, &item);
            if (i < steady.first + steady.num_items)
                num_unlike += memcmp(&item, &longer[i], sizeof item) != 0;
            item.microbatch += steady.num_microbatches;
            if (i >= steady.first)
                num_unlike += memcmp(&item, &longer[i + steady.num_items], sizeof item) != 0;
        }
        CU_ASSERT_EQUAL(num_unlike, 0);
    }
    arena_free(&arena);
}

static void a_longer_order_has_its_period_once_more(void) {
    for_all_shapes(check_steady);
}

// The closed form is exact; that of the interleaved schedule where pp divides the micro-batches or
// where there are fewer than pp of them, else it is an upper bound, and pp - 1 forwards and
// backwards (of which W fills all but the forwards) are a lower one.
static void check_bubble(Case *c) {
    const ScheduleShape *s = &c->shape;
    const double busy_s = 3.0 * s->vpp * s->num_microbatches;
    double inner_idle_s;
    const double idle_frac = (run_s(c, &inner_idle_s) - busy_s) / busy_s;
    const double stated = c->schedule->bubble_frac(s);
    const bool exact = c->schedule->kind != SCHEDULE_INTERLEAVED || s->vpp == 1 || s->pp == 1 ||
                       s->num_microbatches % s->pp == 0 || s->num_microbatches < s->pp;
    if (exact) CU_ASSERT_DOUBLE_EQUAL(idle_frac, stated, 1e-12);
    CU_ASSERT(idle_frac <= stated + 1e-12);
    const double fill = c->schedule->splits_backward ? 1 : 3; // before W, or F and B of every rank
    const double least = (s->pp - 1) * fill / busy_s;
    CU_ASSERT(idle_frac >= (s->pp > 1 ? least : 0) - 1e-12);
}

static void bubble_is_the_closed_form(void) {
    for_all_shapes(check_bubble);
}

// "F0.1 B2.3": forward of chunk 0, micro-batch 1; backward of chunk 2, micro-batch 3. "+" before
// an item that is joined to the one before it.
static const char *order_text(ScheduleKind kind, ScheduleShape shape, int rank, Arena *arena) {
    const Schedule *schedule = schedule_find(kind);
    const RankOrder order = schedule_orders(schedule, &shape, arena)[rank];
    const WorkItem *items = order.items;
    const char *text = "";
    for (int i = 0; i < order.num_items; i++)
        text = arena_printf(arena, "%s%s%s%c%d.%d", text, i ? " " : "", items[i].joined ? "+" : "",
                            "FBIW"[items[i].kind], items[i].chunk, items[i].microbatch);
    return text;
}

static void assert_order(ScheduleKind kind, ScheduleShape shape, int rank, const char *expected) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(order_text(kind, shape, rank, &arena), expected);
    arena_free(&arena);
}

// Qi et al. 2023, table 2, idle time between a rank's first and last item: (p - 1)(F + B - W) with
// ZB-H1, once there are pp micro-batches, and (p - 1)(F + B - 2W) with ZB-H2, from 2 pp - 1 on.
static void check_zero_bubble(Case *c) {
    const ScheduleShape *s = &c->shape;
    const int depth = c->schedule->kind == SCHEDULE_ZB_H1 ? 1 : 2;
    if (!c->schedule->splits_backward || s->num_microbatches < depth * (s->pp - 1) + 1) return;
    double inner_idle_s;
    run_s(c, &inner_idle_s);
    CU_ASSERT_EQUAL(inner_idle_s, (s->pp - 1) * (2 - depth));
}

static void zero_bubbles_are_those_of_table_2(void) {
    for_all_shapes(check_zero_bubble);
}

static void gpipe_runs_all_forwards_first(void) {
    assert_order(SCHEDULE_GPIPE, schedule_shape(2, 1, 3), 1, "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2");
}

// Narayanan et al. 2021, figure 4 (top), first and last device of 4: three forwards ahead, none.
static void one_f_one_b_is_figure_4(void) {
    const ScheduleShape shape = schedule_shape(4, 1, 6);
    assert_order(SCHEDULE_1F1B, shape, 0,
                 "F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 F0.5 B0.2 B0.3 B0.4 B0.5");
    assert_order(SCHEDULE_1F1B, shape, 3,
                 "F3.0 B3.0 F3.1 B3.1 F3.2 B3.2 F3.3 B3.3 F3.4 B3.4 F3.5 B3.5");
}

// Qi et al. 2023, figure 3 (top), first and last device of 4: three forwards ahead and W at once;
// none, and W three micro-batches later. Input parts are B in the paper.
static void zb_h1_is_figure_3(void) {
    const ScheduleShape shape = schedule_shape(4, 1, 5);
    assert_order(SCHEDULE_ZB_H1, shape, 0,
                 "F0.0 F0.1 F0.2 F0.3 I0.0 W0.0 F0.4 I0.1 W0.1 I0.2 W0.2 I0.3 W0.3 I0.4 W0.4");
    assert_order(SCHEDULE_ZB_H1, shape, 3,
                 "F3.0 I3.0 F3.1 I3.1 F3.2 I3.2 F3.3 I3.3 W3.0 F3.4 I3.4 W3.1 W3.2 W3.3 W3.4");
}

// Qi et al. 2023, figure 3 (bottom), first and last device of 4: six forwards ahead; none, and W
// six micro-batches later.
static void zb_h2_is_figure_3(void) {
    const ScheduleShape shape = schedule_shape(4, 1, 8);
    assert_order(SCHEDULE_ZB_H2, shape, 0,
                 "F0.0 F0.1 F0.2 F0.3 F0.4 F0.5 F0.6 I0.0 W0.0 F0.7 I0.1 W0.1 I0.2 W0.2 I0.3 W0.3 "
                 "I0.4 W0.4 I0.5 W0.5 I0.6 W0.6 I0.7 W0.7");
    assert_order(SCHEDULE_ZB_H2, shape, 3,
                 "F3.0 I3.0 F3.1 I3.1 F3.2 I3.2 F3.3 I3.3 F3.4 I3.4 F3.5 I3.5 F3.6 I3.6 W3.0 F3.7 "
                 "I3.7 W3.1 W3.2 W3.3 W3.4 W3.5 W3.6 W3.7");
}

// Two micro-batches on 4 ranks: all forwards are over before a gradient comes.
static void zb_h1_takes_few_microbatches(void) {
    assert_order(SCHEDULE_ZB_H1, schedule_shape(4, 1, 2), 1, "F1.0 F1.1 I1.0 W1.0 I1.1 W1.1");
    assert_order(SCHEDULE_ZB_H1, schedule_shape(4, 1, 2), 3, "F3.0 I3.0 F3.1 I3.1 W3.0 W3.1");
}

// Megatron-LM with pp 2, 2 chunks a rank, 4 micro-batches. Order of the forwards: chunk 0 of
// micro-batches 0 1, chunk 2 of 0 1, chunk 0 of 2 3, chunk 2 of 2 3. Warm-up of rank 0:
// 2 (2 - 0 - 1) + (2 - 1) 2 = 4, of rank 1: 2.
static void interleaved_is_megatrons(void) {
    const ScheduleShape shape = schedule_shape(2, 2, 4);
    assert_order(SCHEDULE_INTERLEAVED, shape, 0,
                 "F0.0 F0.1 F2.0 F2.1 F0.2 +B2.0 F0.3 +B2.1 F2.2 +B0.0 F2.3 +B0.1 "
                 "B2.2 B2.3 B0.2 B0.3");
    assert_order(SCHEDULE_INTERLEAVED, shape, 1,
                 "F1.0 F1.1 F3.0 +B3.0 F3.1 +B3.1 F1.2 +B1.0 F1.3 +B1.1 F3.2 +B3.2 F3.3 +B3.3 "
                 "B1.2 B1.3");
}

// The same with 3 micro-batches: what is left of the order above without micro-batch 3. Forwards
// and backwards each stand in the order of Megatron's table with a last group of one.
static void interleaved_leaves_missing_microbatches_out(void) {
    const ScheduleShape shape = schedule_shape(2, 2, 3);
    assert_order(SCHEDULE_INTERLEAVED, shape, 0,
                 "F0.0 F0.1 F2.0 F2.1 F0.2 +B2.0 B2.1 F2.2 +B0.0 B0.1 B2.2 B0.2");
    assert_order(SCHEDULE_INTERLEAVED, shape, 1,
                 "F1.0 F1.1 F3.0 +B3.0 F3.1 +B3.1 F1.2 +B1.0 B1.1 F3.2 +B3.2 B1.2");
}

// Two chunks on each of two ranks.
static void breadth_first_finishes_a_chunk_before_the_next(void) {
    assert_order(SCHEDULE_BREADTH_FIRST, schedule_shape(2, 2, 3), 1,
                 "F1.0 F1.1 F1.2 F3.0 F3.1 F3.2 B3.0 B3.1 B3.2 B1.0 B1.1 B1.2");
}

static void interleaved_with_one_chunk_is_1f1b(void) {
    Arena arena = {0};
    for (int pp = 1; pp <= 5; pp++)
        for (int m = 1; m <= 9; m++)
            for (int rank = 0; rank < pp; rank++) {
                const ScheduleShape shape = schedule_shape(pp, 1, m);
                CU_ASSERT_STRING_EQUAL(order_text(SCHEDULE_INTERLEAVED, shape, rank, &arena),
                                       order_text(SCHEDULE_1F1B, shape, rank, &arena));
            }
    arena_free(&arena);
}

static void without_a_pipeline_gradients_are_accumulated(void) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const Schedule *schedule = schedule_find((ScheduleKind)kind);
        if (!schedule) continue;
        assert_order((ScheduleKind)kind, schedule_shape(1, 2, 2), 0,
                     schedule->splits_backward
                         ? "F0.0 F1.0 I1.0 W1.0 I0.0 W0.0 F0.1 F1.1 I1.1 W1.1 I0.1 W0.1"
                         : "F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1");
    }
}

// Narayanan et al. 2021, sections 2.2.1 and 2.2.2: 3 / 8, and half of it with 2 chunks a rank, in
// whatever order.
// A third of it
// with ZB-H1, and with ZB-H2 in a step by itself. With 6 micro-batches at pp 4: 8 x 2 slots for 6 x
// 2 pieces of work, and 1 slot to drain: 5 / 12.
static void bubbles_of_the_papers(void) {
    const ScheduleShape one = schedule_shape(4, 1, 8), two = schedule_shape(4, 2, 8),
                        uneven = schedule_shape(4, 2, 6);
    const Schedule *interleaved = schedule_find(SCHEDULE_INTERLEAVED);
    CU_ASSERT_DOUBLE_EQUAL(schedule_find(SCHEDULE_GPIPE)->bubble_frac(&one), 0.375, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(schedule_find(SCHEDULE_1F1B)->bubble_frac(&one), 0.375, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(interleaved->bubble_frac(&two), 0.1875, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(interleaved->bubble_frac(&uneven), 5 / 12.0, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(schedule_find(SCHEDULE_BREADTH_FIRST)->bubble_frac(&two), 0.1875, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(schedule_find(SCHEDULE_ZB_H1)->bubble_frac(&one), 0.125, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(schedule_find(SCHEDULE_ZB_H2)->bubble_frac(&one), 0.125, 1e-15);
}

static void rows_say_all_about_their_schedule(void) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        const Schedule *schedule = schedule_find((ScheduleKind)kind);
        CU_ASSERT_EQUAL((int)schedule->kind, kind);
        CU_ASSERT(schedule->order || schedule->orders);
        CU_ASSERT(strlen(schedule->source) > 0);
        if (schedule->placement != PLACEMENT_ROUND) CU_ASSERT_EQUAL(schedule->num_chunks, 2);
        CU_ASSERT_EQUAL(schedule->placement == PLACEMENT_DUAL, schedule->least_microbatches > 0);
        if (schedule->with_one_chunk) CU_ASSERT_EQUAL(schedule->with_one_chunk->num_chunks, 1);
        if (schedule->with_more_chunks) CU_ASSERT_EQUAL(schedule->with_more_chunks->num_chunks, 0);
        if (schedule->layerwise) CU_ASSERT_EQUAL(schedule->num_chunks, 1);
    }
    CU_ASSERT_EQUAL(schedule_default(1), SCHEDULE_1F1B);
    CU_ASSERT_EQUAL(schedule_default(2), SCHEDULE_INTERLEAVED);
    CU_ASSERT_EQUAL(schedule_with_chunks(SCHEDULE_INTERLEAVED, 1), SCHEDULE_1F1B);
    CU_ASSERT_EQUAL(schedule_with_chunks(SCHEDULE_BREADTH_FIRST, 1), SCHEDULE_BREADTH_FIRST);
    CU_ASSERT_EQUAL(schedule_with_chunks(SCHEDULE_GPIPE, 4), SCHEDULE_GPIPE);
    CU_ASSERT_EQUAL(schedule_with_chunks(SCHEDULE_FILE, 1), SCHEDULE_FILE);
    CU_ASSERT_PTR_NULL(schedule_find(SCHEDULE_FILE));
}

static void hundred_thousand_microbatches_are_laid_out(void) {
    const ScheduleShape shape = schedule_shape(4, 2, 99999);
    const Schedule *schedule = schedule_find(SCHEDULE_INTERLEAVED);
    Arena arena = {0};
    const int num_items = schedule->num_items(&shape, 2);
    WorkItem *items = ARENA_ARRAY(&arena, num_items, WorkItem);
    schedule->order(&shape, 2, items);
    // The last group holds micro-batches 99,996 to 99,998.
    CU_ASSERT_EQUAL(items[num_items - 1].microbatch, 99998);
    CU_ASSERT_EQUAL(items[num_items - 1].chunk, 2);
    CU_ASSERT_EQUAL(items[num_items - 1].kind, WORK_BACKWARD);
    arena_free(&arena);
}

CU_TestInfo schedule_tests[] = {
    {"rows_say_all_about_their_schedule", rows_say_all_about_their_schedule},
    {"gpipe_runs_all_forwards_first", gpipe_runs_all_forwards_first},
    {"one_f_one_b_is_figure_4", one_f_one_b_is_figure_4},
    {"zb_h1_is_figure_3", zb_h1_is_figure_3},
    {"zb_h2_is_figure_3", zb_h2_is_figure_3},
    {"zb_h1_takes_few_microbatches", zb_h1_takes_few_microbatches},
    {"zero_bubbles_are_those_of_table_2", zero_bubbles_are_those_of_table_2},
    {"interleaved_is_megatrons", interleaved_is_megatrons},
    {"interleaved_leaves_missing_microbatches_out", interleaved_leaves_missing_microbatches_out},
    {"breadth_first_finishes_a_chunk_before_the_next",
     breadth_first_finishes_a_chunk_before_the_next},
    {"interleaved_with_one_chunk_is_1f1b", interleaved_with_one_chunk_is_1f1b},
    {"without_a_pipeline_gradients_are_accumulated", without_a_pipeline_gradients_are_accumulated},
    {"bubbles_of_the_papers", bubbles_of_the_papers},
    {"orders_are_complete", orders_are_complete},
    {"orders_meet_every_dependency", orders_meet_every_dependency},
    {"in_flight_is_the_most_held", in_flight_is_the_most_held},
    {"ranks_hold_no_more_than_those_before", ranks_hold_no_more_than_those_before},
    {"a_longer_order_has_its_period_once_more", a_longer_order_has_its_period_once_more},
    {"bubble_is_the_closed_form", bubble_is_the_closed_form},
    {"hundred_thousand_microbatches_are_laid_out", hundred_thousand_microbatches_are_laid_out},
    CU_TEST_INFO_NULL,
};
