#include "sim/children.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <signal.h>
#include <time.h>
#include <unistd.h>

static Status square(void *context, int run) {
    ((int *)context)[run] = run * run;
    return status_ok();
}

static void each_run_answers_for_itself(void) {
    enum { NUM_RUNS = 40 };
    void *squares;
    CU_ASSERT_EQUAL_FATAL(shared_open(NUM_RUNS * sizeof(int), &squares).code, STATUS_OK);
    CU_ASSERT_EQUAL(children_run(NUM_RUNS, square, squares).code, STATUS_OK);
    for (int run = 0; run < NUM_RUNS; run++) CU_ASSERT_EQUAL(((int *)squares)[run], run * run);
}

// The first run notes its process and would go on for a minute; the second fails.
static Status fail_second(void *context, int run) {
    int *shared = context;
    if (run == 1) {
        while (((volatile int *)shared)[0] == 0) usleep(1000);
        if (shared[1] == SIGKILL) raise(SIGKILL);
        return status_error(STATUS_INVALID, "run %d is refused", run);
    }
    shared[0] = getpid();
    sleep(60);
    return status_ok();
}

static void assert_stops(int signal, const char *sentence) {
    void *memory;
    CU_ASSERT_EQUAL_FATAL(shared_open(2 * sizeof(int), &memory).code, STATUS_OK);
    int *shared = memory;
    shared[1] = signal;
    time_t start = time(NULL);
    Status status = children_run(2, fail_second, memory);
    CU_ASSERT(time(NULL) - start < 30);
    CU_ASSERT_STRING_EQUAL(status.text, sentence);
    CU_ASSERT_EQUAL(status.code, signal == SIGKILL ? STATUS_MACHINE : STATUS_INVALID);
    CU_ASSERT(kill(shared[0], 0) != 0); // the other is gone
}

static void the_first_failure_stops_the_others(void) {
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) return; // they run one after the other
    assert_stops(0, "run 1 is refused");
    assert_stops(SIGKILL, "the simulator crashed: Killed; in run 2 of 2");
}

// As base/arena.c does where there is no memory.
static Status exit_without_a_word(void *context, int run) {
    (void)context;
    if (run == 0) _exit(STATUS_MACHINE);
    return status_ok();
}

static void an_end_without_a_sentence_is_lack_of_memory(void) {
    Status status = children_run(2, exit_without_a_word, NULL);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "out of memory in run 1 of 2");
}

CU_TestInfo children_tests[] = {
    {"an_end_without_a_sentence_is_lack_of_memory", an_end_without_a_sentence_is_lack_of_memory},
    {"each_run_answers_for_itself", each_run_answers_for_itself},
    {"the_first_failure_stops_the_others", the_first_failure_stops_the_others},
    CU_TEST_INFO_NULL,
};
