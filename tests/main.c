// tests/main.c - runs the unit tests: all suites, or those named on the command line.
//
// Usage: meshwright-tests [SUITE...]    (suites as in tests/suites.def)
// Exit:  0 all passed, 1 some failed, 2 unknown suite, 3 CUnit failed.
#include <CUnit/Basic.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef MESHWRIGHT_CUPTI
#define CUPTI_SUITE SUITE
#else
#define CUPTI_SUITE(name)
#endif

#define SUITE(name) extern CU_TestInfo name##_tests[];
#include "tests/suites.def"
#undef SUITE

#define SUITE(name) {.pName = #name, .pTests = name##_tests},
static CU_SuiteInfo suites[] = {
#include "tests/suites.def"
    CU_SUITE_INFO_NULL};
#undef SUITE

static bool suite_register(const char *name) {
    for (CU_SuiteInfo *suite = suites; suite->pName != NULL; suite++) {
        if (strcmp(suite->pName, name) != 0) continue;
        CU_SuiteInfo only[] = {*suite, CU_SUITE_INFO_NULL};
        return CU_register_suites(only) == CUE_SUCCESS;
    }
    fprintf(stderr, "meshwright-tests: no suite %s; tests/suites.def has:", name);
    for (CU_SuiteInfo *suite = suites; suite->pName != NULL; suite++) {
        fprintf(stderr, " %s", suite->pName);
    }
    fprintf(stderr, "\n");
    return false;
}

int main(int argc, char **argv) {
    if (CU_initialize_registry() != CUE_SUCCESS) return 3;
    if (argc < 2 && CU_register_suites(suites) != CUE_SUCCESS) return 3;
    for (int i = 1; i < argc; i++) {
        if (!suite_register(argv[i])) return 2;
    }

    CU_basic_set_mode(CU_BRM_NORMAL);
    if (CU_basic_run_tests() != CUE_SUCCESS) return 3;
    unsigned num_run = CU_get_number_of_tests_run();
    unsigned num_failed = CU_get_number_of_tests_failed() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    printf("\n%u passed, %u failed\n", num_run - num_failed, num_failed);
    return num_failed == 0 ? 0 : 1;
}
