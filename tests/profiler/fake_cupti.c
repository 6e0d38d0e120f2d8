// A library with the functions of CUPTI that meshwright calls, for machines without a GPU: the
// program itself says (fake_launch, fake_run) which kernel "ran". Records are kept until a flush,
// or until there is no more room, and handed over in buffers of three, in which a kernel may come
// apart from its call. They are made up after the layouts of CUPTI's headers. Or a file of buffers
// (profiler/cupti/buffer_file.h) is played: they come as they are.
#include "tests/profiler/made_up_buffer.h"
#include "tests/profiler/played_buffers.h"

#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void fake_launch(const char *name, uint32_t thread, uint64_t duration_ns);
EXPORTED void fake_run(const char *name, uint64_t start_ns, uint64_t end_ns);
EXPORTED void fake_drop(size_t num_dropped);
EXPORTED void fake_refuse(CUptiResult result);
EXPORTED int fake_play(const char *path); // 0: the file cannot be read

enum { ROOM_BYTES = 1024 }; // for the records of one call

static struct {
    CUpti_BuffersCallbackRequestFunc requested;
    CUpti_BuffersCallbackCompleteFunc completed;
    MadeUpBuffer buffer;
    unsigned char enabled[CUPTI_ACTIVITY_KIND_COUNT];
    uint64_t now_ns, tags[16];
    int num_tags;
    uint32_t correlation_id;
    size_t num_dropped;
    CUptiResult refusal;
} fake = {.now_ns = 1000000000};

CUptiResult cuptiGetVersion(uint32_t *version) {
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text) {
    *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "MADE_UP_FAILURE";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
    *timestamp = ++fake.now_ns;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type) {
    *type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
    fake.requested = requested;
    fake.completed = completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    if (fake.refusal == CUPTI_SUCCESS) fake.enabled[kind] = 1;
    return fake.refusal;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    fake.enabled[kind] = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
    (void)kind;
    if (fake.num_tags == 16) return CUPTI_ERROR_INVALID_PARAMETER;
    fake.tags[fake.num_tags++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t *last) {
    (void)kind;
    if (fake.num_tags == 0) return CUPTI_ERROR_QUEUE_EMPTY;
    *last = fake.tags[--fake.num_tags];
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes,
                                       CUpti_Activity **record) {
    return made_up_next(buffer, valid_bytes, record);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
    (void)context;
    (void)stream;
    *dropped = fake.num_dropped;
    fake.num_dropped = 0;
    return CUPTI_SUCCESS;
}

// Where the third record from here ends.
static size_t piece_end(size_t first) {
    CUpti_Activity *record = NULL;
    size_t left = fake.buffer.valid_bytes - first, end = left;
    for (int i = 0; i < 4; i++) {
        if (made_up_next(fake.buffer.bytes + first, left, &record) != CUPTI_SUCCESS) return left;
        end = (size_t)((uint8_t *)record - (fake.buffer.bytes + first));
    }
    return end;
}

static void hand_over(const uint8_t *bytes, size_t size) {
    uint8_t *piece = NULL;
    size_t room = 0, most_records = 1;
    fake.requested(&piece, &room, &most_records);
    if (!piece || room < size || most_records != 0) abort();
    memcpy(piece, bytes, size);
    fake.completed(NULL, 0, piece, room, size);
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    for (size_t first = 0, size; first < fake.buffer.valid_bytes; first += size) {
        size = piece_end(first);
        hand_over(fake.buffer.bytes + first, size);
    }
    fake.buffer = (MadeUpBuffer){0};
    return CUPTI_SUCCESS;
}

// A call at call_ns and its kernel.
static void launch(const char *name, uint32_t thread, uint64_t call_ns, uint64_t start_ns,
                   uint64_t end_ns) {
    uint32_t correlation_id = ++fake.correlation_id;
    if (fake.buffer.valid_bytes + ROOM_BYTES > MADE_UP_BYTES) cuptiActivityFlushAll(0);
    if (fake.enabled[CUPTI_ACTIVITY_KIND_RUNTIME]) {
        if (fake.enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] && fake.num_tags > 0)
            made_up_tag(&fake.buffer, correlation_id, fake.tags[fake.num_tags - 1]);
        made_up_call(&fake.buffer, CUPTI_ACTIVITY_KIND_RUNTIME, correlation_id, thread, call_ns);
    }
    if (fake.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        made_up_kernel(&fake.buffer, name, correlation_id, start_ns, end_ns);
}

void fake_launch(const char *name, uint32_t thread, uint64_t duration_ns) {
    uint64_t now_ns = fake.now_ns += 10;
    launch(name, thread, now_ns, now_ns + 50, now_ns + 50 + duration_ns);
}

// Of a GPU with a clock of its own; by several threads at once where nothing is recorded.
void fake_run(const char *name, uint64_t start_ns, uint64_t end_ns) {
    if (fake.enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])
        launch(name, 1, start_ns, start_ns, end_ns);
}

void fake_drop(size_t num_dropped) {
    fake.num_dropped += num_dropped;
}

void fake_refuse(CUptiResult result) {
    fake.refusal = result;
}

int fake_play(const char *path) {
    static PlayedBuffers played;
    size_t first = played.num_buffers;
    if (!played_buffers_read(path, &played)) return 0;
    for (size_t i = first; i < played.num_buffers; i++)
        hand_over(played.buffers[i].bytes, played.buffers[i].valid_bytes);
    return 1;
}
