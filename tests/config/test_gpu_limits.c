#include "base/data_dir.h"
#include "config/machine/gpu_limits.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

// The H100 with one number changed, which root speaks of too.
typedef struct {
    Arena arena;
    JsonNode root;
    Gpu gpu;
} Case;

static void case_open(Case *c) {
    *c = (Case){0};
    const char *path = data_path(&c->arena, "hw-profiles/gpus", "h100-sxm-80g");
    CU_ASSERT_EQUAL_FATAL(json_load(path, &c->arena, &c->root).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(gpu_open(path, &c->arena, &c->gpu).code, STATUS_OK);
    c->root.file = "our.json";
}

static void peak_is_refused(Precision precision, double flops_per_s, const char *sentence) {
    Case c;
    case_open(&c);
    c.gpu.peak_flops_per_s[precision] = flops_per_s;
    ASSERT_REFUSED(gpu_check_limits(&c.root, &c.gpu), sentence);
    arena_free(&c.arena);
}

static void bandwidth_is_refused(double bytes_per_s, const char *sentence) {
    Case c;
    case_open(&c);
    c.gpu.memory_bandwidth_bytes_per_s = bytes_per_s;
    ASSERT_REFUSED(gpu_check_limits(&c.root, &c.gpu), sentence);
    arena_free(&c.arena);
}

// fp32 66.9, tf32 494.7, fp16 and bf16 989.4, fp8 1978.9 TFLOP/s.
static void slower_narrow_formats_are_refused(void) {
    peak_is_refused(PRECISION_BF16, 5e15,
                    "our.json: peak_flops_per_s.bf16: 5e+15 is more than the 1.9789e+15 of fp8; "
                    "expected at most that: a narrower format is never slower");
    peak_is_refused(PRECISION_NVFP4, 1e15,
                    "our.json: peak_flops_per_s.fp8: 1.9789e+15 is more than the 1e+15 of nvfp4; "
                    "expected at most that: a narrower format is never slower");
    peak_is_refused(PRECISION_FP32, 5e14,
                    "our.json: peak_flops_per_s.fp32: 500000000000000 is more than the "
                    "494700000000000 of tf32; expected at most that: a narrower format is never "
                    "slower");
    peak_is_refused(PRECISION_FP64, 1.1e15,
                    "our.json: peak_flops_per_s.fp64: 1.1e+15 is more than the 494700000000000 of "
                    "tf32; expected at most that: a narrower format is never slower");
}

// Consumer cards run some formats at one rate, matrix units hold fp64 alone on some, and formats
// may be absent.
static void equal_and_absent_peaks_are_legal(void) {
    Case c;
    case_open(&c);
    double *peak = c.gpu.peak_flops_per_s;
    peak[PRECISION_TF32] = peak[PRECISION_FP16];
    peak[PRECISION_MXFP8] = peak[PRECISION_FP8] / 1.5;
    CU_ASSERT_EQUAL(gpu_check_limits(&c.root, &c.gpu).code, STATUS_OK);
    peak[PRECISION_FP64] = 2 * peak[PRECISION_FP32];
    CU_ASSERT_EQUAL(gpu_check_limits(&c.root, &c.gpu).code, STATUS_OK);
    peak[PRECISION_TF32] = peak[PRECISION_FP8] = peak[PRECISION_MXFP8] = 0;
    CU_ASSERT_EQUAL(gpu_check_limits(&c.root, &c.gpu).code, STATUS_OK);
    arena_free(&c.arena);
}

// 16 stacks x 2048 bits x 8 Gbit/s = 32.768 TB/s. 1978.9 TFLOP/s over 33.5 GB/s are 59,072
// flop/byte.
static void memory_that_nothing_has_is_refused(void) {
    bandwidth_is_refused(3.35e13,
                         "our.json: memory_bandwidth_bytes_per_s: 33500000000000 is more than any "
                         "memory gives; expected at most 3.277e+13, of 16 stacks of HBM4");
    bandwidth_is_refused(3.35e10,
                         "our.json: memory_bandwidth_bytes_per_s: 33500000000 makes 5.91e+04 flops "
                         "for each byte from memory at the highest of peak_flops_per_s, "
                         "1.9789e+15; expected 0.1 to 10000");
    Case c;
    case_open(&c);
    c.gpu.memory_bandwidth_bytes_per_s = 3.27e13;
    CU_ASSERT_EQUAL(gpu_check_limits(&c.root, &c.gpu).code, STATUS_OK);
    arena_free(&c.arena);
}

// What `profile --device cpu` measured on two cores of a server: 0.997 flops for each byte. A tenth
// of that is a wrong unit.
static void few_cores_beside_fast_memory_are_legal(void) {
    Case c;
    case_open(&c);
    double *peak = c.gpu.peak_flops_per_s;
    for (int p = 0; p < NUM_PRECISIONS; p++) peak[p] = p == PRECISION_FP32 ? 9.606e10 : 0;
    c.gpu.memory_bandwidth_bytes_per_s = 9.638e10;
    CU_ASSERT_EQUAL(gpu_check_limits(&c.root, &c.gpu).code, STATUS_OK);
    peak[PRECISION_FP32] = 9.606e9;
    CU_ASSERT_EQUAL(gpu_check_limits(&c.root, &c.gpu).code, STATUS_INVALID);
    arena_free(&c.arena);
}

// Loading them checks it; the limits leave room on both sides.
static void bundled_gpus_lie_within(void) {
    Arena arena = {0};
    Gpu *gpus;
    int num_gpus;
    CU_ASSERT_EQUAL_FATAL(gpu_list(&arena, &gpus, &num_gpus).code, STATUS_OK);
    for (int i = 0; i < num_gpus; i++)
        CU_ASSERT(gpus[i].memory_bandwidth_bytes_per_s < 0.5 * MEMORY_MOST_BYTES_PER_S);
    arena_free(&arena);
}

CU_TestInfo gpu_limits_tests[] = {
    {"slower_narrow_formats_are_refused", slower_narrow_formats_are_refused},
    {"equal_and_absent_peaks_are_legal", equal_and_absent_peaks_are_legal},
    {"memory_that_nothing_has_is_refused", memory_that_nothing_has_is_refused},
    {"few_cores_beside_fast_memory_are_legal", few_cores_beside_fast_memory_are_legal},
    {"bundled_gpus_lie_within", bundled_gpus_lie_within},
    CU_TEST_INFO_NULL,
};
