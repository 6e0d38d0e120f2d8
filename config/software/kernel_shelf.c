#include "config/software/kernel_shelf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// A grid over more machines than these reads the others as often as it meets them.
enum { MAX_SHELVED = 64 };

typedef enum { SHELVED_KERNELS, SHELVED_CURVES, SHELVED_STACK } ShelvedKind;

typedef struct {
    ShelvedKind kind;
    const char *name;  // of kernels: the GPU's file; of curves: the GPU
    const void *thing; // CalibratedKernels, NcclKernels, Stack
} Shelved;

struct KernelShelf {
    pthread_mutex_t mutex; // of all below
    Arena arena;
    Shelved items[MAX_SHELVED];
    int num_items;
};

KernelShelf *kernel_shelf_new(void) {
    Arena arena = {0};
    KernelShelf *shelf = ARENA_NEW(&arena, KernelShelf);
    pthread_mutex_init(&shelf->mutex, NULL);
    shelf->arena = arena; // the shelf lies in its own arena
    return shelf;
}

void kernel_shelf_free(KernelShelf *shelf) {
    if (!shelf) return;
    pthread_mutex_destroy(&shelf->mutex);
    Arena arena = shelf->arena;
    arena_free(&arena);
}

static const void *shelved_find(const KernelShelf *shelf, ShelvedKind kind, const char *name) {
    for (int i = 0; i < shelf->num_items; i++)
        if (shelf->items[i].kind == kind && strcmp(shelf->items[i].name, name) == 0)
            return shelf->items[i].thing;
    return NULL;
}

static void shelved_add(KernelShelf *shelf, ShelvedKind kind, const char *name, const void *thing) {
    shelf->items[shelf->num_items++] = (Shelved){kind, arena_strdup(&shelf->arena, name), thing};
}

// The GPU with the texts that it points to; it has no laws of a core, as only CPUs do.
static Gpu gpu_copy(const Gpu *gpu, Arena *arena) {
    Gpu copy = *gpu;
    const char **texts[] = {&copy.name,         &copy.title, &copy.vendor,
                            &copy.architecture, &copy.file,  &copy.kernels_of};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i]) *texts[i] = arena_strdup(arena, *texts[i]);
    GpuArchitecture *shared = ARENA_NEW(arena, GpuArchitecture);
    *shared = *gpu->shared;
    shared->name = arena_strdup(arena, shared->name);
    copy.shared = shared;
    return copy;
}

static Status kernels_make(KernelShelf *shelf, const Gpu *gpu, const void **out) {
    const Gpu own = gpu_copy(gpu, &shelf->arena);
    const CalibratedKernels *kernels;
    TRY(kernels_load_for(&own, &shelf->arena, &kernels));
    *out = kernels;
    return status_ok();
}

static Status curves_load(const char *gpu_name, Arena *arena, const NcclKernels **out) {
    KernelProfile profile;
    TRY(kernels_load_named(gpu_name, arena, &profile));
    NcclKernels *curves = ARENA_NEW(arena, NcclKernels);
    *curves = nccl_kernels_rising(&profile.nccl, arena);
    *out = curves;
    return status_ok();
}

static Status curves_make(KernelShelf *shelf, const char *gpu_name, const void **out) {
    const NcclKernels *curves;
    TRY(curves_load(gpu_name, &shelf->arena, &curves));
    *out = curves;
    return status_ok();
}

static Status stack_make(KernelShelf *shelf, const char *name, const void **out) {
    Stack *stack = ARENA_NEW(&shelf->arena, Stack);
    TRY(stack_load_named(name, &shelf->arena, stack));
    *out = stack;
    return status_ok();
}

// What is wanted, found or made; NULL where the shelf is full.
//   gpu  of kernels
static Status shelved_take(KernelShelf *shelf, ShelvedKind kind, const char *name, const Gpu *gpu,
                           const void **out) {
    Status status = status_ok();
    pthread_mutex_lock(&shelf->mutex);
    *out = shelved_find(shelf, kind, name);
    if (!*out && shelf->num_items < MAX_SHELVED) {
        status = kind == SHELVED_KERNELS  ? kernels_make(shelf, gpu, out)
                 : kind == SHELVED_CURVES ? curves_make(shelf, name, out)
                                          : stack_make(shelf, name, out);
        if (status.code == STATUS_OK) shelved_add(shelf, kind, name, *out);
    }
    pthread_mutex_unlock(&shelf->mutex);
    return status;
}

Status kernel_shelf_kernels(KernelShelf *shelf, const Gpu *gpu, Arena *arena,
                            const CalibratedKernels **out) {
    const void *found = NULL;
    if (shelf && gpu->kernels_of && !gpu->core)
        TRY(shelved_take(shelf, SHELVED_KERNELS, gpu->file, gpu, &found));
    if (!found) return kernels_load_for(gpu, arena, out);
    *out = found;
    return status_ok();
}

Status kernel_shelf_curves(KernelShelf *shelf, const char *gpu_name, Arena *arena,
                           const NcclKernels **out) {
    const void *found = NULL;
    if (shelf) TRY(shelved_take(shelf, SHELVED_CURVES, gpu_name, NULL, &found));
    if (!found) return curves_load(gpu_name, arena, out);
    *out = found;
    return status_ok();
}

Status kernel_shelf_stack(KernelShelf *shelf, const char *name, Arena *arena, Stack *out) {
    const void *found = NULL;
    if (shelf) TRY(shelved_take(shelf, SHELVED_STACK, name, NULL, &found));
    if (!found) return stack_load_named(name, arena, out);
    *out = *(const Stack *)found;
    return status_ok();
}
