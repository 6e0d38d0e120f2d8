#include "base/aliases.h"

#include <CUnit/CUnit.h>
#include <stddef.h>

static void a_name_is_found_as_it_stands_before_all_else(void) {
    const char *const names[] = {"bf16", "BF16", NULL};
    CU_ASSERT_EQUAL(name_find("BF16", names), 1);
    CU_ASSERT_EQUAL(name_find("Bf16", names), 0);
    CU_ASSERT_EQUAL(name_find("", names), -1);
}

static void capitals_and_underscores_do_not_matter(void) {
    const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", NULL};
    CU_ASSERT_EQUAL(name_find("1F1B", schedules), 1);
    CU_ASSERT_EQUAL(name_find("GPipe", schedules), 0);
    CU_ASSERT_EQUAL(name_find("zb_h1", schedules), 2);
}

static void other_softwares_names_are_known(void) {
    const char *const precisions[] = {"fp32", "fp16", "bf16", "fp8", NULL};
    CU_ASSERT_EQUAL(name_find("bfloat16", precisions), 2);
    CU_ASSERT_EQUAL(name_find("torch.bfloat16", precisions), 2);
    CU_ASSERT_EQUAL(name_find("float32", precisions), 0);
    CU_ASSERT_EQUAL(name_find("fp8_e4m3", precisions), 3);
    const char *const optimizers[] = {"adam", "sgd", NULL};
    CU_ASSERT_EQUAL(name_find("AdamW", optimizers), 0);
    CU_ASSERT_EQUAL(name_find("adafactor", optimizers), -1);
}

// a2a is a dispatcher of experts here and context parallelism there.
static void a_spelling_means_what_is_legal_at_its_place(void) {
    const char *const dispatchers[] = {"alltoall", "allgather", NULL};
    const char *const methods[] = {"ring", "ulysses", "all-gather", NULL};
    CU_ASSERT_EQUAL(name_find("a2a", dispatchers), 0);
    CU_ASSERT_EQUAL(name_find("a2a", methods), 1);
    CU_ASSERT_EQUAL(name_find("all_gather", dispatchers), 1);
    CU_ASSERT_EQUAL(name_find("allgather", methods), 2);
    CU_ASSERT_EQUAL(name_find("p2p", dispatchers), -1);
}

CU_TestInfo aliases_tests[] = {
    {"a_name_is_found_as_it_stands_before_all_else", a_name_is_found_as_it_stands_before_all_else},
    {"capitals_and_underscores_do_not_matter", capitals_and_underscores_do_not_matter},
    {"other_softwares_names_are_known", other_softwares_names_are_known},
    {"a_spelling_means_what_is_legal_at_its_place", a_spelling_means_what_is_legal_at_its_place},
    CU_TEST_INFO_NULL,
};
