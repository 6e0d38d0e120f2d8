// The loader of libmeshwright-cuda.so, where it is missing or not ours.
#include "backend/cuda_backend.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <string.h>

static Status open_with(const char *library, int device, Dtype act) {
    setenv("MESHWRIGHT_CUDA_BACKEND", library, 1);
    Backend *backend = NULL;
    Status status = cuda_backend_open(device, act, &backend);
    CU_ASSERT_PTR_NULL(backend);
    unsetenv("MESHWRIGHT_CUDA_BACKEND");
    return status;
}

static void missing_library_is_named(void) {
    Status status = open_with("/nowhere/libmeshwright-cuda.so", 0, DTYPE_BF16);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "the CUDA backend cannot be loaded"));
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "/nowhere/libmeshwright-cuda.so"));
}

static void foreign_library_is_refused(void) {
    Status status = open_with("libm.so.6", 0, DTYPE_FP32);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text,
                           "meshwright: libm.so.6 is of another version of this program");
}

static void unknown_formats_and_devices_are_refused(void) {
    Status status = open_with("libm.so.6", 0, DTYPE_FP64);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text,
                           "meshwright: a GPU runs in bf16 or fp32; fp64 was asked for");
    status = open_with("libm.so.6", -1, DTYPE_BF16);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, "meshwright: GPU -1; expected 0 or more");
}

CU_TestInfo cuda_backend_tests[] = {
    {"missing_library_is_named", missing_library_is_named},
    {"foreign_library_is_refused", foreign_library_is_refused},
    {"unknown_formats_and_devices_are_refused", unknown_formats_and_devices_are_refused},
    CU_TEST_INFO_NULL,
};
