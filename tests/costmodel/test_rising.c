// Laws on lattices that rise but at edges.
#include "costmodel/kernel/rising.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

// Measured at 1, 2, 4 and 8, with a knot at 3 that was not.
static RisingAxis axis_made_up(void) {
    static const double MEASURED[] = {1, 2, 4, 8};
    RisingAxis axis = {0};
    for (int i = 3; i >= 0; i--) rising_axis_add(&axis, MEASURED[i], true);
    rising_axis_add(&axis, 3, false);
    rising_axis_add(&axis, 2, false); // is measured already
    return axis;
}

static int knot_at(double size) {
    static const double KNOTS[] = {1, 2, 3, 4, 8};
    int i = 0;
    while (KNOTS[i] != size) i++;
    return i;
}

// The times at 1, 2, 3, 4 and 8.
static double listed_s(const void *context, const double *place) {
    return ((const double *)context)[knot_at(place[0])];
}

static void knots_are_in_order(void) {
    static const double KNOTS[] = {1, 2, 3, 4, 8};
    const RisingAxis axis = axis_made_up();
    CU_ASSERT_EQUAL_FATAL(axis.num_knots, 5);
    for (int i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(axis.knots[i], KNOTS[i]);
        CU_ASSERT_EQUAL(axis.measured[i], KNOTS[i] != 3);
    }
}

// 1, 1.5, 2, 3, 4, 6 up to the last that is there, 6; then eightfold, the last of which is 100.
static void filled_knots_are_octaves_and_their_halves(void) {
    static const double KNOTS[] = {1, 2, 3, 4, 6, 48, 100};
    RisingAxis axis = {0};
    rising_axis_add(&axis, 6, true);
    rising_axis_fill(&axis, 1, 100);
    CU_ASSERT_EQUAL_FATAL(axis.num_knots, 7);
    for (int i = 0; i < 7; i++) CU_ASSERT_EQUAL(axis.knots[i], KNOTS[i]);
}

static void a_place_is_found_by_its_log(void) {
    const RisingAxis axis = axis_made_up();
    double frac;
    CU_ASSERT_EQUAL(rising_axis_locate(&axis, 4, &frac), 3);
    CU_ASSERT_EQUAL(frac, 0);
    CU_ASSERT_EQUAL(rising_axis_locate(&axis, 4 * sqrt(2), &frac), 3);
    CU_ASSERT_DOUBLE_EQUAL(frac, 0.5, 1e-12);
    CU_ASSERT_EQUAL(rising_axis_locate(&axis, 0.5, &frac), 0);
    CU_ASSERT_EQUAL(rising_axis_locate(&axis, 9, &frac), 4);
    CU_ASSERT_EQUAL(frac, 0);
}

// A law that rises stays; between knots a power is exact: 4 x sqrt(2) squared is 32.
static void what_rises_stays(void) {
    static const double SECONDS[] = {1, 4, 9, 16, 64};
    Arena arena = {0};
    const RisingAxis axis = axis_made_up();
    const RisingLattice lattice = rising_make(1, &axis, true, listed_s, SECONDS, &arena);
    for (int i = 0; i < 5; i++) ASSERT_CLOSE(rising_s(&lattice, &axis.knots[i]), SECONDS[i]);
    ASSERT_CLOSE(rising_s(&lattice, (double[]){4 * sqrt(2)}), 32);
    ASSERT_CLOSE(rising_s(&lattice, (double[]){1000}), 64);
    arena_free(&arena);
}

// From 2 to 4 the time falls by 2 %: both become the mean of the logs, and so does 3 between them,
// whatever the law says there.
static void a_small_fall_is_halved(void) {
    static const double SECONDS[] = {1, 2, 7, 1.96, 4};
    const double mean_s = sqrt(2 * 1.96);
    Arena arena = {0};
    const RisingAxis axis = axis_made_up();
    const RisingLattice lattice = rising_make(1, &axis, true, listed_s, SECONDS, &arena);
    ASSERT_CLOSE(rising_s(&lattice, (double[]){1}), 1);
    for (int size = 2; size <= 4; size++)
        ASSERT_CLOSE(rising_s(&lattice, (double[]){size}), mean_s);
    ASSERT_CLOSE(rising_s(&lattice, (double[]){8}), 4);
    arena_free(&arena);
}

// From 4 to 8 it falls by half: an edge. Up to it the time of 4 stays. Without edges both become
// the mean.
static void a_large_fall_is_an_edge(void) {
    static const double SECONDS[] = {1, 2, 3, 4, 2};
    Arena arena = {0};
    const RisingAxis axis = axis_made_up();
    const RisingLattice edged = rising_make(1, &axis, true, listed_s, SECONDS, &arena);
    ASSERT_CLOSE(rising_s(&edged, (double[]){4}), 4);
    ASSERT_CLOSE(rising_s(&edged, (double[]){7.999}), 4);
    ASSERT_CLOSE(rising_s(&edged, (double[]){8}), 2);
    const RisingLattice even = rising_make(1, &axis, false, listed_s, SECONDS, &arena);
    ASSERT_CLOSE(rising_s(&even, (double[]){2}), 2);
    ASSERT_CLOSE(rising_s(&even, (double[]){4}), sqrt(8));
    ASSERT_CLOSE(rising_s(&even, (double[]){8}), sqrt(8));
    arena_free(&arena);
}

// Falls and rises of any size, the same for the same place.
static double rough_s(const void *context, const double *place) {
    (void)context;
    return place[0] * (1 + 0.5 * sin(7 * place[0] + 3 * place[1])) *
           (1 + 0.02 * sin(5 * place[1]) + place[1] / 50);
}

// In a plane of 20 x 20 places one more of either size is faster only where it is a knot, and
// without edges nowhere.
static void a_plane_falls_at_knots_alone(void) {
    Arena arena = {0};
    const RisingAxis axes[] = {axis_made_up(), axis_made_up()};
    int num_falls = 0;
    for (int edges = 0; edges <= 1; edges++) {
        const RisingLattice lattice = rising_make(2, axes, edges, rough_s, NULL, &arena);
        for (int i = 0; i < 20 * 20; i++)
            for (int a = 0; a < 2; a++) {
                double place[] = {1 + i / 20 * 0.5, 1 + i % 20 * 0.5};
                const double before_s = rising_s(&lattice, place);
                place[a] += 0.5;
                if (rising_s(&lattice, place) >= before_s * (1 - 1e-12)) continue;
                num_falls++;
                CU_ASSERT(edges);
                CU_ASSERT(place[a] == 2 || place[a] == 4 || place[a] == 8);
            }
    }
    CU_ASSERT(num_falls > 0);
    arena_free(&arena);
}

CU_TestInfo rising_tests[] = {
    {"knots are in order", knots_are_in_order},
    {"filled knots are octaves and their halves", filled_knots_are_octaves_and_their_halves},
    {"a place is found by its log", a_place_is_found_by_its_log},
    {"what rises stays", what_rises_stays},
    {"a small fall is halved", a_small_fall_is_halved},
    {"a large fall is an edge", a_large_fall_is_an_edge},
    {"a plane falls at knots alone", a_plane_falls_at_knots_alone},
    CU_TEST_INFO_NULL,
};
