#include "profiler/cupti/cupti_find.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHEEL "lib/python3.12/site-packages/nvidia/cu13/lib/" CUPTI_SONAME

static char root[32];

// An empty file, with the folders before it.
static const char *place(const char *prefix, const char *file) {
    static char paths[4][256];
    static int num_paths;
    char *path = paths[num_paths++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s/%s", root, prefix, file);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *made = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(made);
    fclose(made);
    chmod(path, 0755);
    return path;
}

static void root_new(void) {
    snprintf(root, sizeof root, "/tmp/cupti_find.XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
    unsetenv("MESHWRIGHT_CUPTI");
    unsetenv("VIRTUAL_ENV");
    unsetenv("CUDA_HOME");
}

static void root_remove(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    CU_ASSERT_EQUAL(system(command), 0);
    unsetenv("MESHWRIGHT_CUPTI");
    unsetenv("VIRTUAL_ENV");
    unsetenv("CUDA_HOME");
}

static void assert_found(const char *program, const char *expected) {
    char path[4096];
    CU_ASSERT_TRUE(cupti_find(program, path, sizeof path));
    CU_ASSERT_STRING_EQUAL(path, expected);
}

// The order of the header, from the last to the first: each takes over from the one before.
static void the_nearest_is_found(void) {
    root_new();
    const char *in_environment = place("venv", WHEEL), *python = place("other/bin", "python3"),
               *beside_python = place("other", WHEEL),
               *toolkit = place("cuda", "extras/CUPTI/lib64/" CUPTI_SONAME);
    char folder[64];
    snprintf(folder, sizeof folder, "%s/venv", root);
    setenv("VIRTUAL_ENV", folder, 1);
    assert_found(NULL, in_environment);
    snprintf(folder, sizeof folder, "%s/cuda", root);
    setenv("CUDA_HOME", folder, 1);
    assert_found(NULL, toolkit);
    assert_found(python, beside_python);
    setenv("MESHWRIGHT_CUPTI", in_environment, 1);
    assert_found(python, in_environment);
    root_remove();
}

static void a_program_is_looked_up_in_the_path(void) {
    root_new();
    place("other/bin", "our-python");
    const char *expected = place("other", WHEEL);
    char *before = strdup(getenv("PATH")), path[4096];
    snprintf(path, sizeof path, "/nowhere:%s/other/bin:%s", root, before);
    setenv("PATH", path, 1);
    assert_found("our-python", expected);
    setenv("PATH", before, 1);
    free(before);
    root_remove();
}

// What was asked for by name is not replaced by another.
static void a_chosen_one_that_is_missing_is_not_found(void) {
    root_new();
    char path[4096];
    setenv("MESHWRIGHT_CUPTI", "/nowhere/" CUPTI_SONAME, 1);
    CU_ASSERT_FALSE(cupti_find(NULL, path, sizeof path));
    CU_ASSERT_STRING_EQUAL(path, "");
    root_remove();
}

CU_TestInfo cupti_find_tests[] = {
    {"the nearest is found", the_nearest_is_found},
    {"a program is looked up in the path", a_program_is_looked_up_in_the_path},
    {"a chosen one that is missing is not found", a_chosen_one_that_is_missing_is_not_found},
    CU_TEST_INFO_NULL,
};
