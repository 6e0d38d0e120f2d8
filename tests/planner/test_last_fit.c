// The last number that fits, from any guess, in as many questions as its distance has digits.
#include "planner/stages/last_fit.h"

#include <CUnit/CUnit.h>

typedef struct {
    int least, most, last; // asked between, and what fits
    int num_asked, num_outside;
} Asked;

static bool is_small(void *context, int number) {
    Asked *asked = context;
    asked->num_asked++;
    asked->num_outside += number < asked->least || number > asked->most;
    return number <= asked->last;
}

static void it_is_found_from_any_guess(void) {
    int num_outside = 0, num_wrong = 0, num_slow = 0;
    for (int least = 0; least <= 3; least++)
        for (int most = least - 1; most <= 40; most++)
            for (int last = least - 1; last <= most; last++)
                for (int guess = least - 2; guess <= most + 2; guess++) {
                    Asked asked = {least, most, last, 0, 0};
                    num_wrong += last_fit(least, most, guess, is_small, &asked) != last;
                    num_outside += asked.num_outside;
                    num_slow += asked.num_asked > 12;
                    num_slow += guess == last && asked.num_asked > 2;
                }
    CU_ASSERT_EQUAL(num_wrong, 0);
    CU_ASSERT_EQUAL(num_outside, 0);
    CU_ASSERT_EQUAL(num_slow, 0);
}

CU_TestInfo last_fit_tests[] = {
    {"it_is_found_from_any_guess", it_is_found_from_any_guess},
    CU_TEST_INFO_NULL,
};
