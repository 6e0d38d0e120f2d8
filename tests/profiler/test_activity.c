#include "profiler/activity.h"

#include "profiler/cupti/cupti_library.h"

#include <CUnit/CUnit.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_CUPTI MESHWRIGHT_BUILD_DIR "/fake/libcupti.so.13"

typedef struct {
    void (*launch)(const char *name, uint32_t thread, uint64_t duration_ns);
    void (*drop)(size_t num_dropped);
    void (*refuse)(CUptiResult result);
} Fake;

// The library stands in for CUPTI: there is no GPU where the tests run.
static Fake fake_load(void) {
    Fake fake;
    setenv("MESHWRIGHT_CUPTI", FAKE_CUPTI, 1);
    void *library = dlopen(FAKE_CUPTI, RTLD_NOW);
    CU_ASSERT_PTR_NOT_NULL_FATAL(library);
    void *found[] = {dlsym(library, "fake_launch"), dlsym(library, "fake_drop"),
                     dlsym(library, "fake_refuse")};
    memcpy(&fake.launch, &found[0], sizeof *found);
    memcpy(&fake.drop, &found[1], sizeof *found);
    memcpy(&fake.refuse, &found[2], sizeof *found);
    return fake;
}

static void launches_carry_the_innermost_tag(void) {
    Fake fake = fake_load();
    ActivityLog *log;
    ActivityRecords got;
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK);
    fake.launch("before", 1, 100);
    activity_tag(log, 7);
    fake.launch("outer", 1, 200);
    activity_tag(log, 8);
    fake.launch("inner", 1, 300);
    activity_untag(log);
    fake.launch("outer", 1, 400);
    activity_untag(log);
    fake.launch("after", 1, 500);
    CU_ASSERT_EQUAL(activity_take(log, &got).code, STATUS_OK);
    static const uint64_t TAGS[] = {0, 7, 8, 7, 0};
    CU_ASSERT_EQUAL_FATAL(got.num_records, 5);
    CU_ASSERT_EQUAL(got.num_dropped, 0);
    for (size_t i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(got.records[i].tag, TAGS[i]);
        CU_ASSERT_EQUAL(got.records[i].end_ns - got.records[i].start_ns, 100 * (i + 1));
    }
    activity_stop(log);
}

static void the_log_goes_on_empty_and_counts_what_was_dropped(void) {
    Fake fake = fake_load();
    ActivityLog *log;
    ActivityRecords got;
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK);
    fake.launch("a", 1, 100);
    fake.drop(3);
    CU_ASSERT_EQUAL(activity_take(log, &got).code, STATUS_OK);
    CU_ASSERT_EQUAL(got.num_records, 1);
    CU_ASSERT_EQUAL(got.num_dropped, 3);
    CU_ASSERT_EQUAL(activity_take(log, &got).code, STATUS_OK);
    CU_ASSERT_EQUAL(got.num_records, 0);
    CU_ASSERT_EQUAL(got.num_dropped, 0);
    activity_stop(log);
    fake.launch("not recorded", 1, 100);
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK);
    CU_ASSERT_EQUAL(activity_take(log, &got).code, STATUS_OK);
    CU_ASSERT_EQUAL(got.num_records, 0);
    activity_stop(log);
}

static void refusals_say_why(void) {
    Fake fake = fake_load();
    ActivityLog *log, *second;
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK);
    Status status = activity_start(&second);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "GPU activity is being recorded already");
    CU_ASSERT_PTR_NULL(second);
    status = activity_untag(log);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    activity_stop(log);
    activity_stop(NULL);
    fake.refuse(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    status = activity_start(&log);
    fake.refuse(CUPTI_SUCCESS);
    CU_ASSERT_STRING_EQUAL(status.text, "CUPTI: cuptiActivityEnable: MADE_UP_FAILURE (35)");
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK); // the place is free again
    activity_stop(log);
}

CU_TestInfo activity_tests[] = {
    {"launches carry the innermost tag", launches_carry_the_innermost_tag},
    {"the log goes on empty and counts what was dropped",
     the_log_goes_on_empty_and_counts_what_was_dropped},
    {"refusals say why", refusals_say_why},
    CU_TEST_INFO_NULL,
};
