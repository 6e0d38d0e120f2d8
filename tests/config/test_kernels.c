#include "base/data_dir.h"
#include "config/kernels/kernels.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

static Gpu h100(Arena *arena) {
    Gpu gpu;
    CU_ASSERT_EQUAL_FATAL(gpu_load_named("h100-sxm-80g", arena, &gpu).code, STATUS_OK);
    return gpu;
}

static const CalibratedKernels *kernels_for(const Gpu *gpu, Arena *arena) {
    const CalibratedKernels *kernels;
    CU_ASSERT_EQUAL_FATAL(kernels_load_for(gpu, arena, &kernels).code, STATUS_OK);
    return kernels;
}

static void unmeasured_gpus_have_no_kernels(void) {
    Arena arena = {0};
    Gpu gpu = h100(&arena);
    gpu.kernels_of = NULL;
    CU_ASSERT_PTR_NULL(kernels_for(&gpu, &arena));
    arena_free(&arena);
}

// Whatever a profile says that it reaches, its own kernels were measured on the GPU itself.
static void own_kernels_keep_the_peaks(void) {
    Arena arena = {0};
    Gpu gpu = h100(&arena);
    for (int p = 0; p < NUM_PRECISIONS; p++) gpu.efficiency.gemm_max_frac[p] /= 2;
    const CalibratedKernels *kernels = kernels_for(&gpu, &arena);
    CU_ASSERT_FALSE(kernels->inherited);
    CU_ASSERT_STRING_EQUAL(kernels->profile.gpu, "h100-sxm-80g");
    for (int p = 0; p < NUM_PRECISIONS; p++)
        CU_ASSERT_EQUAL(kernels->gpu.peak_flops_per_s[p], gpu.peak_flops_per_s[p]);
    arena_free(&arena);
}

// A GPU with twice the H100's peaks that reaches half as much of them in 16 bits and all of what
// the H100 does in others: 2 x 1/2 and 2 x 1. In 4 bits, which the H100 does not have, its own peak
// stands. All else is its own.
static void inherited_kernels_scale_the_peaks(void) {
    Arena arena = {0};
    const Gpu relative = h100(&arena);
    Gpu gpu = relative;
    gpu.name = "made-up";
    gpu.num_sms = 77;
    for (int p = 0; p < NUM_PRECISIONS; p++) gpu.peak_flops_per_s[p] *= 2;
    gpu.efficiency.gemm_max_frac[PRECISION_BF16] /= 2;
    CU_ASSERT_EQUAL(relative.efficiency.gemm_max_frac[PRECISION_NVFP4], 0);
    gpu.peak_flops_per_s[PRECISION_NVFP4] = 1e15;
    gpu.efficiency.gemm_max_frac[PRECISION_NVFP4] = 0.25;
    const CalibratedKernels *kernels = kernels_for(&gpu, &arena);
    CU_ASSERT_TRUE(kernels->inherited);
    CU_ASSERT_STRING_EQUAL(kernels->profile.gpu, "h100-sxm-80g");
    CU_ASSERT_STRING_EQUAL(kernels->gpu.name, "made-up");
    CU_ASSERT_EQUAL(kernels->gpu.num_sms, 77);
    const double *peak = kernels->gpu.peak_flops_per_s, *its = relative.peak_flops_per_s;
    ASSERT_CLOSE(peak[PRECISION_BF16], its[PRECISION_BF16]);
    ASSERT_CLOSE(peak[PRECISION_FP16], 2 * its[PRECISION_FP16]);
    ASSERT_CLOSE(peak[PRECISION_FP8], 2 * its[PRECISION_FP8]);
    CU_ASSERT_EQUAL(peak[PRECISION_NVFP4], 1e15);
    CU_ASSERT_EQUAL(gpu.peak_flops_per_s[PRECISION_BF16], 2 * its[PRECISION_BF16]);
    arena_free(&arena);
}

// A path in place of a name: the file says whose kernels they are.
static void a_path_is_read_beside_the_gpus_file(void) {
    static const char *const MEASURED_ON[] = {"h100-sxm-80g", "h200-sxm-141g"};
    Arena arena = {0};
    Gpu gpu = h100(&arena);
    gpu.file = data_path(&arena, "hw-profiles/gpus", "our");
    for (int i = 0; i < 2; i++) {
        gpu.kernels_of = arena_printf(&arena, "../kernels/%s.json", MEASURED_ON[i]);
        const CalibratedKernels *kernels = kernels_for(&gpu, &arena);
        CU_ASSERT_STRING_EQUAL(kernels->profile.gpu, MEASURED_ON[i]);
        CU_ASSERT_EQUAL(kernels->inherited, i == 1);
    }
    arena_free(&arena);
}

#define BUNDLED                                                                                    \
    "expected the path of a kernel profile, or one of a100-sxm-80g, b200-sxm-180g, "               \
    "b300-sxm-288g, gb200-186g, gb300-288g, h100-sxm-80g, h200-sxm-141g, l40s-48g, "               \
    "rtx-pro-6000-96g"

static void kernels_that_are_not_there_are_refused(void) {
    Arena arena = {0};
    const CalibratedKernels *kernels;
    Gpu gpu = h100(&arena);
    gpu.file = "profiles/our.json";
    gpu.kernels_of = "measured/our.json";
    ASSERT_REFUSED(kernels_load_for(&gpu, &arena, &kernels),
                   "profiles/our.json: kernels_of: \"measured/our.json\" cannot be read: No such "
                   "file or directory; " BUNDLED);
    gpu.kernels_of = "h100";
    ASSERT_REFUSED(kernels_load_for(&gpu, &arena, &kernels),
                   "profiles/our.json: kernels_of: unknown GPU \"h100\"; " BUNDLED);
    gpu.kernels_of = NULL;
    ASSERT_REFUSED(kernels_load_whole(&gpu, &arena, &kernels),
                   "profiles/our.json: kernels_of: is absent; " BUNDLED);
    arena_free(&arena);
}

// A GPU that no bundled file knows can have kernels of its own.
static void kernels_of_an_own_gpu_are_its_own(void) {
    Arena arena = {0};
    KernelProfile profile;
    Gpu gpu = h100(&arena);
    static const char TEXT[] = "{\"schema\": 1, \"gpu\": \"ours\", \"sources\": \"made up\"}";
    ASSERT_REFUSED(kernels_parse(TEXT, strlen(TEXT), "k.json", &gpu, &arena, &profile),
                   "k.json: gpu: \"ours\"; expected a profile of h100-sxm-80g");
    gpu.name = "ours";
    CU_ASSERT_EQUAL(kernels_parse(TEXT, strlen(TEXT), "k.json", &gpu, &arena, &profile).code,
                    STATUS_OK);
    arena_free(&arena);
}

// A whole profile has more than a step is priced by: those sections are left out.
static void steps_read_what_they_need(void) {
    Arena arena = {0};
    const Gpu gpu = h100(&arena);
    const CalibratedKernels *kernels = kernels_for(&gpu, &arena);
    KernelProfile whole;
    CU_ASSERT_EQUAL_FATAL(kernels_load_named("h100-sxm-80g", &arena, &whole).code, STATUS_OK);
    CU_ASSERT_TRUE(kernels->profile.gemm.dtypes[GEMM_BFLOAT16].present);
    CU_ASSERT_EQUAL(kernels->profile.gemm.dtypes[GEMM_BFLOAT16].max_frac,
                    whole.gemm.dtypes[GEMM_BFLOAT16].max_frac);
    CU_ASSERT_TRUE(whole.moe.num_kernels > 0 && whole.context_attention.num_kernels > 0);
    CU_ASSERT_EQUAL(kernels->profile.moe.num_kernels, 0);
    CU_ASSERT_EQUAL(kernels->profile.context_attention.num_kernels, 0);
    CU_ASSERT_PTR_NOT_NULL(kernels->products);
    CU_ASSERT_EQUAL_FATAL(kernels_load_whole(&gpu, &arena, &kernels).code, STATUS_OK);
    CU_ASSERT_EQUAL(kernels->profile.moe.num_kernels, whole.moe.num_kernels);
    arena_free(&arena);
}

CU_TestInfo kernels_tests[] = {
    {"unmeasured_gpus_have_no_kernels", unmeasured_gpus_have_no_kernels},
    {"own_kernels_keep_the_peaks", own_kernels_keep_the_peaks},
    {"inherited_kernels_scale_the_peaks", inherited_kernels_scale_the_peaks},
    {"a_path_is_read_beside_the_gpus_file", a_path_is_read_beside_the_gpus_file},
    {"kernels_that_are_not_there_are_refused", kernels_that_are_not_there_are_refused},
    {"kernels_of_an_own_gpu_are_its_own", kernels_of_an_own_gpu_are_its_own},
    {"steps_read_what_they_need", steps_read_what_they_need},
    CU_TEST_INFO_NULL,
};
