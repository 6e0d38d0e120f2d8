#include "whatif/checkpoint.h"

#include <CUnit/CUnit.h>
#include <math.h>

// Daly 2006, captions of figures 3 to 5: delta = 5 min; M = 24 h, 6 h, 15 min: 117, 57, 9.1 min.
static void intervals_are_those_of_dalys_figures(void) {
    CU_ASSERT_DOUBLE_EQUAL(daly_interval_s(300, 24 * 3600.0) / 60, 117, 0.5);
    CU_ASSERT_DOUBLE_EQUAL(daly_interval_s(300, 6 * 3600.0) / 60, 57, 0.5);
    CU_ASSERT_DOUBLE_EQUAL(daly_interval_s(300, 900) / 60, 9.1, 0.05);
    // sqrt(2 x 300 s x 86400 s) = 7200 s
    CU_ASSERT_DOUBLE_EQUAL(young_interval_s(300, 86400), 7200, 1e-9);
    CU_ASSERT_EQUAL(daly_interval_s(3000, 900), 900);
}

// The optimum of the whole formula, found by trying.
static void dalys_interval_is_the_best_of_his_formula(void) {
    static const double CASES[][3] = {{300, 600, 86400}, {60, 600, 11000}, {5, 300, 3600}};
    for (int i = 0; i < 3; i++) {
        const double write_s = CASES[i][0], restart_s = CASES[i][1], mtbf_s = CASES[i][2];
        const double best_s = daly_interval_s(write_s, mtbf_s);
        const double best = daly_goodput_frac(best_s, write_s, restart_s, mtbf_s);
        for (double factor = 0.25; factor < 4; factor *= 1.1)
            CU_ASSERT(daly_goodput_frac(best_s * factor, write_s, restart_s, mtbf_s) <=
                      best * (1 + 1e-5));
    }
}

static void shares_add_up(void) {
    const GoodputShares s = daly_shares(1800, 60, 600, 20000);
    CU_ASSERT_DOUBLE_EQUAL(s.goodput_frac + s.write_frac + s.restart_frac + s.lost_frac, 1, 1e-12);
    CU_ASSERT(s.goodput_frac > 0 && s.write_frac > 0 && s.restart_frac > 0 && s.lost_frac > 0);
    const GoodputShares none = daly_shares(1800, 200, 600, INFINITY);
    CU_ASSERT_DOUBLE_EQUAL(none.goodput_frac, 0.9, 1e-12); // 1800 / 2000
    CU_ASSERT_DOUBLE_EQUAL(none.lost_frac + none.restart_frac, 0, 1e-12);
}

// Erlang's formula by hand: one server and load 1: B = 1/2; two: (1/2) / (1 + 1 + 1/2) = 1/5.
static void spares_follow_erlang(void) {
    CU_ASSERT_DOUBLE_EQUAL(spares_available_frac(0, 1), 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(spares_available_frac(1, 1), 0.8, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(spares_available_frac(3, 0), 1, 1e-12);
    for (int s = 0; s < 20; s++)
        CU_ASSERT(spares_available_frac(s + 1, 6) > spares_available_frac(s, 6));
}

static void the_best_number_of_spares_is_the_best_of_all(void) {
    static const double LOADS[] = {0, 0.05, 1, 6, 40};
    static const int NODES[] = {2, 16, 2048};
    for (int l = 0; l < 5; l++)
        for (int n = 0; n < 3; n++) {
            const int best = spares_best(NODES[n], LOADS[l]);
            const double value = spares_available_frac(best, LOADS[l]) / (NODES[n] + best);
            for (int s = 0; s <= NODES[n]; s++)
                CU_ASSERT(spares_available_frac(s, LOADS[l]) / (NODES[n] + s) <=
                          value * (1 + 1e-12));
        }
}

CU_TestInfo checkpoint_tests[] = {
    {"intervals_are_those_of_dalys_figures", intervals_are_those_of_dalys_figures},
    {"dalys_interval_is_the_best_of_his_formula", dalys_interval_is_the_best_of_his_formula},
    {"shares_add_up", shares_add_up},
    {"spares_follow_erlang", spares_follow_erlang},
    {"the_best_number_of_spares_is_the_best_of_all", the_best_number_of_spares_is_the_best_of_all},
    CU_TEST_INFO_NULL,
};
