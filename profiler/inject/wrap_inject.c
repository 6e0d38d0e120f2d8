#include "profiler/inject/wrap_inject.h"

#include "profiler/cupti/activity_read.h"
#include "profiler/cupti/cupti_session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

// One per process, as CUPTI's callbacks and atexit carry no pointer of ours.
static struct {
    pthread_once_t begun, calls_begun;
    pthread_mutex_t lock; // of the writer: buffers come from several threads
    CuptiLibrary cupti;
    WrapWriter *writer; // NULL where nothing is recorded, and after the end
    pid_t process;      // a forked child inherits all this, and is not recorded
    atomic_bool active;
} wrap = {.begun = PTHREAD_ONCE_INIT,
          .calls_begun = PTHREAD_ONCE_INIT,
          .lock = PTHREAD_MUTEX_INITIALIZER};

static bool wrap_active(void) {
    return atomic_load(&wrap.active) && getpid() == wrap.process;
}

// --- Records from CUPTI

static void overhead_write(const CUpti_ActivityOverhead3 *overhead) {
    if (overhead->start > 0 && overhead->end >= overhead->start)
        wrap_write_overhead(wrap.writer, overhead->end - overhead->start);
    if (overhead->overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL)
        free(overhead->overheadData); // ours to free, by cupti_activity.h
}

static void call_write(const CUpti_ActivityAPI *call) {
    WrapCall record = {.start_ns = call->start,
                       .end_ns = call->end,
                       .correlation_id = call->correlationId,
                       .thread = call->threadId};
    wrap_write_call(wrap.writer, &record);
}

static void activity_write(const CUpti_Activity *activity) {
    ActivityRecord work;
    switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        call_write((const void *)activity);
        return;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        overhead_write((const void *)activity);
        return;
    default:
        break;
    }
    ActivityClass class = activity_read(activity, &work);
    if (class == ACTIVITY_WORK) wrap_write_work(wrap.writer, &work);
    if (class == ACTIVITY_INCOMPLETE) wrap_write_dropped(wrap.writer, 1);
}

static void on_buffer(void *user, CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes) {
    (void)user;
    if (!wrap_active()) return;
    CUpti_Activity *activity = NULL;
    CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED; // what the end of a buffer says
    pthread_mutex_lock(&wrap.lock);
    while (wrap.writer && (result = next(buffer, valid_bytes, &activity)) == CUPTI_SUCCESS)
        activity_write(activity);
    if (wrap.writer && result != CUPTI_ERROR_MAX_LIMIT_REACHED)
        wrap_write_dropped(wrap.writer, 1);          // as activity_decode counts it
    if (wrap.writer) wrap_writer_flush(wrap.writer); // it outlives a process that is killed
    pthread_mutex_unlock(&wrap.lock);
}

static void on_dropped(void *user, size_t num_dropped) {
    (void)user;
    if (!wrap_active()) return;
    pthread_mutex_lock(&wrap.lock);
    if (wrap.writer) wrap_write_dropped(wrap.writer, num_dropped);
    pthread_mutex_unlock(&wrap.lock);
}

// --- Begin and end

// The first free FOLDER/PID[-N]SUFFIX: a process may become another program and begin anew.
static void path_new(const char *folder, const char *suffix, char *path, size_t size) {
    snprintf(path, size, "%s/%ld%s", folder, (long)getpid(), suffix);
    for (int i = 1; i < 1000 && access(path, F_OK) == 0; i++)
        snprintf(path, size, "%s/%ld-%d%s", folder, (long)getpid(), i, suffix);
}

static void refusal_write(const char *folder, const char *why) {
    char path[4096];
    path_new(folder, WRAP_REFUSED_SUFFIX, path, sizeof path);
    FILE *file = fopen(path, "we");
    if (!file) return;
    fprintf(file, "%s\n", why);
    fclose(file);
}

// The work that the process has not waited for is lost; CUPTI advises this very place.
static void at_exit(void) {
    if (!wrap_active()) return;
    cupti_session_flush();
    atomic_store(&wrap.active, false);
    pthread_mutex_lock(&wrap.lock);
    wrap_writer_close(wrap.writer);
    wrap.writer = NULL;
    pthread_mutex_unlock(&wrap.lock);
}

static Status session_begin(void) {
    static const CUpti_ActivityKind KINDS[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_OVERHEAD,
    };
    TRY(cupti_library_load(&wrap.cupti));
    CuptiSink sink = {.on_buffer = on_buffer, .on_dropped = on_dropped};
    atomic_store(&wrap.active, true);
    Status status = cupti_session_start(&wrap.cupti, KINDS, sizeof KINDS / sizeof *KINDS, sink);
    if (status.code != STATUS_OK) atomic_store(&wrap.active, false);
    return status;
}

static void begin(void) {
    const char *folder = getenv("MESHWRIGHT_WRAP_RECORDS");
    if (!folder || !*folder) return;
    char path[4096];
    path_new(folder, WRAP_FILE_SUFFIX, path, sizeof path);
    wrap.process = getpid();
    wrap.writer = wrap_writer_open(path, WRAP_FILE_MOST_BYTES);
    if (!wrap.writer) return;
    Status status = session_begin();
    if (status.code == STATUS_OK) {
        atexit(at_exit);
        return;
    }
    wrap_writer_close(wrap.writer);
    wrap.writer = NULL;
    unlink(path);
    refusal_write(folder, status.text);
}

bool wrap_begin(void) {
    pthread_once(&wrap.begun, begin);
    return wrap_active();
}

// Called by the CUDA driver. A failure would be the process's, so that it is kept to ourselves.
EXPORTED int InitializeInjection(void);
int InitializeInjection(void) {
    wrap_begin();
    return 1;
}

// --- Ranges

uint64_t wrap_now_ns(void) {
    uint64_t now_ns;
    if (!wrap_active() || wrap.cupti.timestamp(&now_ns) != CUPTI_SUCCESS) return 0;
    return now_ns;
}

uint32_t wrap_thread_id(void) {
    // CUPTI answers only after CUDA is initialised; the default is the low half of pthread_self().
    CUpti_ActivityThreadIdType type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
    if (wrap.cupti.thread_id_type(&type) == CUPTI_SUCCESS &&
        type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        return (uint32_t)syscall(SYS_gettid);
    return (uint32_t)(uintptr_t)pthread_self();
}

void wrap_range_add(const WrapRange *range) {
    if (!wrap_active()) return;
    pthread_mutex_lock(&wrap.lock);
    if (wrap.writer) wrap_write_range(wrap.writer, range);
    pthread_mutex_unlock(&wrap.lock);
}

// Where CUPTI refuses, the ranges are found to be without kernels.
static void calls_begin(void) {
    wrap.cupti.enable(CUPTI_ACTIVITY_KIND_RUNTIME);
    wrap.cupti.enable(CUPTI_ACTIVITY_KIND_DRIVER);
}

void wrap_calls_begin(void) {
    if (wrap_active()) pthread_once(&wrap.calls_begun, calls_begin);
}
