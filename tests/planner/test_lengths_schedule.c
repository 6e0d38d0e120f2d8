#include "planner/lengths/lengths_schedule.h"

#include "planner/lengths/lengths_bound.h"
#include "tests/planner/lengths_case.h"

#include <CUnit/CUnit.h>
#include <math.h>

enum { NUM_CASES = 60, MOST_SEQUENCES = 30 };

static void every_schedule_keeps_to_the_model_and_above_the_bound(void) {
    for (int number = 0; number < NUM_CASES; number++) {
        Arena arena = {0};
        const LengthsProblem p = lengths_case(number, MOST_SEQUENCES, &arena);
        const double bound_s =
            lengths_bound(&p, lengths_case_counts(&p, &arena), &arena).step_time_s;
        const LengthsSchedule any = lengths_schedule(&p, LENGTHS_ANY_SIZE, INFINITY, NULL, &arena);
        CU_ASSERT_TRUE(any.num_rounds > 0);
        lengths_case_check(&p, &any);
        CU_ASSERT_TRUE(any.step_time_s >= bound_s);
        for (int d = 0; d < p.num_sizes; d++) {
            const LengthsSchedule one = lengths_schedule(&p, d, INFINITY, NULL, &arena);
            if (one.num_rounds == 0) {
                CU_ASSERT_FALSE(isfinite(p.sizes[d].sequence_s[0]));
                continue;
            }
            lengths_case_check(&p, &one);
            CU_ASSERT_TRUE(one.step_time_s >= bound_s);
            for (int m = 0; m < one.num_rounds; m++)
                for (int g = 0; g < one.rounds[m].num_groups; g++)
                    CU_ASSERT_EQUAL(one.rounds[m].groups[g].size, d);
        }
        arena_free(&arena);
    }
}

// 2 places; groups of 1 place hold 10 tokens, of 2 places 20. Sequences of 20 tokens take 4 s on 2
// places. Short ones of 5 tokens take 1 s on 1 place and, being cut, 0.75 s on 2. With one long and
// eight short: in groups of 2 places a round of 4 s, and eight short at 0.75 s: 10 s. In groups of
// one place they take 8 x 1 / 2 = 4 s: 8 s in all. That is the bound as well: the long one takes
// 2 x 4 place-seconds, a short one at least 1, and (8 + 8 x 1) / 2 = 8.
static void short_sequences_leave_the_groups_that_the_long_one_needs(void) {
    const LengthBucket buckets[] = {{.length = 20, .num_sequences = 1},
                                    {.length = 5, .num_sequences = 8}};
    const double small_s[] = {INFINITY, 1}, large_s[] = {4, 0.75}, tokens[] = {20, 5};
    const LengthsSize sizes[] = {
        {.size = 1, .capacity_tokens = 10, .sequence_s = small_s, .tokens = tokens},
        {.size = 2, .capacity_tokens = 20, .sequence_s = large_s, .tokens = tokens}};
    const LengthsProblem p = {
        .num_places = 2, .sizes = sizes, .num_sizes = 2, .buckets = buckets, .num_buckets = 2};
    Arena arena = {0};
    const LengthsSchedule one = lengths_schedule(&p, 1, INFINITY, NULL, &arena);
    const LengthsSchedule many = lengths_schedule(&p, LENGTHS_ANY_SIZE, INFINITY, NULL, &arena);
    CU_ASSERT_EQUAL(lengths_schedule(&p, 0, INFINITY, NULL, &arena).num_rounds, 0);
    CU_ASSERT_DOUBLE_EQUAL(one.step_time_s, 10, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(many.step_time_s, 8, 1e-9);
    const LengthsBound bound = lengths_bound(&p, (int[]){1, 8}, &arena);
    CU_ASSERT_DOUBLE_EQUAL(bound.step_time_s, 8, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL(bound.packs[0], 4, 1e-6); // of two short ones each
    CU_ASSERT_DOUBLE_EQUAL(bound.packs[1], 1, 1e-6);
    arena_free(&arena);
}

CU_TestInfo lengths_schedule_tests[] = {
    {"every_schedule_keeps_to_the_model_and_above_the_bound",
     every_schedule_keeps_to_the_model_and_above_the_bound},
    {"short_sequences_leave_the_groups_that_the_long_one_needs",
     short_sequences_leave_the_groups_that_the_long_one_needs},
    CU_TEST_INFO_NULL,
};
