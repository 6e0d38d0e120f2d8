// Checks on a GPU that what is recorded is what ran. The kernel is PTX that the driver compiles; it
// spins for a given time by the GPU's own clock, so that its duration is known. The driver is
// loaded at run time: nothing links CUDA. Exit: 0 right, 1 wrong, 77 there is no GPU.
//
// Usage: gpu-program activity             tags, durations, bytes, by profiler/activity.h
//        gpu-program played LIBRARY FILE  the same of buffers that "activity" recorded
//                                         (MESHWRIGHT_CUPTI_RECORD), played by fake_cupti.c:
//                                         without a GPU
//        gpu-program wrap LIBRARY DIR     wraps itself in libmeshwright-wrap.so, and reads the
//        tables gpu-program work                 what is wrapped
#include "profiler/activity.h"
#include "profiler/wrap.h"

#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NO_GPU = 77, COPY_BYTES = 1 << 20, NUM_CALLS = 5 };

static const char PTX[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry spin(.param .u64 duration_ns)\n"
                          "{\n"
                          "  .reg .u64 %r<4>;\n"
                          "  .reg .pred %p;\n"
                          "  ld.param.u64 %r0, [duration_ns];\n"
                          "  mov.u64 %r1, %globaltimer;\n"
                          "again:\n"
                          "  mov.u64 %r2, %globaltimer;\n"
                          "  sub.u64 %r3, %r2, %r1;\n"
                          "  setp.lt.u64 %p, %r3, %r0;\n"
                          "  @%p bra again;\n"
                          "  ret;\n"
                          "}\n";

// --- The driver: cuda.h says what these are

static struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int index);
    int (*context_retain)(void **context, int device);
    int (*context_set)(void *context);
    int (*synchronize)(void);
    int (*module_load)(void **module, const void *image);
    int (*function_get)(void **function, void *module, const char *name);
    int (*memory_new)(uint64_t *address, size_t num_bytes);
    int (*copy_to)(uint64_t to, const void *from, size_t num_bytes);
    int (*set)(uint64_t address, unsigned char value, size_t num_bytes);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **parameters, void **extra);
    void *context, *spin;
    uint64_t memory;
} cuda;

static void must(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "gpu-program: %s\n", what);
    exit(1);
}

static _Noreturn void skip(const char *why) {
    printf("skipped: %s\n", why);
    exit(NO_GPU);
}

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    must(found != NULL, name);
    return found;
}

#define SYMBOL(field, name)                                                                        \
    do {                                                                                           \
        void *found_ = symbol(library, name);                                                      \
        memcpy(&cuda.field, &found_, sizeof found_);                                               \
    } while (0)

static void driver_load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) skip("there is no NVIDIA driver (libcuda.so.1)");
    SYMBOL(init, "cuInit");
    SYMBOL(device_get, "cuDeviceGet");
    SYMBOL(context_retain, "cuDevicePrimaryCtxRetain");
    SYMBOL(context_set, "cuCtxSetCurrent");
    SYMBOL(synchronize, "cuCtxSynchronize");
    SYMBOL(module_load, "cuModuleLoadData");
    SYMBOL(function_get, "cuModuleGetFunction");
    SYMBOL(memory_new, "cuMemAlloc_v2");
    SYMBOL(copy_to, "cuMemcpyHtoD_v2");
    SYMBOL(set, "cuMemsetD8_v2");
    SYMBOL(launch, "cuLaunchKernel");
}

static void gpu_begin(void) {
    int device;
    void *module;
    if (cuda.init(0) != 0 || cuda.device_get(&device, 0) != 0) skip("the driver has no GPU");
    must(cuda.context_retain(&cuda.context, device) == 0, "cuDevicePrimaryCtxRetain");
    must(cuda.context_set(cuda.context) == 0, "cuCtxSetCurrent");
    must(cuda.module_load(&module, PTX) == 0, "cuModuleLoadData");
    must(cuda.function_get(&cuda.spin, module, "spin") == 0, "cuModuleGetFunction");
    must(cuda.memory_new(&cuda.memory, COPY_BYTES) == 0, "cuMemAlloc");
}

static void spin(uint64_t duration_ns) {
    void *parameters[] = {&duration_ns};
    must(cuda.launch(cuda.spin, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL) == 0,
         "cuLaunchKernel");
}

static void copy_and_set(void) {
    static uint8_t host[COPY_BYTES];
    must(cuda.copy_to(cuda.memory, host, COPY_BYTES) == 0, "cuMemcpyHtoD");
    must(cuda.set(cuda.memory, 1, COPY_BYTES / 2) == 0, "cuMemsetD8");
}

// The clock of %globaltimer may step by a microsecond, and a kernel begins and ends outside of it.
static bool about(double found_ns, double expected_ns) {
    bool good = found_ns >= expected_ns - 2000 && found_ns <= 1.1 * expected_ns + 20000;
    if (!good) fprintf(stderr, "gpu-program: %.0f ns, expected %.0f\n", found_ns, expected_ns);
    return good;
}

// --- activity

static void must_be_ok(Status status) {
    must(status.code == STATUS_OK, status.text);
}

static void activity_work(ActivityLog *log) {
    gpu_begin();
    must_be_ok(activity_tag(log, 5));
    spin(100000);
    must_be_ok(activity_tag(log, 6));
    spin(300000);
    must_be_ok(activity_untag(log));
    spin(100000);
    must_be_ok(activity_untag(log));
    spin(50000);
    copy_and_set();
    must(cuda.synchronize() == 0, "cuCtxSynchronize");
}

static void records_print(const ActivityRecords *got) {
    for (size_t i = 0; i < got->num_records; i++) {
        const ActivityRecord *record = &got->records[i];
        printf("%llu ns, tag %llu, device %u, stream %u, correlation %u, %.0f bytes, %s\n",
               (unsigned long long)(record->end_ns - record->start_ns),
               (unsigned long long)record->tag, record->device, record->stream,
               record->correlation_id, record->bytes, record->name);
    }
    printf("dropped %zu, overhead %llu ns\n", got->num_dropped,
           (unsigned long long)got->overhead_ns);
}

// Of activity_work.
static void records_check(const ActivityRecords *got) {
    static const struct {
        ActivityKind kind;
        uint64_t tag;
        double duration_ns, bytes;
    } EXPECTED[] = {{ACTIVITY_KERNEL, 5, 100000, 0},   {ACTIVITY_KERNEL, 6, 300000, 0},
                    {ACTIVITY_KERNEL, 5, 100000, 0},   {ACTIVITY_KERNEL, 0, 50000, 0},
                    {ACTIVITY_COPY, 0, 0, COPY_BYTES}, {ACTIVITY_SET, 0, 0, COPY_BYTES / 2}};
    must(got->num_dropped == 0, "records were dropped");
    must(got->num_records == sizeof EXPECTED / sizeof *EXPECTED, "not six records");
    for (size_t i = 0; i < got->num_records; i++) {
        const ActivityRecord *record = &got->records[i];
        must(record->kind == EXPECTED[i].kind, "another kind");
        must(record->tag == EXPECTED[i].tag, "another tag");
        must(record->bytes == EXPECTED[i].bytes, "other bytes");
        if (record->kind != ACTIVITY_KERNEL) continue;
        must(strcmp(record->name, "spin") == 0, "another name");
        must(about((double)(record->end_ns - record->start_ns), EXPECTED[i].duration_ns),
             "another duration");
    }
}

static void activity_check(void) {
    ActivityLog *log;
    ActivityRecords got;
    must_be_ok(activity_start(&log));
    activity_work(log);
    must_be_ok(activity_take(log, &got));
    records_print(&got);
    records_check(&got);
    must_be_ok(activity_take(log, &got));
    must(got.num_records == 0, "records came twice");
    activity_stop(log);
}

static void played_check(const char *library, const char *file) {
    if (access(file, R_OK) != 0) skip("no GPU's buffers have been recorded");
    setenv("MESHWRIGHT_CUPTI", library, 1);
    void *fake = dlopen(library, RTLD_NOW);
    must(fake != NULL, "the library that stands in for CUPTI");
    int (*play)(const char *path);
    void *found = symbol(fake, "fake_play");
    memcpy(&play, &found, sizeof found);
    ActivityLog *log;
    ActivityRecords got;
    must_be_ok(activity_start(&log));
    must(play(file), file);
    must_be_ok(activity_take(log, &got));
    records_print(&got);
    records_check(&got);
    activity_stop(log);
}

// --- wrap

static void *spin_elsewhere(void *unused) {
    (void)unused;
    must(cuda.context_set(cuda.context) == 0, "cuCtxSetCurrent");
    spin(400000);
    return NULL;
}

static void elsewhere(void) {
    pthread_t thread;
    must(pthread_create(&thread, NULL, spin_elsewhere, NULL) == 0, "pthread_create");
    pthread_join(thread, NULL);
}

// The first range opens before CUDA is initialised, as it may in any program.
static void work(void) {
    nvtxRangePushA("mw:begin index=1");
    gpu_begin();
    nvtxRangePop();
    spin(1000000);
    for (int i = 0; i < NUM_CALLS; i++) {
        nvtxRangePushA("mw:spin duration_ns=100000");
        spin(100000);
        nvtxRangePop();
        nvtxRangePushA("mw:spin duration_ns=500000");
        spin(200000);
        spin(300000);
        elsewhere(); // not in the range, which is of this thread
        nvtxRangePop();
    }
    nvtxRangeId_t all = nvtxRangeStartA("mw:both index=1");
    spin(100000);
    elsewhere();
    nvtxRangeEnd(all);
    copy_and_set();
    must(cuda.synchronize() == 0, "cuCtxSynchronize");
}

static double cell(const char *dir, const char *file, const char *row) {
    char path[4096], line[512];
    double latency_ms = -1;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *table = fopen(path, "r");
    must(table != NULL, path);
    while (fgets(line, sizeof line, table))
        if (strncmp(line, row, strlen(row)) == 0) latency_ms = atof(line + strlen(row));
    fclose(table);
    return 1e6 * latency_ms; // ns
}

static void wrap_check(const char *library, const char *dir) {
    char self[4096] = "";
    must(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "/proc/self/exe");
    setenv("MESHWRIGHT_WRAP", library, 1);
    const char *const argv[] = {self, "work", NULL};
    must_be_ok(wrap_run(argv, dir, false, false));
    must(about(cell(dir, "spin.csv", "100000,"), 100000), "spin.csv: 100000");
    must(about(cell(dir, "spin.csv", "500000,"), 500000), "spin.csv: 500000");
    must(about(cell(dir, "both.csv", "1,"), 500000), "both.csv: 1");
    // 1 + 3 NUM_CALLS of this thread, 1 in the last range, and NUM_CALLS + 1 of others
    char count[32];
    snprintf(count, sizeof count, "kernel,spin,%d,", 1 + 3 * NUM_CALLS + 1 + NUM_CALLS + 1);
    must(cell(dir, "kernels.csv", count) > 0, "kernels.csv: another number of kernels");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "played") == 0 && argc == 4) {
        played_check(argv[2], argv[3]);
        return 0;
    }
    driver_load();
    if (strcmp(what, "activity") == 0) {
        activity_check();
    } else if (strcmp(what, "work") == 0) {
        work();
    } else if (strcmp(what, "wrap") == 0 && argc == 4) {
        int device;
        if (cuda.init(0) != 0 || cuda.device_get(&device, 0) != 0) skip("the driver has no GPU");
        wrap_check(argv[2], argv[3]);
    } else {
        fprintf(stderr,
                "usage: gpu-program activity | played LIBRARY FILE | work | wrap LIBRARY DIR\n");
        return 2;
    }
    return 0;
}
