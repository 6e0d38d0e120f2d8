#include "profiler/cupti/buffer_file.h"

#include "profiler/activity.h"

#include <CUnit/CUnit.h>

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE_CUPTI MESHWRIGHT_BUILD_DIR "/fake/libcupti.so.13"

static struct {
    void (*launch)(const char *name, uint32_t thread, uint64_t duration_ns);
    int (*play)(const char *path);
} fake;

static char folder[] = "/tmp/buffers.XXXXXX";

static void fake_load(void) {
    setenv("MESHWRIGHT_CUPTI", FAKE_CUPTI, 1);
    void *library = dlopen(FAKE_CUPTI, RTLD_NOW);
    CU_ASSERT_PTR_NOT_NULL_FATAL(library);
    void *found[] = {dlsym(library, "fake_launch"), dlsym(library, "fake_play")};
    memcpy(&fake.launch, &found[0], sizeof *found);
    memcpy(&fake.play, &found[1], sizeof *found);
}

static void record_into(const char *prefix) {
    setenv("MESHWRIGHT_CUPTI_RECORD", prefix, 1);
}

// The only file in the folder.
static const char *file_made(void) {
    static char path[256];
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*.cupti", folder);
    CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &found), 0);
    CU_ASSERT_EQUAL(found.gl_pathc, 1);
    snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
    globfree(&found);
    return path;
}

static const char *const NAMES[] = {"gemm", "void softmax<float>(float *, int)", ""};

static void launch_some(ActivityLog *log) {
    for (int i = 0; i < 7; i++) {
        if (i == 2) activity_tag(log, 42);
        fake.launch(NAMES[i % 3], 1, (uint64_t)(100 * (i + 1)));
        ActivityRecords got; // a flush for each: several buffers
        if (i < 6) CU_ASSERT_EQUAL(activity_take(log, &got).code, STATUS_OK);
    }
    activity_untag(log);
}

static void assert_played(const ActivityRecords *got) {
    CU_ASSERT_EQUAL_FATAL(got->num_records, 7);
    CU_ASSERT_EQUAL(got->num_dropped, 0);
    for (size_t i = 0; i < 7; i++) {
        const ActivityRecord *record = &got->records[i];
        CU_ASSERT_STRING_EQUAL(record->name, NAMES[i % 3]);
        CU_ASSERT_EQUAL(record->end_ns - record->start_ns, 100 * (i + 1));
        CU_ASSERT_EQUAL(record->tag, i < 2 ? 0 : 42);
        CU_ASSERT_EQUAL(record->device, 1);
        CU_ASSERT_EQUAL(record->stream, 7);
    }
}

static void what_is_recorded_plays(void) {
    fake_load();
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s/some", folder);
    record_into(prefix);
    ActivityLog *log;
    ActivityRecords got;
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK);
    launch_some(log);
    CU_ASSERT_EQUAL(activity_take(log, &got).code, STATUS_OK);
    activity_stop(log);
    unsetenv("MESHWRIGHT_CUPTI_RECORD");

    const char *path = file_made();
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK);
    CU_ASSERT_EQUAL(fake.play(path), 1);
    CU_ASSERT_EQUAL(activity_take(log, &got).code, STATUS_OK);
    assert_played(&got);
    activity_stop(log);
    file_made(); // nothing was recorded without being asked for
    unlink(path);
    rmdir(folder);
}

static void what_cannot_be_written_is_said(void) {
    fake_load();
    ActivityLog *log;
    record_into("/tmp/no such folder/some");
    Status status = activity_start(&log);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.text, "/tmp/no such folder/some."));
    unsetenv("MESHWRIGHT_CUPTI_RECORD");
    CU_ASSERT_EQUAL_FATAL(activity_start(&log).code, STATUS_OK); // the place is free again
    activity_stop(log);
}

// A disk that is full: the first buffer fails, and the next take says so.
static void a_full_disk_is_said(void) {
    CuptiLibrary cupti;
    FILE *file = fopen("/dev/full", "wbe");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fake_load();
    CU_ASSERT_EQUAL_FATAL(cupti_library_load(&cupti).code, STATUS_OK);
    _Alignas(8) uint8_t buffer[sizeof(CUpti_ActivityKernel10)] = {0};
    CUpti_ActivityKernel10 *kernel = (void *)buffer;
    kernel->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel->name = "k";
    Status status = cupti_file_add(file, cupti.next_record, buffer, sizeof buffer);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text,
                           "CUPTI's buffers cannot be written: No space left on device");
    CU_ASSERT_STRING_EQUAL(kernel->name, "k");
    fclose(file);
}

CU_TestInfo buffer_file_tests[] = {
    {"what is recorded plays", what_is_recorded_plays},
    {"what cannot be written is said", what_cannot_be_written_is_said},
    {"a full disk is said", a_full_disk_is_said},
    CU_TEST_INFO_NULL,
};
