// A batch over groups that train side by side, against every split.
#include "planner/groups/batch_split.h"

#include "base/random.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

enum { NUM_CASES = 400, MAX_TEST_GROUPS = 4, MAX_TEST_UNITS = 14 };

typedef struct {
    double time_s[MAX_TEST_GROUPS][MAX_TEST_UNITS + 1];
    int num_asked[MAX_TEST_GROUPS][MAX_TEST_UNITS + 1];
} Times;

static Status times_of(void *context, int group, int units, double *time_s) {
    Times *times = context;
    times->num_asked[group][units]++;
    *time_s = times->time_s[group][units];
    return status_ok();
}

static double most_of(const BatchProblem *p, const Times *times, const int *units) {
    double most_s = 0;
    for (int g = 0; g < p->num_groups; g++) most_s = fmax(most_s, times->time_s[g][units[g]]);
    return most_s;
}

// Every split of what is left over the groups from `group` on.
static double least_of_all(const BatchProblem *p, const Times *times, int *units, int group,
                           int left) {
    if (group == p->num_groups - 1) {
        units[group] = left;
        return most_of(p, times, units);
    }
    double least_s = INFINITY;
    for (units[group] = 1; units[group] <= left - (p->num_groups - 1 - group); units[group]++)
        least_s = fmin(least_s, least_of_all(p, times, units, group + 1, left - units[group]));
    return least_s;
}

static double draw(uint64_t seed, int group, int what) {
    return random_uniform(seed, (uint32_t[RANDOM_WORDS]){(uint32_t)group, (uint32_t)what});
}

static void times_draw(uint64_t seed, const BatchProblem *p, Times *times, double *speed) {
    for (int g = 0; g < p->num_groups; g++) {
        const double each_s = 0.1 + draw(seed, g, 0);
        double sum_s = draw(seed, g, 1);
        speed[g] = (0.5 + draw(seed, g, 2)) / each_s;
        for (int n = 0; n <= p->num_units; n++) {
            times->time_s[g][n] = sum_s;
            // Plateaus too: micro-batches come in whole numbers.
            if (draw(seed, g, 3 + n) < 0.7) sum_s += each_s;
        }
    }
}

static void the_split_is_the_best_of_all(void) {
    for (int number = 0; number < NUM_CASES; number++) {
        Arena arena = {0};
        Times times = {0};
        double speed[MAX_TEST_GROUPS], most_s;
        BatchProblem p = {.num_groups = 1 + number % MAX_TEST_GROUPS,
                          .num_units = MAX_TEST_GROUPS + number % 11,
                          .speed = speed,
                          .time = times_of,
                          .context = &times};
        times_draw((uint64_t)number, &p, &times, speed);
        const int *units;
        int all[MAX_TEST_GROUPS], sum = 0;
        CU_ASSERT_EQUAL_FATAL(batch_split(&p, &arena, &units, &most_s).code, STATUS_OK);
        for (int g = 0; g < p.num_groups; g++) {
            sum += units[g];
            CU_ASSERT(units[g] >= 1);
            for (int n = 0; n <= p.num_units; n++) CU_ASSERT(times.num_asked[g][n] <= 1);
        }
        CU_ASSERT_EQUAL(sum, p.num_units);
        CU_ASSERT_EQUAL(most_s, most_of(&p, &times, units));
        CU_ASSERT_EQUAL(most_s, least_of_all(&p, &times, all, 0, p.num_units));
        arena_free(&arena);
    }
}

// A plan that cannot divide an odd batch: moves of two units find what moves of one do not.
static void a_batch_that_does_not_divide_is_passed_over(void) {
    Arena arena = {0};
    Times times = {0};
    const double speed[2] = {1, 1};
    for (int n = 0; n <= 12; n++) {
        times.time_s[0][n] = n % 2 ? INFINITY : (double)n;
        times.time_s[1][n] = n % 2 ? INFINITY : 2.0 * n;
    }
    const BatchProblem p = {2, 12, speed, times_of, &times};
    const int *units;
    double most_s;
    CU_ASSERT_EQUAL_FATAL(batch_split(&p, &arena, &units, &most_s).code, STATUS_OK);
    CU_ASSERT(units[0] == 8 && units[1] == 4 && most_s == 8);
    arena_free(&arena);
}

static void a_group_that_cannot_takes_forever(void) {
    Arena arena = {0};
    Times times = {0};
    const double speed[2] = {1, 100};
    for (int n = 0; n <= 12; n++) times.time_s[0][n] = INFINITY;
    const BatchProblem p = {2, 12, speed, times_of, &times};
    const int *units;
    double most_s;
    CU_ASSERT_EQUAL_FATAL(batch_split(&p, &arena, &units, &most_s).code, STATUS_OK);
    CU_ASSERT(isinf(most_s) && units[0] == 1);
    arena_free(&arena);
}

CU_TestInfo batch_split_tests[] = {
    {"the_split_is_the_best_of_all", the_split_is_the_best_of_all},
    {"a_batch_that_does_not_divide_is_passed_over", a_batch_that_does_not_divide_is_passed_over},
    {"a_group_that_cannot_takes_forever", a_group_that_cannot_takes_forever},
    CU_TEST_INFO_NULL,
};
