#include "launch/flags.h"

#include <CUnit/CUnit.h>

#include <stddef.h>

static void plain_words_need_no_quotes(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(shell_quote("a-b_c.d/e:f", &arena), "a-b_c.d/e:f");
    CU_ASSERT_STRING_EQUAL(shell_quote("8", &arena), "8");
    arena_free(&arena);
}

static void quotes_keep_one_word(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(shell_quote("", &arena), "''");
    CU_ASSERT_STRING_EQUAL(shell_quote("two words", &arena), "'two words'");
    CU_ASSERT_STRING_EQUAL(shell_quote("it's $HOME `x` \"y\"", &arena),
                           "'it'\\''s $HOME `x` \"y\"'");
    CU_ASSERT_STRING_EQUAL(shell_quote("a|b", &arena), "'a|b'");
    CU_ASSERT_STRING_EQUAL(shell_quote("127,0", &arena), "'127,0'");
    CU_ASSERT_STRING_EQUAL(shell_quote("[1,0]", &arena), "'[1,0]'");
    arena_free(&arena);
}

static void names_hold_nothing_a_shell_reads(void) {
    Arena arena = {0};
    CU_ASSERT_STRING_EQUAL(shell_name("my model's \"v2\"\n#SBATCH x", &arena),
                           "my_model_s__v2___SBATCH_x");
    CU_ASSERT_STRING_EQUAL(shell_name("llama-3.1-70b", &arena), "llama-3.1-70b");
    arena_free(&arena);
}

static void flags_stand_in_the_order_given(void) {
    static const FlagRow rows[] = {{"G", "--a", "N", "A."}, {"G", "--b", NULL, "B."}, {0}};
    Arena arena = {0};
    FlagList list = {.arena = &arena, .rows = rows};
    for (int i = 0; i < 100; i++) flag_int(&list, "--a", i);
    flag_switch(&list, "--b");
    flag_number(&list, "--a", 0.25);
    flag_text(&list, "--a", "x y");
    CU_ASSERT_EQUAL(list.num_flags, 103);
    CU_ASSERT_STRING_EQUAL(list.flags[99].value, "99");
    CU_ASSERT_PTR_EQUAL(list.flags[100].row, &rows[1]);
    CU_ASSERT_PTR_NULL(list.flags[100].value);
    CU_ASSERT_STRING_EQUAL(list.flags[101].value, "0.25");
    CU_ASSERT_STRING_EQUAL(list.flags[102].value, "'x y'");
    arena_free(&arena);
}

CU_TestInfo flags_tests[] = {
    {"plain_words_need_no_quotes", plain_words_need_no_quotes},
    {"quotes_keep_one_word", quotes_keep_one_word},
    {"names_hold_nothing_a_shell_reads", names_hold_nothing_a_shell_reads},
    {"flags_stand_in_the_order_given", flags_stand_in_the_order_given},
    CU_TEST_INFO_NULL,
};
