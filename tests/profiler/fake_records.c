// What the fake GPU runs, told to the CUPTI that stands in for the real one (fake_cupti.c), where
// that is loaded.
#include "tests/profiler/fake_cuda.h"

#include <dlfcn.h>
#include <string.h>

typedef int (*TagPush)(int kind, uint64_t id);
typedef int (*TagPop)(int kind, uint64_t *last);

enum { CUSTOM0 = 3 }; // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
#define FOREIGN_TAG ((uint64_t)1 << 40)

typedef struct {
    void (*run)(const char *name, uint64_t start_ns, uint64_t end_ns);
    void (*drop)(size_t num_dropped);
    TagPush push;
    TagPop pop;
} Recorder;

static void find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

// Of this thread; its functions are NULL as long as there is none.
static const Recorder *recorder(void) {
    static _Thread_local Recorder found;
    if (found.run) return &found;
    void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return &found;
    find(library, "fake_run", &found.run);
    find(library, "fake_drop", &found.drop);
    find(library, "cuptiActivityPushExternalCorrelationId", &found.push);
    find(library, "cuptiActivityPopExternalCorrelationId", &found.pop);
    return &found;
}

// CUPTI's clock begins at a second: no record has the time 0.
static uint64_t ns(double time_s) {
    return (uint64_t)(1e9 * (1 + time_s) + 0.5);
}

void fake_record(const char *name, double begin_s, double end_s) {
    const Recorder *to = recorder();
    if (to->run) to->run(name, ns(begin_s), ns(end_s));
}

// One of another profiler's, which lasts from a product's first kernel to its last.
static void record_foreign(const Recorder *to, double begin_s, double end_s) {
    uint64_t last;
    to->push(CUSTOM0, FOREIGN_TAG);
    to->run("foreign", ns(begin_s), ns(end_s));
    to->pop(CUSTOM0, &last);
}

void fake_record_product(int rows, double begin_s, double end_s) {
    static _Thread_local int num_odd;
    const Recorder *to = recorder();
    if (!to->run) return;
    int num_kernels = fake_value("kernels") > 1 ? fake_value("kernels") : 1;
    // The first takes three quarters, the others share what is left.
    double at_s = begin_s + FAKE_GAP_S, span_s = end_s - at_s;
    for (int i = 0; i < num_kernels; i++) {
        double share = num_kernels == 1 ? 1 : i == 0 ? 0.75 : 0.25 / (num_kernels - 1);
        bool last = i == num_kernels - 1;
        double until_s = last ? end_s : at_s + share * span_s;
        if (last && rows == fake_value("dropped"))
            to->drop(1);
        else
            to->run(i == 0 ? "fake_product<8>" : "fake_sum", ns(at_s), ns(until_s));
        at_s = until_s;
    }
    if (rows == fake_value("odd") && num_odd++ % 2 == 0) to->run("fake_odd", ns(end_s), ns(end_s));
    if (fake_value("foreign") > 0) record_foreign(to, begin_s, end_s);
}
