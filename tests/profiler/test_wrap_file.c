#include "profiler/wrap_file.h"

#include <CUnit/CUnit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_new(void) {
    static char path[64];
    snprintf(path, sizeof path, "/tmp/wrap_file.XXXXXX");
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    return path;
}

static ActivityRecord kernel(const char *name, uint32_t id) {
    return (ActivityRecord){.kind = ACTIVITY_KERNEL,
                            .start_ns = 10 * id,
                            .end_ns = 10 * id + 5,
                            .correlation_id = id,
                            .device = 1,
                            .stream = 7,
                            .name = name};
}

static void some_write(const char *path) {
    WrapWriter *writer = wrap_writer_open(path, 1e9);
    CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
    ActivityRecord first = kernel("gemm", 1), second = kernel("a longer name", 2),
                   third = kernel("gemm", 3);
    third.kind = ACTIVITY_COPY;
    third.bytes = 4096;
    wrap_write_work(writer, &first);
    wrap_write_work(writer, &second);
    wrap_write_work(writer, &third);
    wrap_write_call(writer, &(WrapCall){5, 6, 2, 77});
    wrap_write_range(writer, &(WrapRange){1, 9, 77, true, "mw:gemm m=1"});
    wrap_write_range(writer, &(WrapRange){2, 8, 78, false, "mw:gemm m=2"});
    wrap_write_overhead(writer, 30);
    wrap_write_overhead(writer, 4);
    wrap_write_dropped(writer, 2);
    wrap_writer_close(writer);
}

static void what_is_written_is_read(void) {
    Arena arena = {0};
    const char *path = path_new();
    some_write(path);
    WrapLog log;
    CU_ASSERT_EQUAL_FATAL(wrap_log_load(path, &arena, &log).code, STATUS_OK);
    CU_ASSERT_EQUAL(log.process, getpid());
    CU_ASSERT_TRUE(log.complete);
    CU_ASSERT_EQUAL(log.num_dropped, 2);
    CU_ASSERT_EQUAL(log.overhead_ns, 34);
    CU_ASSERT_EQUAL_FATAL(log.num_work, 3);
    CU_ASSERT_EQUAL_FATAL(log.num_calls, 1);
    CU_ASSERT_EQUAL_FATAL(log.num_ranges, 2);
    CU_ASSERT_STRING_EQUAL(log.work[1].name, "a longer name");
    CU_ASSERT_EQUAL(log.work[1].start_ns, 20);
    CU_ASSERT_EQUAL(log.work[1].end_ns, 25);
    CU_ASSERT_EQUAL(log.work[1].correlation_id, 2);
    CU_ASSERT_EQUAL(log.work[1].device, 1);
    CU_ASSERT_EQUAL(log.work[1].stream, 7);
    CU_ASSERT_EQUAL(log.work[2].kind, ACTIVITY_COPY);
    CU_ASSERT_EQUAL(log.work[2].bytes, 4096);
    CU_ASSERT_PTR_EQUAL(log.work[0].name, log.work[2].name);
    CU_ASSERT_EQUAL(log.calls[0].start_ns, 5);
    CU_ASSERT_EQUAL(log.calls[0].thread, 77);
    CU_ASSERT_TRUE(log.ranges[0].all_threads);
    CU_ASSERT_FALSE(log.ranges[1].all_threads);
    CU_ASSERT_EQUAL(log.ranges[1].end_ns, 8);
    CU_ASSERT_STRING_EQUAL(log.ranges[1].text, "mw:gemm m=2");
    unlink(path);
    arena_free(&arena);
}

// A process may be killed at any byte: what is there is read, and never more than is whole.
static void a_file_cut_anywhere_is_read_as_far_as_it_goes(void) {
    Arena arena = {0};
    const char *path = path_new();
    some_write(path);
    struct stat file;
    CU_ASSERT_EQUAL_FATAL(stat(path, &file), 0);
    size_t num_before = 3;
    for (off_t size = file.st_size - 1; size >= 0; size--) {
        CU_ASSERT_EQUAL_FATAL(truncate(path, size), 0);
        WrapLog log;
        Status status = wrap_log_load(path, &arena, &log);
        CU_ASSERT_EQUAL(status.code, size < 48 ? STATUS_MACHINE : STATUS_OK); // a header
        CU_ASSERT_FALSE(log.complete);
        CU_ASSERT_TRUE(log.num_work <= num_before);
        num_before = log.num_work;
    }
    CU_ASSERT_EQUAL(num_before, 0);
    unlink(path);
    arena_free(&arena);
}

static void a_full_file_counts_what_it_lacks(void) {
    Arena arena = {0};
    const char *path = path_new();
    WrapWriter *writer = wrap_writer_open(path, 100000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
    ActivityRecord one = kernel("k", 1);
    for (int i = 0; i < 5000; i++) wrap_write_work(writer, &one);
    wrap_writer_close(writer);
    struct stat file;
    CU_ASSERT_EQUAL_FATAL(stat(path, &file), 0);
    CU_ASSERT_TRUE(file.st_size <= 100000 + 96);
    WrapLog log;
    CU_ASSERT_EQUAL_FATAL(wrap_log_load(path, &arena, &log).code, STATUS_OK);
    CU_ASSERT_TRUE(log.num_work > 2000);
    CU_ASSERT_EQUAL(log.num_work + log.num_dropped, 5000);
    CU_ASSERT_TRUE(log.complete);
    unlink(path);
    arena_free(&arena);
}

static void many_names_are_kept_apart(void) {
    Arena arena = {0};
    const char *path = path_new();
    WrapWriter *writer = wrap_writer_open(path, 1e9);
    CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
    for (uint32_t i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "kernel %u", i % 4000);
        ActivityRecord one = kernel(name, i);
        wrap_write_work(writer, &one);
    }
    wrap_writer_close(writer);
    WrapLog log;
    CU_ASSERT_EQUAL_FATAL(wrap_log_load(path, &arena, &log).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(log.num_work, 10000);
    int num_wrong = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "kernel %u", i % 4000);
        num_wrong += strcmp(log.work[i].name, expected) != 0;
    }
    CU_ASSERT_EQUAL(num_wrong, 0);
    unlink(path);
    arena_free(&arena);
}

CU_TestInfo wrap_file_tests[] = {
    {"what is written is read", what_is_written_is_read},
    {"a file cut anywhere is read as far as it goes",
     a_file_cut_anywhere_is_read_as_far_as_it_goes},
    {"a full file counts what it lacks", a_full_file_counts_what_it_lacks},
    {"many names are kept apart", many_names_are_kept_apart},
    CU_TEST_INFO_NULL,
};
