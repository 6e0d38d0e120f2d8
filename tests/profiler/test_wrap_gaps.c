#include "profiler/wrap_gaps.h"

#include <CUnit/CUnit.h>

static ActivityRecord on(uint32_t device, uint32_t stream, uint64_t start_ns, uint64_t end_ns) {
    return (ActivityRecord){
        .device = device, .stream = stream, .start_ns = start_ns, .end_ns = end_ns, .name = "k"};
}

static void assert_row(const GapRow *row, double span_ns, double busy_ns, double longest_gap_ns) {
    CU_ASSERT_DOUBLE_EQUAL(row->span_s, span_ns * 1e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(row->busy_s, busy_ns * 1e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(row->idle_s, (span_ns - busy_ns) * 1e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(row->longest_gap_s, longest_gap_ns * 1e-9, 1e-15);
}

// Stream 1: [0,10) [40,50); stream 2: [5,20) within which lies [6,8), and [48,60).
// Union: [0,20) [40,60): 40 busy of 60, the gap is 20. Stream 2 alone: 15 + 12 of 55, gap 28.
static void overlap_counts_once_in_the_union(void) {
    Arena arena = {0};
    const ActivityRecord work[] = {on(0, 2, 48, 60), on(0, 1, 0, 10), on(0, 2, 6, 8),
                                   on(0, 2, 5, 20), on(0, 1, 40, 50)};
    WrapLog log = {.process = 9, .work = work, .num_work = 5};
    Gaps gaps = gaps_find(&log, 1, &arena);
    CU_ASSERT_EQUAL_FATAL(gaps.num_rows, 3);
    CU_ASSERT_TRUE(gaps.rows[0].is_union);
    CU_ASSERT_EQUAL(gaps.rows[0].num_records, 5);
    assert_row(&gaps.rows[0], 60, 40, 20);
    CU_ASSERT_EQUAL(gaps.rows[1].stream, 1);
    assert_row(&gaps.rows[1], 50, 20, 30);
    CU_ASSERT_EQUAL(gaps.rows[2].stream, 2);
    assert_row(&gaps.rows[2], 55, 27, 28);
    CU_ASSERT_EQUAL(gaps.num_devices, 1);
    CU_ASSERT_DOUBLE_EQUAL(gaps.busy_s, 40e-9, 1e-15);
    arena_free(&arena);
}

// Device 0 of two processes may be two GPUs: each has its row.
static void devices_and_processes_are_kept_apart(void) {
    Arena arena = {0};
    const ActivityRecord first[] = {on(1, 1, 0, 10), on(0, 1, 90, 100)};
    const ActivityRecord second[] = {on(0, 1, 500, 510)};
    const WrapLog logs[] = {{.process = 20, .work = first, .num_work = 2},
                            {.process = 10, .work = second, .num_work = 1}};
    Gaps gaps = gaps_find(logs, 2, &arena);
    CU_ASSERT_EQUAL(gaps.num_devices, 3);
    CU_ASSERT_EQUAL_FATAL(gaps.num_rows, 6);
    CU_ASSERT_EQUAL(gaps.rows[0].process, 10);
    CU_ASSERT_EQUAL(gaps.rows[2].process, 20);
    CU_ASSERT_EQUAL(gaps.rows[2].device, 0);
    CU_ASSERT_EQUAL(gaps.rows[4].device, 1);
    CU_ASSERT_DOUBLE_EQUAL(gaps.span_s, 30e-9, 1e-15);
    arena_free(&arena);
}

CU_TestInfo wrap_gaps_tests[] = {
    {"overlap counts once in the union", overlap_counts_once_in_the_union},
    {"devices and processes are kept apart", devices_and_processes_are_kept_apart},
    CU_TEST_INFO_NULL,
};
