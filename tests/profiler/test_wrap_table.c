#include "profiler/wrap_table.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 32 };

// A program of one thread: each range launches one kernel of so many ns, or none if 0.
typedef struct {
    ActivityRecord work[MOST];
    WrapCall calls[MOST];
    WrapRange ranges[MOST];
    WrapLog log;
} Program;

static void marks(Program *program, const char *text, uint64_t kernel_ns) {
    WrapLog *log = &program->log;
    size_t i = log->num_ranges++;
    uint64_t now_ns = 1000 * i + 1000;
    program->ranges[i] =
        (WrapRange){.start_ns = now_ns, .end_ns = now_ns + 10, .thread = 1, .text = text};
    log->ranges = program->ranges;
    log->calls = program->calls;
    log->work = program->work;
    if (kernel_ns == 0) return;
    program->calls[log->num_calls++] = (WrapCall){now_ns + 1, now_ns + 2, (uint32_t)i + 1, 1};
    program->work[log->num_work++] = (ActivityRecord){.kind = ACTIVITY_KERNEL,
                                                      .start_ns = 1,
                                                      .end_ns = 1 + kernel_ns,
                                                      .correlation_id = (uint32_t)i + 1,
                                                      .name = "k"};
}

// m=1 took 100, 300, 110, 90, 120 ns: of the sorted 90 100 110 120 300 the median is 110, the
// quartiles are 100 and 120.
static void equal_shapes_make_one_row(void) {
    Arena arena = {0};
    Program program = {0};
    marks(&program, "mw:gemm dtype=bf16 m=1", 100);
    marks(&program, "mw:gemm dtype=bf16 m=2", 500);
    marks(&program, "mw:gemm dtype=bf16 m=1", 300);
    marks(&program, "mw:gemm dtype=bf16 m=1", 110);
    marks(&program, "mw:gemm dtype=bf16 m=1", 90);
    marks(&program, "mw:gemm dtype=bf16 m=1", 120);
    RangeTables tables = range_tables(&program.log, 1, &arena);
    CU_ASSERT_EQUAL_FATAL(tables.num_tables, 1);
    const RangeTable *gemm = tables.tables;
    CU_ASSERT_STRING_EQUAL(gemm->kind, "gemm");
    CU_ASSERT_EQUAL_FATAL(gemm->num_columns, 2);
    CU_ASSERT_STRING_EQUAL(gemm->columns[1], "m");
    CU_ASSERT_EQUAL_FATAL(gemm->num_rows, 2);
    CU_ASSERT_STRING_EQUAL(gemm->values[0], "bf16");
    CU_ASSERT_STRING_EQUAL(gemm->values[3], "2");
    CU_ASSERT_EQUAL(gemm->num_calls[0], 5);
    CU_ASSERT_DOUBLE_EQUAL(gemm->latency_s[0], 110e-9, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(gemm->spread_frac[0], 20.0 / 110, 1e-9);
    CU_ASSERT_EQUAL(gemm->num_calls[1], 1);
    CU_ASSERT_DOUBLE_EQUAL(gemm->latency_s[1], 500e-9, 1e-15);
    CU_ASSERT_EQUAL(gemm->spread_frac[1], 0);
    arena_free(&arena);
}

// Kinds are sorted; those of a second process go into the same tables.
static void processes_share_tables(void) {
    Arena arena = {0};
    Program programs[2] = {0};
    marks(&programs[0], "mw:nccl size=1", 100);
    marks(&programs[0], "mw:gemm m=1", 100);
    marks(&programs[1], "mw:nccl size=1", 200);
    marks(&programs[1], "mw:nccl size=2", 300);
    const WrapLog logs[] = {programs[0].log, programs[1].log};
    RangeTables tables = range_tables(logs, 2, &arena);
    CU_ASSERT_EQUAL_FATAL(tables.num_tables, 2);
    CU_ASSERT_STRING_EQUAL(tables.tables[0].kind, "gemm");
    CU_ASSERT_EQUAL_FATAL(tables.tables[1].num_rows, 2);
    CU_ASSERT_EQUAL(tables.tables[1].num_calls[0], 2);
    CU_ASSERT_DOUBLE_EQUAL(tables.tables[1].latency_s[0], 150e-9, 1e-15);
    arena_free(&arena);
}

static void ranges_without_kernels_are_counted_and_left_out(void) {
    Arena arena = {0};
    Program program = {0};
    marks(&program, "mw:gemm m=1", 0);
    marks(&program, "mw:gemm m=2", 100);
    RangeTables tables = range_tables(&program.log, 1, &arena);
    CU_ASSERT_EQUAL(tables.num_ranges, 2);
    CU_ASSERT_EQUAL(tables.num_empty, 1);
    CU_ASSERT_EQUAL_FATAL(tables.num_tables, 1);
    CU_ASSERT_EQUAL_FATAL(tables.tables[0].num_rows, 1);
    CU_ASSERT_STRING_EQUAL(tables.tables[0].values[0], "2");
    arena_free(&arena);
}

// None of these can be a row: a kind is the name of a file, and a value must not break a line.
static void malformed_ranges_are_counted_and_left_out(void) {
    static const char *const MALFORMED[] = {
        "mw:",           "mw:gemm",         "mw:../gemm m=1",
        "mw:Gemm m=1",   "mw:kernels m=1",  "mw:gaps m=1",
        "mw:gemm m",     "mw:gemm m=",      "mw:gemm =1",
        "mw:gemm m=1,2", "mw:gemm m=\"1\"", "mw:gemm m=1 m=2",
        "mw:gemm n=1",   "mw:gemm m=1 n=1", "mw:gemm latency_ms=1",
    };
    enum { NUM_MALFORMED = sizeof MALFORMED / sizeof *MALFORMED };
    Arena arena = {0};
    Program program = {0};
    marks(&program, "mw:gemm m=1", 100);
    for (int i = 0; i < NUM_MALFORMED; i++) marks(&program, MALFORMED[i], 100);
    RangeTables tables = range_tables(&program.log, 1, &arena);
    CU_ASSERT_EQUAL(tables.num_malformed, NUM_MALFORMED);
    CU_ASSERT_STRING_EQUAL(tables.malformed, "mw:");
    CU_ASSERT_EQUAL_FATAL(tables.num_tables, 1);
    CU_ASSERT_EQUAL(tables.tables[0].num_rows, 1);
    arena_free(&arena);
}

static void the_file_is_a_kernel_table(void) {
    Arena arena = {0};
    Program program = {0};
    marks(&program, "mw:gemm gemm_dtype=bfloat16 m=128", 2500);
    RangeTables tables = range_tables(&program.log, 1, &arena);
    CU_ASSERT_EQUAL_FATAL(tables.num_tables, 1);
    char path[] = "/tmp/wrap_table.XXXXXX", text[256] = "";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(range_table_write(&tables.tables[0], path).code, STATUS_OK);
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_TRUE(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    CU_ASSERT_STRING_EQUAL(text, "gemm_dtype,m,latency_ms,num_calls,spread_frac\n"
                                 "bfloat16,128,0.0025,1,0\n");
    close(fd);
    unlink(path);
    arena_free(&arena);
}

CU_TestInfo wrap_table_tests[] = {
    {"equal shapes make one row", equal_shapes_make_one_row},
    {"processes share tables", processes_share_tables},
    {"ranges without kernels are counted and left out",
     ranges_without_kernels_are_counted_and_left_out},
    {"malformed ranges are counted and left out", malformed_ranges_are_counted_and_left_out},
    {"the file is a kernel table", the_file_is_a_kernel_table},
    CU_TEST_INFO_NULL,
};
