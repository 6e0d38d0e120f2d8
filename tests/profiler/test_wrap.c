#include "profiler/wrap.h"

#include <CUnit/CUnit.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of the build, see tests/CMakeLists.txt.
#define LIBRARY MESHWRIGHT_BUILD_DIR "/libmeshwright-wrap.so"
#define FAKE_CUPTI MESHWRIGHT_BUILD_DIR "/fake/libcupti.so.13"
#define PROGRAM MESHWRIGHT_BUILD_DIR "/fake-program"

static char folder[64], answer[65536];

// Wraps the words of a line; the summary goes into answer.
static Status wraps(const char *line, bool json) {
    char words[512], *position = NULL;
    const char *argv[16] = {0};
    int num_words = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok_r(words, " ", &position); word; word = strtok_r(NULL, " ", &position))
        argv[num_words++] = word;
    snprintf(folder, sizeof folder, "/tmp/wrap.XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    setenv("MESHWRIGHT_WRAP", LIBRARY, 1);
    setenv("MESHWRIGHT_CUPTI", FAKE_CUPTI, 1);

    FILE *caught = tmpfile();
    CU_ASSERT_PTR_NOT_NULL_FATAL(caught);
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    dup2(fileno(caught), STDOUT_FILENO);
    Status status = wrap_run(argv, folder, json, false);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    rewind(caught);
    answer[fread(answer, 1, sizeof answer - 1, caught)] = '\0';
    fclose(caught);
    unsetenv("MESHWRIGHT_WRAP");
    unsetenv("MESHWRIGHT_CUPTI");
    return status;
}

// The file in the folder; it goes.
static const char *text_of(const char *name) {
    static char text[65536];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL(file);
    text[0] = '\0';
    if (!file) return text;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    return text;
}

// The folder has nothing else than what was read.
static void assert_all_read(void) {
    char manifest[256];
    snprintf(manifest, sizeof manifest, "%s/.meshwright.json", folder);
    unlink(manifest);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void nothing_recorded_is_explained(void) {
    static const struct {
        const char *line, *sentence;
    } ROWS[] = {
        {"true", "nothing was recorded: true did not use CUDA: no process of it initialised the "
                 "driver with our environment"},
        {"false -x",
         "nothing was recorded: false -x (exit status 1) did not use CUDA: no process of it "
         "initialised the driver with our environment"},
        {PROGRAM " idle", "nothing was recorded: " PROGRAM
                          " idle initialised CUDA, but no kernel, copy or set of its ended"},
        {PROGRAM " kill",
         "nothing was recorded: " PROGRAM
         " kill (ended by signal 9) initialised CUDA, but was killed before its first "
         "records were handed over"},
        {PROGRAM " refused", "nothing was recorded of " PROGRAM
                             " refused: CUPTI: cuptiActivityEnable: MADE_UP_FAILURE (35)"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Status status = wraps(ROWS[i].line, false);
        CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
        CU_ASSERT_STRING_EQUAL(status.text, ROWS[i].sentence);
        if (strcmp(status.text, ROWS[i].sentence) != 0) printf("%s\n", status.text);
        CU_ASSERT_STRING_EQUAL(answer, "");
        assert_all_read(); // a folder that was there stays
    }
}

static void a_program_that_is_not_there_is_refused(void) {
    Status status = wraps("/nowhere/program", false);
    CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
    CU_ASSERT_STRING_EQUAL(status.text, "/nowhere/program: No such file or directory");
    assert_all_read();
}

static void a_missing_library_is_said(void) {
    setenv("MESHWRIGHT_WRAP", "/nowhere/library.so", 1);
    const char *const argv[] = {"true", NULL};
    Status status = wrap_run(argv, "/tmp/wrap-not-made", false, false);
    unsetenv("MESHWRIGHT_WRAP");
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "/nowhere/library.so: No such file or directory");
    CU_ASSERT_NOT_EQUAL(access("/tmp/wrap-not-made", F_OK), 0);
}

// The program of fake_program.c: gemm 1000, 1200, 3000 and 10 ns, elsewhere twice 7000, before
// 5000, norm 400: 24610 ns in all. The norm lies in the range of gemm m=128, which is 3400 with it;
// the step holds 10 and, of another thread, 7000.
static void a_program_is_recorded(void) {
    Status status = wraps(PROGRAM, false);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    if (status.code != STATUS_OK) printf("%s\n", status.text);
    CU_ASSERT_STRING_EQUAL(text_of("gemm.csv"), "gemm_dtype,m,latency_ms,num_calls,spread_frac\n"
                                                "bfloat16,64,0.0011,2,0.09091\n"
                                                "bfloat16,128,0.0034,1,0\n");
    CU_ASSERT_STRING_EQUAL(text_of("norm.csv"), "rows,latency_ms,num_calls,spread_frac\n"
                                                "4,0.0004,1,0\n");
    CU_ASSERT_STRING_EQUAL(text_of("step.csv"), "index,latency_ms,num_calls,spread_frac\n"
                                                "1,0.00701,1,0\n");
    const char *kernels = text_of("kernels.csv");
    CU_ASSERT_PTR_NOT_NULL(strstr(kernels, "kernel,elsewhere,2,1.4e-05,7e-06,7e-06,7e-06,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(kernels, "kernel,gemm,4,5.21e-06,1.3025e-06,1e-08,3e-06,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text_of("gaps.csv"), ",1,all,8,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, PROGRAM ": exit status 0\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "1 processes, 1 GPUs: 8 kernels, 0 copies, 0 sets\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "1 of 6 marked ranges launched no kernel\n"));
    assert_all_read();
}

static const char *const FILES[] = {"gemm.csv", "norm.csv", "step.csv", "kernels.csv", "gaps.csv"};
enum { NUM_FILES = sizeof FILES / sizeof *FILES };

// The answer says it, and what there is is reported.
static void dropped_records_are_said(void) {
    for (int json = 0; json < 2; json++) {
        Status status = wraps(PROGRAM " drop", json);
        CU_ASSERT_EQUAL(status.code, STATUS_OK);
        CU_ASSERT_PTR_NOT_NULL(strstr(answer, json ? "\"num_dropped\":\t3,"
                                                   : "\ndropped records  3: the figures are too "
                                                     "low\n"));
        for (int i = 0; i < NUM_FILES; i++) CU_ASSERT_TRUE(*text_of(FILES[i]) != 0);
        assert_all_read();
    }
    CU_ASSERT_EQUAL(wraps(PROGRAM, false).code, STATUS_OK);
    CU_ASSERT_PTR_NULL(strstr(answer, "dropped"));
    for (int i = 0; i < NUM_FILES; i++) text_of(FILES[i]);
    assert_all_read();
}

static void a_program_that_fails_is_reported_nevertheless(void) {
    Status status = wraps(PROGRAM " 5", true);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, PROGRAM " 5 ended with exit status 5; what it did until "
                                                "then is reported");
    CU_ASSERT_EQUAL(answer[0], '{');
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"exit_code\":\t5"));
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "\"num_kernels\":\t8"));
    for (int i = 0; i < NUM_FILES; i++) CU_ASSERT_TRUE(*text_of(FILES[i]) != 0);
    assert_all_read();
}

// With --json standard output is one document, whatever the program prints.
static void the_program_does_not_print_into_the_answer(void) {
    int before = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    Status status = wraps("echo hello", true);
    dup2(before, STDERR_FILENO);
    close(before);
    close(nowhere);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(answer, "");
    assert_all_read();
    status = wraps("echo hello", false);
    CU_ASSERT_STRING_EQUAL(answer, "hello\n");
    assert_all_read();
}

CU_TestInfo wrap_tests[] = {
    {"nothing recorded is explained", nothing_recorded_is_explained},
    {"a program that is not there is refused", a_program_that_is_not_there_is_refused},
    {"a missing library is said", a_missing_library_is_said},
    {"a program is recorded", a_program_is_recorded},
    {"dropped records are said", dropped_records_are_said},
    {"a program that fails is reported nevertheless",
     a_program_that_fails_is_reported_nevertheless},
    {"the program does not print into the answer", the_program_does_not_print_into_the_answer},
    CU_TEST_INFO_NULL,
};
