#include "base/times_file.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <unistd.h>

static const int COUNTS[] = {2, 0, 3};

static void path_make(char *path) {
    const int descriptor = mkstemp(path);
    CU_ASSERT_FATAL(descriptor >= 0);
    close(descriptor);
}

// Begin of instruction i of a row in a step; it takes half a second.
static double start_of(int step, int row, int i) {
    return 100.0 * step + 10.0 * row + i;
}

static void steps_write(const char *path, int num_steps) {
    TimesFile file;
    CU_ASSERT_EQUAL(times_file_create(path, 3, COUNTS, &file).code, STATUS_OK);
    for (int step = 0; step < num_steps; step++)
        for (int row = 0; row < 3; row++) {
            double pairs[6];
            for (int i = 0; i < COUNTS[row]; i++) {
                pairs[2 * i] = start_of(step, row, i);
                pairs[2 * i + 1] = pairs[2 * i] + 0.5;
            }
            CU_ASSERT_EQUAL(times_file_add(&file, row, pairs).code, STATUS_OK);
        }
    CU_ASSERT_EQUAL(times_file_close(&file).code, STATUS_OK);
}

static void what_was_written_is_read(void) {
    char path[] = "/tmp/meshwright-times-XXXXXX";
    Arena arena = {0};
    TimesFile file;
    double start_s[3], end_s[3];
    path_make(path);
    steps_write(path, 4);
    CU_ASSERT_EQUAL_FATAL(times_file_open(path, &arena, &file).code, STATUS_OK);
    CU_ASSERT_EQUAL(file.num_rows, 3);
    CU_ASSERT_EQUAL(file.num_steps, 4);
    for (int step = 3; step >= 0; step--)
        for (int row = 0; row < 3; row++) {
            CU_ASSERT_EQUAL(file.counts[row], COUNTS[row]);
            CU_ASSERT_EQUAL(times_file_read(&file, step, row, start_s, end_s).code, STATUS_OK);
            for (int i = 0; i < COUNTS[row]; i++) {
                CU_ASSERT_EQUAL(start_s[i], start_of(step, row, i));
                CU_ASSERT_EQUAL(end_s[i], start_s[i] + 0.5);
            }
        }
    CU_ASSERT_EQUAL(times_file_read(&file, 4, 0, start_s, end_s).code, STATUS_MACHINE);
    CU_ASSERT_EQUAL(times_file_close(&file).code, STATUS_OK);
    arena_free(&arena);
    unlink(path);
}

static void a_step_that_is_cut_off_does_not_count(void) {
    char path[] = "/tmp/meshwright-times-XXXXXX";
    Arena arena = {0};
    TimesFile file;
    path_make(path);
    steps_write(path, 2);
    CU_ASSERT_EQUAL_FATAL(times_file_open(path, &arena, &file).code, STATUS_OK);
    const int64_t bytes = file.head_bytes + 2 * file.step_bytes;
    times_file_close(&file);
    CU_ASSERT_EQUAL(truncate(path, bytes - 1), 0);
    CU_ASSERT_EQUAL_FATAL(times_file_open(path, &arena, &file).code, STATUS_OK);
    CU_ASSERT_EQUAL(file.num_steps, 1);
    times_file_close(&file);
    arena_free(&arena);
    unlink(path);
}

static void other_files_are_refused(void) {
    char path[] = "/tmp/meshwright-times-XXXXXX";
    Arena arena = {0};
    TimesFile file;
    path_make(path);
    CU_ASSERT_EQUAL(times_file_open(path, &arena, &file).code, STATUS_MACHINE); // empty
    FILE *stream = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    fputs("{\"schema\": 1, \"plan\": \"of another kind\"}", stream);
    fclose(stream);
    CU_ASSERT_EQUAL(times_file_open(path, &arena, &file).code, STATUS_MACHINE);
    unlink(path);
    CU_ASSERT_EQUAL(times_file_open(path, &arena, &file).code, STATUS_MACHINE);
    arena_free(&arena);
}

CU_TestInfo times_file_tests[] = {
    {"what_was_written_is_read", what_was_written_is_read},
    {"a_step_that_is_cut_off_does_not_count", a_step_that_is_cut_off_does_not_count},
    {"other_files_are_refused", other_files_are_refused},
    CU_TEST_INFO_NULL,
};
