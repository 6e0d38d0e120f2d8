#include "profiler/cupti/cupti_session.h"

#include "profiler/cupti/buffer_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

// NVIDIA's advice is 1 to 10 MiB ("CUPTI Activity API", "Asynchronous buffering"). There is a
// buffer per thread.
enum { BUFFER_BYTES = 2 << 20, MAX_POOLED = 16, MAX_KINDS = 16 };

// One per process: CUPTI's callbacks carry no pointer of ours.
static struct {
    pthread_mutex_t lock;
    const CuptiLibrary *cupti;
    CuptiSink sink; // on_buffer is NULL where none is recording
    CUpti_ActivityKind kinds[MAX_KINDS];
    int num_kinds;
    int num_readers; // callbacks inside the sink
    pthread_cond_t idle;
    uint8_t *pool[MAX_POOLED];
    int num_pooled;
    pthread_mutex_t copy_lock; // of what is below
    FILE *copy;                // what was asked for by MESHWRIGHT_CUPTI_RECORD
    Status copy_status;
    int num_copies; // made so far
} session = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .idle = PTHREAD_COND_INITIALIZER,
             .copy_lock = PTHREAD_MUTEX_INITIALIZER};

// --- Buffers as they come, in a file

static Status copy_begin(const CuptiLibrary *cupti) {
    const char *prefix = getenv("MESHWRIGHT_CUPTI_RECORD");
    if (!prefix || !*prefix) return status_ok();
    char path[4096];
    int length = snprintf(path, sizeof path, "%s.%ld.%d.cupti", prefix, (long)getpid(),
                          session.num_copies++);
    if (length < 0 || (size_t)length >= sizeof path)
        return status_error(STATUS_MACHINE, "MESHWRIGHT_CUPTI_RECORD is too long");
    return cupti_file_new(cupti, path, &session.copy);
}

// After a failure nothing more is written.
static void copy_add(CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes) {
    pthread_mutex_lock(&session.copy_lock);
    if (session.copy && session.copy_status.code == STATUS_OK)
        session.copy_status = cupti_file_add(session.copy, next, buffer, valid_bytes);
    pthread_mutex_unlock(&session.copy_lock);
}

static Status copy_status(void) {
    pthread_mutex_lock(&session.copy_lock);
    Status status = session.copy_status;
    pthread_mutex_unlock(&session.copy_lock);
    return status;
}

static void copy_end(void) {
    pthread_mutex_lock(&session.copy_lock);
    if (session.copy) fclose(session.copy); // each buffer was flushed
    session.copy = NULL;
    session.copy_status = status_ok();
    pthread_mutex_unlock(&session.copy_lock);
}

// --- Buffers to and from CUPTI

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    *buffer = NULL;
    *size = 0;
    *max_records = 0; // as many as fit
    pthread_mutex_lock(&session.lock);
    if (session.num_pooled > 0) *buffer = session.pool[--session.num_pooled];
    pthread_mutex_unlock(&session.lock);
    if (!*buffer) *buffer = aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, BUFFER_BYTES);
    if (*buffer) *size = BUFFER_BYTES;
}

static void buffer_give_back(uint8_t *buffer) {
    if (session.num_pooled < MAX_POOLED)
        session.pool[session.num_pooled++] = buffer;
    else
        free(buffer);
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t size, size_t valid_bytes) {
    (void)context; // always NULL, as stream and size are of no use
    (void)stream;
    (void)size;
    if (!buffer) return;
    pthread_mutex_lock(&session.lock);
    CuptiSink sink = session.sink;
    const CuptiLibrary *cupti = session.cupti;
    if (sink.on_buffer) session.num_readers++;
    pthread_mutex_unlock(&session.lock);

    if (sink.on_buffer) {
        if (valid_bytes > 0) {
            copy_add(cupti->next_record, buffer, valid_bytes);
            sink.on_buffer(sink.user, cupti->next_record, buffer, valid_bytes);
        }
        size_t num_dropped = 0;
        CUptiResult result = cupti->num_dropped(NULL, 0, &num_dropped);
        if (result == CUPTI_SUCCESS && num_dropped > 0) sink.on_dropped(sink.user, num_dropped);
    }

    pthread_mutex_lock(&session.lock);
    buffer_give_back(buffer);
    if (sink.on_buffer && --session.num_readers == 0) pthread_cond_broadcast(&session.idle);
    pthread_mutex_unlock(&session.lock);
}

// --- The session

// Takes the place of the one session.
static Status session_occupy(const CuptiLibrary *cupti, CuptiSink sink) {
    Status status = status_ok();
    pthread_mutex_lock(&session.lock);
    if (session.sink.on_buffer) {
        status = status_error(STATUS_MACHINE, "GPU activity is being recorded already");
    } else {
        session.cupti = cupti;
        session.sink = sink;
        session.num_kinds = 0;
    }
    pthread_mutex_unlock(&session.lock);
    return status;
}

Status cupti_session_start(const CuptiLibrary *cupti, const CUpti_ActivityKind *kinds,
                           int num_kinds, CuptiSink sink) {
    TRY(session_occupy(cupti, sink));
    Status status = copy_begin(cupti);
    CUptiResult result = CUPTI_SUCCESS;
    if (status.code == STATUS_OK)
        result = cupti->register_callbacks(buffer_requested, buffer_completed);
    if (result != CUPTI_SUCCESS)
        status = cupti_library_error(cupti, result, "cuptiActivityRegisterCallbacks");
    for (int i = 0; i < num_kinds && i < MAX_KINDS && status.code == STATUS_OK; i++) {
        result = cupti->enable(kinds[i]);
        if (result == CUPTI_SUCCESS)
            session.kinds[session.num_kinds++] = kinds[i];
        else
            status = cupti_library_error(cupti, result, "cuptiActivityEnable");
    }
    if (status.code != STATUS_OK) cupti_session_stop();
    return status;
}

Status cupti_session_flush(void) {
    if (!session.sink.on_buffer) return status_error(STATUS_MACHINE, "nothing is being recorded");
    // Without the lock: CUPTI calls back from here.
    CUptiResult result = session.cupti->flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (result == CUPTI_SUCCESS) return copy_status();
    return cupti_library_error(session.cupti, result, "cuptiActivityFlushAll");
}

void cupti_session_stop(void) {
    if (!session.sink.on_buffer) return;
    for (int i = 0; i < session.num_kinds; i++) session.cupti->disable(session.kinds[i]);
    pthread_mutex_lock(&session.lock);
    session.sink = (CuptiSink){0};
    while (session.num_readers > 0) pthread_cond_wait(&session.idle, &session.lock);
    while (session.num_pooled > 0) free(session.pool[--session.num_pooled]);
    pthread_mutex_unlock(&session.lock);
    copy_end();
}
