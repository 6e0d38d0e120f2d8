#include "report/fit_text.h"

#include <CUnit/CUnit.h>

static void words_follow_the_probability(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(fit_text(0.9, &arena), "fits (90 %)");
    CU_ASSERT_STRING_EQUAL(fit_text(0.97, &arena), "fits (97 %)");
    CU_ASSERT_STRING_EQUAL(fit_text(0.5, &arena), "may not fit (50 %)");
    CU_ASSERT_STRING_EQUAL(fit_text(0.32, &arena), "does not fit (32 %)");
    arena_free(&arena);
}

static void a_percentage_is_never_more_than_it_is(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(fit_text(0.8999, &arena), "may not fit (89 %)");
    CU_ASSERT_STRING_EQUAL(fit_text(0.4999, &arena), "does not fit (49 %)");
    CU_ASSERT_STRING_EQUAL(fit_percent(1, &arena), "over 99 %");
    CU_ASSERT_STRING_EQUAL(fit_percent(0.99, &arena), "99 %");
    CU_ASSERT_STRING_EQUAL(fit_percent(0.0004, &arena), "under 1 %");
    arena_free(&arena);
}

CU_TestInfo fit_text_tests[] = {
    {"words_follow_the_probability", words_follow_the_probability},
    {"a_percentage_is_never_more_than_it_is", a_percentage_is_never_more_than_it_is},
    CU_TEST_INFO_NULL,
};
