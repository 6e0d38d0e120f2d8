// tests/checked_gpu/streams.c - memory in the order of streams, events and uploads of the CUDA
// backend's own host code, in random programs of several streams whose results are worked out
// beside; and what happens where one wait is forgotten.
#include "backend/cuda_backend.h"
#include "base/random.h"
#include "tests/checked_gpu/checked_gpu.h"
#include "tests/checked_gpu/host_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- Random programs

enum { NUM_STREAMS = 4, NUM_ARRAYS = 12, MOST_ELEMENTS = 600, NUM_OPS = 400, NUM_SEEDS = 60 };

typedef struct {
    float *device, *host; // host: what it holds once all is done
    int64_t count;
    int stream; // that used it last
} Array;

typedef struct {
    Backend *backend;
    const BackendTable *table;
    BackendStream *streams[NUM_STREAMS]; // [0]: the compute stream
    BackendEvent *events[NUM_STREAMS];
    Array arrays[NUM_ARRAYS];
    uint64_t seed;
    uint32_t num_drawn;
    int num_wrong;
} Machine;

static int below(Machine *m, int most) {
    const uint32_t place[RANDOM_WORDS] = {m->num_drawn++};
    uint32_t words[RANDOM_WORDS];
    random_words(m->seed, place, words);
    return (int)(words[0] % (uint32_t)most);
}

// The stream may use an array that another one used last.
static void order(Machine *m, Array *array, int stream) {
    if (array->stream == stream) return;
    m->table->event_record(m->backend, m->events[array->stream], m->streams[array->stream]);
    m->table->event_await(m->backend, m->events[array->stream], m->streams[stream]);
    array->stream = stream;
}

static void array_release(Machine *m, Array *array) {
    if (!array->device) return;
    m->table->release(m->backend, array->device, (size_t)array->count * sizeof(float));
    free(array->host);
    *array = (Array){0};
}

static void array_fill(Machine *m, Array *array, int stream) {
    float *values = malloc((size_t)array->count * sizeof *values);
    for (int64_t i = 0; i < array->count; i++) values[i] = (float)(below(m, 2000) - 1000) / 8;
    memcpy(array->host, values, (size_t)array->count * sizeof *values);
    m->table->upload(m->backend, array->device, values, (size_t)array->count * sizeof *values,
                     m->streams[stream]);
    free(values); // at once: the upload has it
}

// In place of what was there, which is given back while streams may still use it.
static void array_renew(Machine *m, Array *array, int stream) {
    array_release(m, array);
    array->count = 1 + below(m, 3) * (MOST_ELEMENTS / 3);
    array->device = m->table->alloc(m->backend, (size_t)array->count * sizeof(float));
    array->host = malloc((size_t)array->count * sizeof *array->host);
    array->stream = stream; // the backend orders it behind the allocation
    array_fill(m, array, stream);
}

static void array_check(Machine *m, Array *array, int stream) {
    float *found = malloc((size_t)array->count * sizeof *found);
    const size_t bytes = (size_t)array->count * sizeof *found;
    m->table->download(m->backend, found, array->device, bytes, m->streams[stream]);
    m->num_wrong += memcmp(found, array->host, bytes) != 0;
    free(found);
}

static void array_add(Machine *m, Array *to, Array *from, int stream) {
    const int64_t count = to->count < from->count ? to->count : from->count;
    order(m, from, stream);
    m->table->add(m->backend, to->device, to->device, from->device, count, m->streams[stream]);
    for (int64_t i = 0; i < count; i++) to->host[i] += from->host[i];
}

static void array_copy(Machine *m, Array *to, Array *from, int stream) {
    const int64_t count = to->count < from->count ? to->count : from->count;
    order(m, from, stream);
    const size_t bytes = (size_t)count * sizeof(float);
    m->table->copy(m->backend, to->device, from->device, bytes, m->streams[stream]);
    memmove(to->host, from->host, bytes);
}

static void array_scale(Machine *m, Array *to, int stream) {
    m->table->scale(m->backend, to->device, 0.5, DTYPE_FP32, to->count, m->streams[stream]);
    for (int64_t i = 0; i < to->count; i++) to->host[i] *= 0.5f;
}

static void step(Machine *m) {
    const int stream = below(m, NUM_STREAMS), what = below(m, 10);
    Array *to = &m->arrays[below(m, NUM_ARRAYS)], *from = &m->arrays[below(m, NUM_ARRAYS)];
    if (!to->device || what == 0) {
        array_renew(m, to, stream);
        return;
    }
    order(m, to, stream);
    if (what == 1)
        array_check(m, to, stream);
    else if (what == 2)
        array_fill(m, to, stream);
    else if (what == 3)
        array_scale(m, to, stream);
    else if (from->device && what < 7)
        array_add(m, to, from, stream);
    else if (from->device && from != to)
        array_copy(m, to, from, stream);
}

static void machine_close(Machine *m) {
    for (int i = 0; i < NUM_ARRAYS; i++) array_release(m, &m->arrays[i]);
    for (int i = 0; i < NUM_STREAMS; i++) m->table->event_free(m->backend, m->events[i]);
    for (int i = 1; i < NUM_STREAMS; i++) m->table->stream_free(m->backend, m->streams[i]);
    m->table->close(m->backend);
}

// Wrong results and findings of one program.
static int program_run(int seed) {
    Machine m = {.seed = (uint64_t)seed};
    if (cuda_backend_open(0, DTYPE_FP32, &m.backend).code != STATUS_OK) return -1;
    m.table = m.backend->table;
    checked_count();
    for (int i = 0; i < NUM_STREAMS; i++) {
        m.streams[i] = i == 0 ? m.backend->stream : m.table->stream_create(m.backend);
        m.events[i] = m.table->event_create(m.backend, false);
    }
    for (int n = 0; n < NUM_OPS; n++) step(&m);
    for (int i = 0; i < NUM_ARRAYS; i++)
        if (m.arrays[i].device) {
            order(&m, &m.arrays[i], 0);
            array_check(&m, &m.arrays[i], 0);
        }
    const bool well = m.backend->failure.code == STATUS_OK;
    machine_close(&m);
    checked_left();
    return m.num_wrong + checked_count() + !well;
}

void test_programs(void) {
    int num_wrong = 0;
    for (int seed = 1; seed <= NUM_SEEDS; seed++) num_wrong += program_run(seed) != 0;
    printf("%d random programs of %d calls on %d streams: %d wrong\n", NUM_SEEDS, NUM_OPS,
           NUM_STREAMS, num_wrong);
    expect(num_wrong == 0, "random programs come out right, and nothing is found");
}

// --- Waits that are forgotten

// Each is found out, unless by then others order the same arrays, or nobody uses them any more.
void test_lost_waits(void) {
    enum { NUM_LOST = 120 };
    int num_found = 0;
    for (int k = 1; k <= NUM_LOST; k++) {
        char option[32];
        snprintf(option, sizeof option, "lose=%d", k);
        setenv("CHECKED_GPU", option, 1);
        num_found += program_run(1) != 0;
    }
    unsetenv("CHECKED_GPU");
    printf("of %d waits, each forgotten in its turn, %d are found out\n", NUM_LOST, num_found);
    expect(num_found > NUM_LOST / 5, "waits that are forgotten are found out");
}

// Two streams and the compute stream, which is the first.
typedef struct {
    Backend *backend;
    const BackendTable *table;
    BackendStream *first, *second, *third;
    BackendEvent *event;
} Streams;

// Of its one wait: for the allocation.
static void first_use(Streams *s) {
    void *array = s->table->alloc(s->backend, 256);
    s->table->zero(s->backend, array, 256, s->second);
    s->table->release(s->backend, array, 256);
}

// Of its one wait: for the first of two users; the array is held until the other is through.
static void release_of_two(Streams *s) {
    char *array = s->table->alloc(s->backend, 256);
    s->table->zero(s->backend, array, 128, s->second); // each waits for the allocation
    s->table->zero(s->backend, array + 128, 128, s->third);
    checked_count(); // counts waits anew
    s->table->release(s->backend, array, 256);
    for (int i = 0; i < 50; i++) // which look whether it is free
        s->table->release(s->backend, s->table->alloc(s->backend, 512), 512);
}

static void handed_over(Streams *s) {
    void *array = s->table->alloc(s->backend, 256);
    s->table->zero(s->backend, array, 256, s->first);
    backend_sync(s->backend);
    float host[64];
    s->table->download(s->backend, host, array, 256, s->second);
    checked_count();
    s->table->zero(s->backend, array, 256, s->first);
    s->table->event_record(s->backend, s->event, s->first);
    s->table->event_await(s->backend, s->event, s->second);
    s->table->zero(s->backend, array, 256, s->second);
    s->table->release(s->backend, array, 256);
}

static int findings_without_wait(void (*program)(Streams *), int lost) {
    Streams s = {0};
    char option[32];
    if (cuda_backend_open(0, DTYPE_FP32, &s.backend).code != STATUS_OK) return -1;
    s.table = s.backend->table;
    s.first = s.backend->stream;
    s.second = s.table->stream_create(s.backend);
    s.third = s.table->stream_create(s.backend);
    s.event = s.table->event_create(s.backend, false);
    snprintf(option, sizeof option, "lose=%d", lost);
    setenv("CHECKED_GPU", option, 1);
    checked_count();
    program(&s);
    const int num = checked_count();
    unsetenv("CHECKED_GPU");
    s.table->event_free(s.backend, s.event);
    s.table->stream_free(s.backend, s.second);
    s.table->stream_free(s.backend, s.third);
    s.table->close(s.backend);
    checked_count();
    return num;
}

void test_each_wait(void) {
    static const struct {
        void (*program)(Streams *);
        int num_waits;
        const char *what;
    } CASES[] = {
        {first_use, 1, "a stream waits for the allocation of what it uses"},
        {release_of_two, 1, "what two streams use is given back behind both"},
        {handed_over, 1, "a stream waits for an event of another"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int num_found = 0;
        for (int k = 1; k <= CASES[i].num_waits; k++)
            num_found += findings_without_wait(CASES[i].program, k) > 0;
        const int without = findings_without_wait(CASES[i].program, CASES[i].num_waits + 1);
        printf("%s: %d of %d found out, else %d\n", CASES[i].what, num_found, CASES[i].num_waits,
               without);
        expect(without == 0 && num_found == CASES[i].num_waits, CASES[i].what);
    }
}
