#include "profiler/wrap_match.h"

#include <CUnit/CUnit.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ActivityRecord kernel(uint32_t correlation_id, uint64_t duration_ns) {
    return (ActivityRecord){.kind = ACTIVITY_KERNEL,
                            .correlation_id = correlation_id,
                            .start_ns = 1000000,
                            .end_ns = 1000000 + duration_ns,
                            .name = "k"};
}

static void assert_time(const RangeTime *time, int64_t num_kernels, double kernel_ns) {
    CU_ASSERT_EQUAL(time->num_kernels, num_kernels);
    CU_ASSERT_DOUBLE_EQUAL(time->kernel_s, kernel_ns * 1e-9, 1e-15);
}

// outer [100, 200) holds calls at 110, 130, 190; inner [120, 150) of them only that at 130.
static void nested_ranges_both_count(void) {
    Arena arena = {0};
    const ActivityRecord work[] = {kernel(1, 10), kernel(2, 200), kernel(3, 3000),
                                   kernel(4, 40000)};
    const WrapCall calls[] = {
        {110, 112, 1, 7}, {130, 132, 2, 7}, {190, 210, 3, 7}, {200, 202, 4, 7}};
    const WrapRange ranges[] = {{.start_ns = 120, .end_ns = 150, .thread = 7},
                                {.start_ns = 100, .end_ns = 200, .thread = 7}};
    WrapLog log = {.work = work,
                   .num_work = 4,
                   .calls = calls,
                   .num_calls = 4,
                   .ranges = ranges,
                   .num_ranges = 2};
    const RangeTime *times = wrap_match(&log, &arena);
    assert_time(&times[0], 1, 200);
    assert_time(&times[1], 3, 3210); // a range does not hold its end
    arena_free(&arena);
}

// Two threads do the same at the same time; a range of all threads holds both.
static void threads_do_not_mix(void) {
    Arena arena = {0};
    const ActivityRecord work[] = {kernel(1, 10), kernel(2, 200)};
    const WrapCall calls[] = {{110, 112, 1, 7}, {110, 112, 2, 8}};
    const WrapRange ranges[] = {{.start_ns = 100, .end_ns = 200, .thread = 8},
                                {.start_ns = 100, .end_ns = 200, .thread = 7},
                                {.start_ns = 100, .end_ns = 200, .thread = 9},
                                {.start_ns = 100, .end_ns = 200, .thread = 9, .all_threads = true}};
    WrapLog log = {.work = work,
                   .num_work = 2,
                   .calls = calls,
                   .num_calls = 2,
                   .ranges = ranges,
                   .num_ranges = COUNT(ranges)};
    const RangeTime *times = wrap_match(&log, &arena);
    assert_time(&times[0], 1, 200);
    assert_time(&times[1], 1, 10);
    assert_time(&times[2], 0, 0);
    assert_time(&times[3], 2, 210);
    arena_free(&arena);
}

// A call of the runtime and the driver's inside it name the same kernel.
static void a_kernel_counts_once_per_range(void) {
    Arena arena = {0};
    const ActivityRecord work[] = {kernel(1, 10)};
    const WrapCall calls[] = {{112, 113, 1, 7}, {110, 115, 1, 7}};
    const WrapRange ranges[] = {{.start_ns = 100, .end_ns = 200, .thread = 7}};
    WrapLog log = {.work = work,
                   .num_work = 1,
                   .calls = calls,
                   .num_calls = 2,
                   .ranges = ranges,
                   .num_ranges = 1};
    assert_time(wrap_match(&log, &arena), 1, 10);
    arena_free(&arena);
}

// A graph's launch is one call of many kernels.
static void all_kernels_of_a_call_count(void) {
    Arena arena = {0};
    const ActivityRecord work[] = {kernel(1, 10), kernel(1, 20), kernel(1, 30)};
    const WrapCall calls[] = {{110, 115, 1, 7}};
    const WrapRange ranges[] = {{.start_ns = 100, .end_ns = 200, .thread = 7}};
    WrapLog log = {.work = work,
                   .num_work = 3,
                   .calls = calls,
                   .num_calls = 1,
                   .ranges = ranges,
                   .num_ranges = 1};
    assert_time(wrap_match(&log, &arena), 3, 60);
    arena_free(&arena);
}

static void copies_and_calls_without_kernels_do_not_count(void) {
    Arena arena = {0};
    ActivityRecord work[] = {kernel(1, 10), kernel(2, 20)};
    work[0].kind = ACTIVITY_COPY;
    work[1].kind = ACTIVITY_SET;
    const WrapCall calls[] = {{110, 115, 1, 7}, {120, 125, 2, 7}, {130, 135, 3, 7}};
    const WrapRange ranges[] = {{.start_ns = 100, .end_ns = 200, .thread = 7}};
    WrapLog log = {.work = work,
                   .num_work = 2,
                   .calls = calls,
                   .num_calls = 3,
                   .ranges = ranges,
                   .num_ranges = 1};
    assert_time(wrap_match(&log, &arena), 0, 0);
    WrapLog nothing = {.ranges = ranges, .num_ranges = 1};
    assert_time(wrap_match(&nothing, &arena), 0, 0);
    arena_free(&arena);
}

CU_TestInfo wrap_match_tests[] = {
    {"nested ranges both count", nested_ranges_both_count},
    {"threads do not mix", threads_do_not_mix},
    {"a kernel counts once per range", a_kernel_counts_once_per_range},
    {"all kernels of a call count", all_kernels_of_a_call_count},
    {"copies and calls without kernels do not count",
     copies_and_calls_without_kernels_do_not_count},
    CU_TEST_INFO_NULL,
};
