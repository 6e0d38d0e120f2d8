// Rows of the tables that `profile` writes, and whether `calibrate` knows their columns.
#include "profiler/profile_rows.h"

#include "calibrate/fit_nccl.h"
#include "calibrate/kinds.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

static int num_cells(const char *line) {
    int n = 1;
    for (; *line; line++) n += *line == ',';
    return n;
}

// The keys of a table are the columns that calibrate tells shapes apart by, in their order.
static void keys_are_what_calibrate_reads(void) {
    static const SweepKind READ[] = {SWEEP_GEMM, SWEEP_ATTENTION, SWEEP_NCCL};
    Arena arena = {0};
    for (size_t i = 0; i < sizeof READ / sizeof *READ; i++) {
        const Kind *kind = kind_find(SWEEP_NAMES[READ[i]]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(kind);
        const char *expected = "";
        int num_columns = 0;
        for (; kind->columns[num_columns]; num_columns++)
            expected = arena_printf(&arena, "%s%s,", expected, kind->columns[num_columns]);
        int num_keys;
        const char *header = profile_header(READ[i], &num_keys);
        CU_ASSERT_EQUAL(num_keys, num_columns);
        CU_ASSERT_EQUAL(strncmp(header, expected, strlen(expected)), 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(header, ",latency_ms,"));
    }
    arena_free(&arena);
}

static void keys_have_as_many_cells_as_the_header_says(void) {
    Arena arena = {0};
    for (int kind = 0; kind < NUM_SWEEPS; kind++) {
        Sweep sweep = sweep_new((SweepKind)kind, false, 2, &arena);
        int num_keys;
        profile_header((SweepKind)kind, &num_keys);
        for (int i = 0; i < sweep.num_requests; i++)
            CU_ASSERT_EQUAL(num_cells(profile_key((SweepKind)kind, &sweep.requests[i], &arena)),
                            num_keys);
    }
    arena_free(&arena);
}

static void keys_of_attention_and_teams(void) {
    Arena arena = {0};
    GpuRequest request = {
        .kind = GPU_WORK_ATTENTION,
        .attention = {.batch = 4, .tokens = 2048, .heads = 32, .kv_heads = 8, .head_dim = 128}};
    CU_ASSERT_STRING_EQUAL(profile_key(SWEEP_ATTENTION, &request, &arena),
                           "bfloat16,bfloat16,4,2048,32,8,128,0");
    request = (GpuRequest){.kind = GPU_WORK_TEAM, .team = {TEAM_ALL_TO_ALL, 8, 1 << 20}};
    CU_ASSERT_STRING_EQUAL(profile_key(SWEEP_NCCL, &request, &arena),
                           "alltoall,bfloat16,8,1048576");
    request.gemm = (GemmRequest){.dtype = NUMBER_BFLOAT16, .m = 1, .n = 2, .k = 3};
    CU_ASSERT_STRING_EQUAL(profile_key(SWEEP_CONTENTION, &request, &arena),
                           "bfloat16,1,2,3,alltoall,8,0,1048576");
    request.beside.num_blocks = 16;
    CU_ASSERT_STRING_EQUAL(profile_key(SWEEP_CONTENTION, &request, &arena),
                           "bfloat16,1,2,3,copy,1,16,0");
    bool known = false; // the format, to calibrate
    for (const char *const *name = NCCL_ELEMENT_NAMES; *name; name++)
        known |= strcmp(*name, "bfloat16") == 0;
    CU_ASSERT(known);
    arena_free(&arena);
}

// 2 ms beside and 1.6 ms alone: a quarter longer.
static void contention_is_said_as_a_slowdown(void) {
    Arena arena = {0};
    Contention contention = {.alone_s = 1.6e-3,
                             .beside_alone_bytes_per_s = 8e11,
                             .both = {.latency_s = 2e-3,
                                      .batch_latency_s = 2e-3,
                                      .num_samples = 6,
                                      .beside_bytes_per_s = 7.5e11}};
    GpuRequest request = {.kind = GPU_WORK_BESIDE, .beside = {.num_blocks = 16}};
    DeviceWindow window = {.sm_clock_hz = NAN, .temperature_c = NAN};
    const char *cells = profile_contention_cells(&request, &contention, &window, &arena);
    CU_ASSERT_STRING_EQUAL(cells, "1.6,0.25,8e+11,7.5e+11,2,2,0,6,events,,,,");
    int num_keys;
    CU_ASSERT_EQUAL(num_cells(cells) + 8, num_cells(profile_header(SWEEP_CONTENTION, &num_keys)));
    arena_free(&arena);
}

CU_TestInfo profile_rows_tests[] = {
    {"keys_are_what_calibrate_reads", keys_are_what_calibrate_reads},
    {"keys_have_as_many_cells_as_the_header_says", keys_have_as_many_cells_as_the_header_says},
    {"keys_of_attention_and_teams", keys_of_attention_and_teams},
    {"contention_is_said_as_a_slowdown", contention_is_said_as_a_slowdown},
    CU_TEST_INFO_NULL,
};
