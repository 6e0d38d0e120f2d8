// tests/checked_gpu/work.c - streams of queued calls, which run when the host waits for them, in
// any order that streams and events leave open.
#include "tests/checked_gpu/checked_gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef enum { WORK_CALL, WORK_RECORD, WORK_AWAIT } WorkKind;

struct Work {
    Work *next;
    WorkKind kind;
    const char *what;
    void (*run)(void *arguments);
    bool (*poll)(void *arguments);
    cudaEvent_t event;
    uint64_t number; // of the event's records
    max_align_t arguments[];
};

static cudaStream_t streams[MOST_STREAMS];
static Clock host;    // what the host knows to be over
static Clock retired; // of streams that are gone, by index
static int num_events, num_findings;
static bool counts_findings;
static int64_t num_calls, num_awaits; // since findings were counted
static cudaError_t failure = cudaSuccess;
static uint64_t random_state;

// --- Options and findings

int64_t checked_option(const char *name) {
    const char *options = getenv("CHECKED_GPU");
    const char *found = options ? strstr(options, name) : NULL;
    return found && found[strlen(name)] == '=' ? atoll(found + strlen(name) + 1) : -1;
}

void checked_find(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    num_findings++;
    if (!counts_findings || getenv("CHECKED_GPU_PRINT")) {
        char text[500]; // at once, as other processes write too
        vsnprintf(text, sizeof text, format, arguments);
        fprintf(stderr, "checked GPU: %s\n", text);
    }
    va_end(arguments);
    if (counts_findings) return;
    fflush(NULL);
    _exit(CHECKED_EXIT);
}

int checked_count(void) {
    const int before = num_findings;
    counts_findings = true;
    num_findings = 0;
    num_calls = num_awaits = 0;
    return before;
}

cudaError_t checked_failure(void) {
    return failure;
}

// --- Clocks

static void clock_join(Clock *clock, const Clock *other) {
    for (int i = 0; i < MOST_STREAMS; i++)
        if (clock->of[i] < other->of[i]) clock->of[i] = other->of[i];
}

Clock *checked_tick(cudaStream_t stream) {
    clock_join(&stream->clock, &host);
    stream->clock.of[stream->index]++;
    return &stream->clock;
}

// --- Queues

static Work *work_add(cudaStream_t stream, WorkKind kind, size_t bytes) {
    Work *work = calloc(1, sizeof *work + bytes);
    if (!work) abort();
    work->kind = kind;
    *(stream->first ? &stream->last->next : &stream->first) = work;
    stream->last = work;
    return work;
}

cudaError_t checked_queue(cudaStream_t stream, const Call *call) {
    if (failure != cudaSuccess) return failure;
    checked_tick(stream);
    memory_check(stream, call);
    Work *work = work_add(stream, WORK_CALL, call->bytes);
    work->what = call->what;
    work->run = call->run;
    work->poll = call->poll;
    if (call->bytes > 0) memcpy(work->arguments, call->arguments, call->bytes);
    return cudaSuccess;
}

// An event that is destroyed while it is queued goes with the last of its records and waits.
static void event_drop(cudaEvent_t event) {
    if (--event->num_queued == 0 && event->destroyed) free(event);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool may_run(const Work *work) {
    return work->kind != WORK_AWAIT || work->event->num_passed >= work->number;
}

// Does the next work of a stream; false: it has to be asked again.
static bool work_run(cudaStream_t stream) {
    Work *work = stream->first;
    if (work->poll && failure == cudaSuccess && !work->poll(work->arguments)) return false;
    stream->first = work->next;
    if (work->kind == WORK_CALL) {
        if (++num_calls == checked_option("fault")) failure = cudaErrorIllegalAddress;
        if (failure == cudaSuccess && work->run) work->run(work->arguments);
    } else {
        if (work->kind == WORK_RECORD) {
            work->event->num_passed = work->number;
            work->event->at_s = now_s();
        }
        event_drop(work->event);
    }
    free(work);
    return true;
}

static unsigned random_below(unsigned most) {
    if (random_state == 0) {
        const int64_t seed = checked_option("seed");
        random_state = 0x9e3779b97f4a7c15u * (uint64_t)(seed > 0 ? seed : 1);
    }
    random_state ^= random_state << 13; // xorshift64: Marsaglia, J. Stat. Softw. 8 (14), 2003
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 33) % most);
}

// A stream whose next work may run; NULL: there is none.
static cudaStream_t stream_choose(void) {
    cudaStream_t ready[MOST_STREAMS];
    unsigned num_ready = 0;
    for (int i = 0; i < MOST_STREAMS; i++) {
        const Work *work = streams[i] ? streams[i]->first : NULL;
        if (work && may_run(work)) ready[num_ready++] = streams[i];
    }
    return num_ready > 0 ? ready[random_below(num_ready)] : NULL;
}

bool checked_waits(void) {
    for (int i = 0; i < MOST_STREAMS; i++)
        for (const Work *work = streams[i] ? streams[i]->first : NULL; work; work = work->next)
            if (work->poll) return true;
    return false;
}

// Runs one work after the other until a stream is empty or an event has passed; neither: all.
static void run_until(cudaStream_t stream, cudaEvent_t event, uint64_t number) {
    const double most_s = 60;
    double begin_s = now_s(); // of what has not come to its end yet
    int num_vain = 0;         // works in a row that have to be asked again
    memory_open(true);
    while (!(stream && !stream->first) && !(event && event->num_passed >= number)) {
        cudaStream_t next = stream_choose();
        if (!next) break;
        if (work_run(next)) {
            begin_s = now_s();
            num_vain = 0;
            continue;
        }
        if (now_s() - begin_s > most_s)
            checked_find("the host waits for what never comes to its end: %s", next->first->what);
        // Once every stream was asked, as a rule: others have the cores meanwhile.
        if (++num_vain > 2 * MOST_STREAMS) usleep(20);
    }
    memory_open(false);
}

void checked_drain(void) {
    run_until(NULL, NULL, 0);
}

// --- Streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    if (flags != cudaStreamNonBlocking) checked_find("a stream that waits for stream 0");
    int index = 0;
    while (index < MOST_STREAMS && streams[index]) index++;
    if (index == MOST_STREAMS) return cudaErrorMemoryAllocation;
    cudaStream_t stream = calloc(1, sizeof *stream);
    if (!stream) return cudaErrorMemoryAllocation;
    stream->index = index;
    stream->clock.of[index] = retired.of[index];
    *out = streams[index] = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    run_until(stream, NULL, 0);
    clock_join(&host, &stream->clock);
    return failure;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (stream->first) checked_find("a stream is destroyed with work that is still to run");
    run_until(stream, NULL, 0);
    retired.of[stream->index] = stream->clock.of[stream->index];
    streams[stream->index] = NULL;
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    checked_drain();
    for (int i = 0; i < MOST_STREAMS; i++)
        if (streams[i]) clock_join(&host, &streams[i]->clock);
    return failure;
}

// --- Events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    *out = calloc(1, sizeof **out);
    if (!*out) return cudaErrorMemoryAllocation;
    (*out)->timed = !(flags & cudaEventDisableTiming);
    num_events++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    num_events--;
    event->destroyed = true;
    if (event->num_queued == 0) free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    event->clock = *checked_tick(stream);
    event->num_queued++;
    Work *work = work_add(stream, WORK_RECORD, 0);
    work->event = event;
    work->number = ++event->num_recorded;
    return failure;
}

static bool clock_knows(const Clock *clock, const Clock *other) {
    for (int i = 0; i < MOST_STREAMS; i++)
        if (clock->of[i] < other->of[i]) return false;
    return true;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    if (event->num_recorded == 0) checked_find("a stream waits for an event that nobody recorded");
    if (!clock_knows(&stream->clock, &event->clock) && ++num_awaits == checked_option("lose"))
        return failure;
    clock_join(&stream->clock, &event->clock);
    event->num_queued++;
    Work *work = work_add(stream, WORK_AWAIT, 0);
    work->event = event;
    work->number = event->num_recorded;
    return failure;
}

// A look at an event takes time, in which some of what is queued may run.
cudaError_t cudaEventQuery(cudaEvent_t event) {
    memory_open(true);
    for (unsigned n = random_below(4); n > 0; n--) {
        cudaStream_t next = stream_choose();
        if (next) work_run(next);
    }
    memory_open(false);
    if (failure != cudaSuccess) return failure;
    if (event->num_passed < event->num_recorded) return cudaErrorNotReady;
    clock_join(&host, &event->clock);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    run_until(NULL, event, event->num_recorded);
    clock_join(&host, &event->clock);
    return failure;
}

cudaError_t cudaEventElapsedTime(float *out_ms, cudaEvent_t from, cudaEvent_t to) {
    if (!from->timed || !to->timed) checked_find("the time of an event that was made without");
    if (from->num_recorded == 0 || to->num_recorded == 0) return cudaErrorInvalidResourceHandle;
    if (from->num_passed < from->num_recorded || to->num_passed < to->num_recorded)
        return cudaErrorNotReady;
    *out_ms = (float)(1e3 * (to->at_s - from->at_s));
    return failure;
}

// --- The end of the process

void checked_left(void) {
    int num_streams = 0;
    for (int i = 0; i < MOST_STREAMS; i++) num_streams += streams[i] != NULL;
    if (failure != cudaSuccess) return;
    if (num_streams + num_events + memory_num_left() > 0)
        checked_find("%d streams, %d events and %d arrays are left", num_streams, num_events,
                     memory_num_left());
}

__attribute__((destructor)) static void left_behind(void) {
    checked_left();
}
