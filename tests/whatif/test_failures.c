#include "whatif/failures.h"

#include "whatif/checkpoint.h"

#include <CUnit/CUnit.h>
#include <math.h>

static const FailureModel MODEL = {.step_s = 10,
                                   .write_s = 60,
                                   .restart_s = 600,
                                   .mtbf_s = 11000,
                                   .hardware_frac = 0.78,
                                   .repair_s = 86400,
                                   .num_spares = -1};

// 100 steps of 10 s and a checkpoint of 60 s every 30 of them, the last after 10: 1000 + 4 x 60.
static void without_failures_only_checkpoints_cost(void) {
    FailureModel model = MODEL;
    model.mtbf_s = INFINITY;
    const FailureRun run = failures_play(&model, 100, 30, 1, 0);
    CU_ASSERT_EQUAL(run.wall_s, 1240);
    CU_ASSERT_EQUAL(run.useful_s, 1000);
    CU_ASSERT_EQUAL(run.write_s, 240);
    CU_ASSERT_EQUAL(run.num_failures, 0);
    CU_ASSERT_EQUAL(run.num_steps, 100);
}

static void seconds_add_up(void) {
    for (int spares = -1; spares < 4; spares++) {
        FailureModel model = MODEL;
        model.num_spares = spares;
        const FailureRun r = failures_play(&model, 100000, 100, 7, 3);
        CU_ASSERT_DOUBLE_EQUAL(r.useful_s + r.write_s + r.lost_s + r.restart_s + r.wait_s, r.wall_s,
                               1e-6 * r.wall_s);
        CU_ASSERT_EQUAL(r.num_steps, 100000);
        CU_ASSERT_DOUBLE_EQUAL(r.useful_s, 1e6, 1e-3);
        CU_ASSERT(r.num_failures > 0);
        CU_ASSERT((r.wait_s > 0) == (spares >= 0)); // 7 nodes would be away in the mean
    }
}

static void the_same_seed_gives_the_same_run(void) {
    const FailureRun a = failures_play(&MODEL, 100000, 100, 7, 3);
    const FailureRun b = failures_play(&MODEL, 100000, 100, 7, 3);
    const FailureRun c = failures_play(&MODEL, 100000, 100, 8, 3);
    CU_ASSERT_EQUAL(a.wall_s, b.wall_s);
    CU_ASSERT_NOT_EQUAL(a.wall_s, c.wall_s);
}

// Where nothing waits, Daly's formula is exact in the mean.
static void runs_agree_with_dalys_formula(void) {
    static const int INTERVALS[] = {20, 100, 400};
    for (int i = 0; i < 3; i++) {
        const FailureStatistics s = failures_repeat(&MODEL, 400000, INTERVALS[i], 1, 200);
        const double formula = daly_goodput_frac(INTERVALS[i] * MODEL.step_s, MODEL.write_s,
                                                 MODEL.restart_s, MODEL.mtbf_s);
        CU_ASSERT_DOUBLE_EQUAL(s.goodput_frac, formula, 4 * s.goodput_error_frac);
        CU_ASSERT(s.goodput_error_frac < 0.002);
    }
}

// The job's waiting is the loss of Erlang's system, whatever else it does.
static void waiting_agrees_with_erlang(void) {
    static const int SPARES[] = {0, 3, 8};
    for (int i = 0; i < 3; i++) {
        FailureModel model = MODEL;
        model.num_spares = SPARES[i];
        const FailureStatistics s = failures_repeat(&model, 400000, 100, 2, 100);
        const double load = model.hardware_frac * model.repair_s / model.mtbf_s;
        const double waits = s.mean.wait_s / s.mean.wall_s;
        const double expected = 1 - spares_available_frac(SPARES[i], load);
        CU_ASSERT_DOUBLE_EQUAL(waits, expected, 0.02 * expected + 0.004);
    }
}

static void a_run_without_hope_is_given_up(void) {
    FailureModel model = MODEL;
    model.mtbf_s = 20; // a step and a checkpoint take 70 s, a restart 600 s
    const FailureRun run = failures_play(&model, 1000, 1, 1, 0);
    CU_ASSERT(run.num_steps < 1000);
    CU_ASSERT(run.wall_s >= FAILURES_MAX_WALL * 1000 * model.step_s);
}

// Failures so near to each other that time stands still would never end; and two runs that are
// given up say as much as 200.
static void a_run_ends_however_often_it_fails(void) {
    static const double MTBF_S[] = {300, 1, 1e-300};
    for (int i = 0; i < 3; i++) {
        FailureModel model = MODEL; // restarts take 600 s
        model.mtbf_s = MTBF_S[i];
        model.hardware_frac = 0;
        const FailureRun run = failures_play(&model, 1000000, 100, 1, 0);
        CU_ASSERT(run.num_steps < 1000000);
        CU_ASSERT(run.num_failures <= FAILURES_MAX_OF_RUN + 1);
        const FailureStatistics s = failures_repeat(&model, 1000000, 100, 1, 1000000);
        CU_ASSERT_EQUAL(s.num_runs, 2);
        const FailureRun other = failures_play(&model, 1000000, 100, 1, 1);
        CU_ASSERT_DOUBLE_EQUAL(s.mean.wall_s, (run.wall_s + other.wall_s) / 2,
                               1e-9 * s.mean.wall_s);
        CU_ASSERT_EQUAL(s.mean.num_failures, run.num_failures + other.num_failures);
    }
}

CU_TestInfo failures_tests[] = {
    {"without_failures_only_checkpoints_cost", without_failures_only_checkpoints_cost},
    {"seconds_add_up", seconds_add_up},
    {"the_same_seed_gives_the_same_run", the_same_seed_gives_the_same_run},
    {"runs_agree_with_dalys_formula", runs_agree_with_dalys_formula},
    {"waiting_agrees_with_erlang", waiting_agrees_with_erlang},
    {"a_run_without_hope_is_given_up", a_run_without_hope_is_given_up},
    {"a run ends however often it fails", a_run_ends_however_often_it_fails},
    CU_TEST_INFO_NULL,
};
