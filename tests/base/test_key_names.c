#include "base/key_names.h"

#include <CUnit/CUnit.h>
#include <stddef.h>

static const char *const TRAINING[] = {"seq_len", "global_batch", "precision", "sequence_lengths",
                                       NULL};
static const char *const PARALLEL[] = {"tp", "pp", "micro_batch", "sequence_parallel", NULL};

static void another_softwares_key_is_named_as_here(void) {
    CU_ASSERT_STRING_EQUAL(key_meant("sequence_length", TRAINING), "seq_len");
    CU_ASSERT_STRING_EQUAL(key_meant("batch_size", TRAINING), "global_batch");
    CU_ASSERT_STRING_EQUAL(key_meant("torch_dtype", TRAINING), "precision");
    CU_ASSERT_STRING_EQUAL(key_meant("tensor-model-parallel-size", PARALLEL), "tp");
    CU_ASSERT_STRING_EQUAL(key_meant("sp", PARALLEL), "sequence_parallel");
}

static void capitals_and_dashes_do_not_hide_a_key(void) {
    CU_ASSERT_STRING_EQUAL(key_meant("TP", PARALLEL), "tp");
    CU_ASSERT_STRING_EQUAL(key_meant("Micro-Batch", PARALLEL), "micro_batch");
}

static void a_key_of_another_place_is_told_where_it_stands(void) {
    CU_ASSERT_PTR_NULL(key_meant("micro_batch_size", TRAINING));
    CU_ASSERT_STRING_EQUAL(key_place("micro_batch_size"), "parallel.micro_batch");
    CU_ASSERT_STRING_EQUAL(key_place("tp"), "parallel.tp");
}

static void what_means_nothing_here_is_not_guessed(void) {
    CU_ASSERT_PTR_NULL(key_meant("learning_rate", TRAINING));
    CU_ASSERT_PTR_NULL(key_place("learning_rate"));
    CU_ASSERT_PTR_NULL(key_place(""));
}

CU_TestInfo key_names_tests[] = {
    {"another_softwares_key_is_named_as_here", another_softwares_key_is_named_as_here},
    {"capitals_and_dashes_do_not_hide_a_key", capitals_and_dashes_do_not_hide_a_key},
    {"a_key_of_another_place_is_told_where_it_stands",
     a_key_of_another_place_is_told_where_it_stands},
    {"what_means_nothing_here_is_not_guessed", what_means_nothing_here_is_not_guessed},
    CU_TEST_INFO_NULL,
};
