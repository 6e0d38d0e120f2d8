#include "profiler/activity.h"

#include "profiler/cupti/activity_decode.h"
#include "profiler/cupti/cupti_session.h"

#include <pthread.h>
#include <stdlib.h>

struct ActivityLog {
    CuptiLibrary cupti;
    pthread_mutex_t lock; // of the decoder: buffers come from threads of CUPTI
    ActivityDecoder decoder;
};

static void on_buffer(void *user, CuptiNextRecord next, uint8_t *buffer, size_t valid_bytes) {
    ActivityLog *log = user;
    pthread_mutex_lock(&log->lock);
    activity_decode(&log->decoder, next, buffer, valid_bytes);
    pthread_mutex_unlock(&log->lock);
}

static void on_dropped(void *user, size_t num_dropped) {
    ActivityLog *log = user;
    pthread_mutex_lock(&log->lock);
    log->decoder.num_dropped += num_dropped;
    pthread_mutex_unlock(&log->lock);
}

Status activity_start(ActivityLog **out) {
    // External correlation is told of API calls, so these are recorded too, and skipped.
    static const CUpti_ActivityKind KINDS[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_OVERHEAD,
        CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    };
    *out = NULL;
    ActivityLog *log = calloc(1, sizeof *log);
    if (!log) return status_error(STATUS_MACHINE, "out of memory");
    pthread_mutex_init(&log->lock, NULL);
    Status status = cupti_library_load(&log->cupti);
    if (status.code == STATUS_OK) {
        CuptiSink sink = {.on_buffer = on_buffer, .on_dropped = on_dropped, .user = log};
        status = cupti_session_start(&log->cupti, KINDS, sizeof KINDS / sizeof *KINDS, sink);
    }
    if (status.code != STATUS_OK) {
        pthread_mutex_destroy(&log->lock);
        free(log);
        return status;
    }
    *out = log;
    return status_ok();
}

Status activity_tag(ActivityLog *log, uint64_t tag) {
    CUptiResult result = log->cupti.push_tag(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, tag);
    if (result == CUPTI_SUCCESS) return status_ok();
    return cupti_library_error(&log->cupti, result, "cuptiActivityPushExternalCorrelationId");
}

Status activity_untag(ActivityLog *log) {
    uint64_t last;
    CUptiResult result = log->cupti.pop_tag(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
    if (result == CUPTI_SUCCESS) return status_ok();
    return cupti_library_error(&log->cupti, result, "cuptiActivityPopExternalCorrelationId");
}

Status activity_take(ActivityLog *log, ActivityRecords *out) {
    TRY(cupti_session_flush());
    pthread_mutex_lock(&log->lock);
    *out = activity_decoder_take(&log->decoder);
    pthread_mutex_unlock(&log->lock);
    return status_ok();
}

void activity_stop(ActivityLog *log) {
    if (!log) return;
    cupti_session_stop();
    activity_decoder_free(&log->decoder);
    pthread_mutex_destroy(&log->lock);
    free(log);
}
