#include "base/memo.h"

#include <CUnit/CUnit.h>

static void what_was_kept_is_found(void) {
    Arena arena = {0};
    Memo *memo = memo_new(&arena);
    const double numbers[] = {1, 2, 3};
    uint64_t key = memo_key(numbers, 3);
    double value = -1;
    CU_ASSERT_FALSE(memo_find(memo, key, &value));
    memo_keep(memo, key, 0.25);
    CU_ASSERT_TRUE(memo_find(memo, key, &value));
    CU_ASSERT_EQUAL(value, 0.25);
    arena_free(&arena);
}

// Every number and its place count.
static void other_numbers_have_other_keys(void) {
    const double rows[][2] = {{1, 2}, {2, 1}, {1, 2.0000001}, {0, 0}, {1, 0}, {0, 1}, {-1, 2}};
    enum { NUM_ROWS = sizeof rows / sizeof *rows };
    for (int i = 0; i < NUM_ROWS; i++) {
        CU_ASSERT_NOT_EQUAL(memo_key(rows[i], 2), 0);
        CU_ASSERT_NOT_EQUAL(memo_key(rows[i], 2), memo_key(rows[i], 1));
        for (int j = 0; j < i; j++) CU_ASSERT_NOT_EQUAL(memo_key(rows[i], 2), memo_key(rows[j], 2));
    }
}

// 100,000 values in 4,096 slots: what is found is what was kept under that key.
static void a_crowded_table_forgets_but_never_lies(void) {
    Arena arena = {0};
    Memo *memo = memo_new(&arena);
    int num_found = 0;
    for (int i = 0; i < 100000; i++) {
        double number = i;
        memo_keep(memo, memo_key(&number, 1), 3.0 * i);
    }
    for (int i = 0; i < 100000; i++) {
        double number = i, value;
        if (!memo_find(memo, memo_key(&number, 1), &value)) continue;
        CU_ASSERT_EQUAL(value, 3.0 * i);
        num_found++;
    }
    CU_ASSERT_TRUE(num_found > 3000 && num_found <= 4096);
    arena_free(&arena);
}

CU_TestInfo memo_tests[] = {
    {"what_was_kept_is_found", what_was_kept_is_found},
    {"other_numbers_have_other_keys", other_numbers_have_other_keys},
    {"a_crowded_table_forgets_but_never_lies", a_crowded_table_forgets_but_never_lies},
    CU_TEST_INFO_NULL,
};
