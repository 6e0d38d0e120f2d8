#include "costmodel/step/estimate.h"
#include "costmodel/step/interval.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-15)

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

static Estimate estimate_of(Case *c) {
    Estimate estimate = {.step_time_s = NAN};
    CU_ASSERT_EQUAL(estimate_plan(&c->scenario, &c->plan, &c->arena, &estimate, NULL).code,
                    STATUS_OK);
    return estimate;
}

// Shares 0.6 and 0.4, spreads 0.1 and 0.2, correlation -0.5: 0.36 x 0.01 + 0.16 x 0.04 + 2 x 0.24 x
// (-0.01) = 0.0052; with 0.0002 known and 0.1^2 of the step 0.0154, a width of
// exp(1.2816 x 0.124097).
static void two_parts_by_hand(void) {
    const Calibration c = {.covariance = {{0.01, -0.01}, {-0.01, 0.04}}, .step_spread = 0.1};
    const double part_s[NUM_PARTS] = {6, 4};
    double low_s, high_s;
    ASSERT_CLOSE(interval_variance(&c, part_s, 10), 0.0052 + 0.01);
    interval_set(&c, part_s, 0.0002, 10, &low_s, &high_s);
    ASSERT_CLOSE(high_s, 10 * exp(1.2816 * sqrt(0.0154)));
    ASSERT_CLOSE(low_s * high_s, 100.0);
}

// A run has 0.3 of its own of a share of 0.4, and 0.1: 0.0144 + 0.01. No other run tells of it.
static void every_run_has_its_own_besides(void) {
    const Calibration c = {.covariance = {{0.01}}, .run_spread = {[1] = 0.3}, .step_spread = 0.1};
    const double part_s[NUM_PARTS] = {6, 4};
    ASSERT_CLOSE(interval_run_variance(&c, part_s, 10), 0.0144 + 0.01);
    ASSERT_CLOSE(interval_variance(&c, part_s, 10), 0.0144 + 0.01 + 0.0036);
}

static void without_a_calibration_nothing_is_uncertain(void) {
    const double part_s[NUM_PARTS] = {6, 4};
    double low_s, high_s;
    interval_set(NULL, part_s, 0, 10, &low_s, &high_s);
    CU_ASSERT(low_s == 10 && high_s == 10);
}

// 256 nodes are two doublings beyond 64: of a share of a half, (0.5 x 2 x 0.3)^2.
static void more_nodes_than_measured_widen_it(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 2048, "{\"seq_len\": 2048, \"global_batch\": 2048}", NULL)) {
        Calibration calibration = {.octave_spread = 0.3, .num_nodes = 64};
        c.scenario.calibration = &calibration;
        double part_s[NUM_PARTS] = {[PART_MEMORY] = 5, [PART_ACROSS] = 5};
        ASSERT_CLOSE(interval_known_variance(&c.scenario, &c.plan, &c.workload, part_s, 10), 0.09);
        calibration.num_nodes = 256;
        CU_ASSERT_EQUAL(interval_known_variance(&c.scenario, &c.plan, &c.workload, part_s, 10), 0);
    }
    case_free(&c);
}

// All products have the residual 0.329 at the 90th percentile: over 1.645 and two, 0.1 of a share
// of a half. A relative's kernels add their own; without any there are none to inherit.
static void kernels_of_others_widen_it(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, NULL)) {
        const Calibration calibration = {
            .inherited_spread = 0.2, .foreign_spread = 0.4, .num_nodes = 64};
        CalibratedKernels kernels = {.inherited = true};
        const double part_s[NUM_PARTS] = {[PART_PRODUCTS] = 5, [PART_MEMORY] = 5};
        c.scenario.calibration = &calibration;
        test_pool(&c.scenario.cluster)->gpu.efficiency.residual_p90_frac = 0.329;
        ASSERT_CLOSE(interval_known_variance(&c.scenario, &c.plan, &c.workload, part_s, 10),
                     0.0025);
        test_pool(&c.scenario.cluster)->kernels = &kernels;
        ASSERT_CLOSE(interval_known_variance(&c.scenario, &c.plan, &c.workload, part_s, 10),
                     0.0125);
        kernels.foreign = true;
        ASSERT_CLOSE(interval_known_variance(&c.scenario, &c.plan, &c.workload, part_s, 10),
                     0.0425);
        kernels.inherited = kernels.foreign = false;
        ASSERT_CLOSE(interval_known_variance(&c.scenario, &c.plan, &c.workload, part_s, 10),
                     0.0025);
    }
    case_free(&c);
}

// --- Parts of a step

static const char *const PLANS[] = {
    "{}", "{\"tp\": 4, \"pp\": 2}", "{\"pp\": 4, \"vpp\": 1, \"ep\": 2}",
    "{\"tp\": 2, \"cp\": 2, \"ep\": 4, \"recompute\": \"full\"}", "{\"zero_stage\": 3}"};

static void parts_add_up_to_the_step(void) {
    for (int i = 0; i < 5; i++) {
        Case c;
        if (case_make(&c, MADE_UP_MOE, 16, TRAINING, PLANS[i])) {
            const Estimate e = estimate_of(&c);
            double sum_s = 0;
            for (int k = 0; k < NUM_PARTS; k++) {
                CU_ASSERT(e.part_s[k] >= 0);
                sum_s += e.part_s[k];
            }
            ASSERT_CLOSE(sum_s, e.step_time_s);
        }
        case_free(&c);
    }
}

// What a part's factor of 1.001 adds to the step is what the part takes of it, where nothing
// overlaps: one GPU, and 16 whose gradients are reduced after the backward. There the stages differ
// by embedding and head, so that the bubble is not split exactly.
static void shares_are_what_factors_change(void) {
    for (int plan = 0; plan < 2; plan++)
        for (int k = 0; k < NUM_PARTS; k++) {
            Case c;
            if (case_make(&c, MADE_UP_MOE, plan ? 16 : 1,
                          "{\"seq_len\": 2048, \"global_batch\": 64, \"overlap_grad_reduce\": "
                          "false, \"overlap_param_gather\": false}",
                          plan ? "{\"tp\": 2, \"pp\": 4}" : "{}")) {
                stack_bare(&c.scenario.execution.stack);
                c.scenario.execution.stack.training.tp_backward_overlap = false;
                if (!case_resolve(&c)) continue;
                const Estimate before = estimate_of(&c);
                Calibration calibration = *c.scenario.calibration;
                calibration.factor[k] = 1.001;
                c.scenario.calibration = &calibration;
                const double more = estimate_of(&c).step_time_s / before.step_time_s - 1;
                CU_ASSERT_DOUBLE_EQUAL(1000 * more, before.part_s[k] / before.step_time_s, 0.025);
            }
            case_free(&c);
        }
}

// A host that takes a minute for each launch is all there is of the step.
static void a_slow_host_is_the_whole_step(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 1, TRAINING, NULL)) {
        c.scenario.execution.stack.launch.host_launch_s = 60;
        const Estimate e = estimate_of(&c);
        CU_ASSERT_DOUBLE_EQUAL(e.part_s[PART_HOST], e.step_time_s, 1e-3 * e.step_time_s);
    }
    case_free(&c);
}

CU_TestInfo interval_tests[] = {
    {"two_parts_by_hand", two_parts_by_hand},
    {"every_run_has_its_own_besides", every_run_has_its_own_besides},
    {"without_a_calibration_nothing_is_uncertain", without_a_calibration_nothing_is_uncertain},
    {"more_nodes_than_measured_widen_it", more_nodes_than_measured_widen_it},
    {"kernels_of_others_widen_it", kernels_of_others_widen_it},
    {"parts_add_up_to_the_step", parts_add_up_to_the_step},
    {"shares_are_what_factors_change", shares_are_what_factors_change},
    {"a_slow_host_is_the_whole_step", a_slow_host_is_the_whole_step},
    CU_TEST_INFO_NULL,
};
