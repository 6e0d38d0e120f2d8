#include "config/machine/architecture.h"

#include "base/data_dir.h"
#include "config/machine/gpu.h"

#include <CUnit/CUnit.h>
#include <string.h>

static const GpuArchitecture *load(const char *name, Arena *arena) {
    const GpuArchitecture *own;
    CU_ASSERT_EQUAL_FATAL(architecture_load(name, arena, &own).code, STATUS_OK);
    return own;
}

// No bundled GPU is priced as "other".
static void bundled_gpus_have_a_file_of_their_architecture(void) {
    Arena arena = {0};
    Gpu *gpus;
    int num_gpus;
    CU_ASSERT_EQUAL_FATAL(gpu_list(&arena, &gpus, &num_gpus).code, STATUS_OK);
    for (int i = 0; i < num_gpus; i++)
        CU_ASSERT_STRING_EQUAL(gpus[i].shared->name, gpus[i].architecture);
    arena_free(&arena);
}

static void files_are_named_as_their_architecture(void) {
    Arena arena = {0};
    const char *const *names;
    int num_names;
    CU_ASSERT_EQUAL_FATAL(data_list(&arena, "hw-profiles/architectures", &names, &num_names).code,
                          STATUS_OK);
    CU_ASSERT(num_names >= 10);
    for (int i = 0; i < num_names; i++) {
        const GpuArchitecture *own = load(names[i], &arena);
        CU_ASSERT_STRING_EQUAL(own->name, names[i]);
        for (int k = 0; k < own->num_older; k++) {
            CU_ASSERT(k == 0 || own->older[k].generation < own->older[k - 1].generation);
            CU_ASSERT(k == 0 || own->older[k].forward.frac < own->older[k - 1].forward.frac);
            CU_ASSERT(k == 0 || own->older[k].backward.frac < own->older[k - 1].backward.frac);
        }
    }
    arena_free(&arena);
}

// Neither one that nobody has heard of, nor one whose name is a path.
static void others_are_as_other_has_them(void) {
    static const char *const NAMES[] = {"rdna9", "", "../gpus/h100-sxm-80g", "other"};
    Arena arena = {0};
    for (int i = 0; i < 4; i++) {
        const GpuArchitecture *own = load(NAMES[i], &arena);
        CU_ASSERT_STRING_EQUAL(own->name, "other");
        CU_ASSERT_EQUAL(own->num_older, 1);
        CU_ASSERT_EQUAL(own->older[0].generation, 1);
    }
    arena_free(&arena);
}

CU_TestInfo architecture_tests[] = {
    {"bundled_gpus_have_a_file_of_their_architecture",
     bundled_gpus_have_a_file_of_their_architecture},
    {"files_are_named_as_their_architecture", files_are_named_as_their_architecture},
    {"others_are_as_other_has_them", others_are_as_other_has_them},
    CU_TEST_INFO_NULL,
};
