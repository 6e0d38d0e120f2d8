// A "CUDA program" on fake_cupti.c: loads the injection library as the driver does, marks ranges
// through NVTX, launches in and outside of them. Usage: fake-program [EXIT_CODE | drop | kill |
// idle | refused]
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*Launch)(const char *name, uint32_t thread, uint64_t duration_ns);
static Launch fake_launch;

static void *symbol(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) _exit(99);
    return found;
}

static void launch(const char *name, uint64_t duration_ns) {
    fake_launch(name, (uint32_t)(uintptr_t)pthread_self(), duration_ns);
}

static void driver_begin(void) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    int (*begin)(void);
    void *found = symbol(dlopen(path ? path : "", RTLD_NOW), "InitializeInjection");
    memcpy(&begin, &found, sizeof begin);
    if (begin() != 1) _exit(98);
}

static void *work_elsewhere(void *unused) {
    (void)unused;
    launch("elsewhere", 7000);
    return NULL;
}

// Two calls of one shape, one of another; a thread that a pushed range does not hold; a range of
// all threads that does; text that is not ours; a range without kernels; and one within another.
static void work(void) {
    pthread_t thread;
    launch("before", 5000);
    for (uint64_t i = 0; i < 2; i++) {
        nvtxRangePushA("mw:gemm gemm_dtype=bfloat16 m=64");
        launch("gemm", 1000 + 200 * i);
        nvtxRangePop();
    }
    nvtxRangePushA("a name of the program's own");
    nvtxRangePushA("mw:gemm gemm_dtype=bfloat16 m=128");
    launch("gemm", 3000);
    pthread_create(&thread, NULL, work_elsewhere, NULL);
    pthread_join(thread, NULL);
    nvtxRangePushA("mw:norm rows=4");
    launch("norm", 400);
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangeId_t all = nvtxRangeStartA("mw:step index=1");
    launch("gemm", 10);
    pthread_create(&thread, NULL, work_elsewhere, NULL);
    pthread_join(thread, NULL);
    nvtxRangeEnd(all);
    nvtxRangePushA("mw:norm rows=8");
    nvtxRangePop();
}

// CUPTI loses as many records.
static void drop(void *cupti, size_t num_dropped) {
    void (*fake_drop)(size_t num_dropped);
    void *found = symbol(cupti, "fake_drop");
    memcpy(&fake_drop, &found, sizeof found);
    fake_drop(num_dropped);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "0";
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    if (!cupti) cupti = dlopen(getenv("MESHWRIGHT_CUPTI"), RTLD_NOW);
    void *found = symbol(cupti, "fake_launch");
    memcpy(&fake_launch, &found, sizeof found);
    if (strcmp(how, "refused") == 0) {
        void (*refuse)(int);
        found = symbol(cupti, "fake_refuse");
        memcpy(&refuse, &found, sizeof refuse);
        refuse(35);
    }
    driver_begin();
    if (strcmp(how, "idle") == 0) return 0;
    work();
    if (strcmp(how, "drop") == 0) drop(cupti, 3);
    pid_t child = fork(); // of a data loader: it inherits everything and adds nothing
    if (child == 0) exit(0);
    waitpid(child, NULL, 0);
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    return atoi(how);
}
