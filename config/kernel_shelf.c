#include "config/kernel_shelf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// A grid over more machines than these reads the others as often as it meets them.
enum { MAX_SHELVED = 64 };

typedef struct {
    const char *name; // of kernels: the GPU's file; of curves: the GPU
    const CalibratedKernels *kernels;
    const NcclKernels *curves;
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

static const Shelved *shelved_find(const KernelShelf *shelf, const char *name, bool kernels) {
    for (int i = 0; i < shelf->num_items; i++)
        if (kernels == (shelf->items[i].curves == NULL) && strcmp(shelf->items[i].name, name) == 0)
            return &shelf->items[i];
    return NULL;
}

static void shelved_add(KernelShelf *shelf, Shelved item) {
    item.name = arena_strdup(&shelf->arena, item.name);
    shelf->items[shelf->num_items++] = item;
}

// The GPU with the texts that it points to; it has no laws of a core, as only CPUs do.
static Gpu gpu_copy(const Gpu *gpu, Arena *arena) {
    Gpu copy = *gpu;
    const char **texts[] = {&copy.name,         &copy.title, &copy.vendor,
                            &copy.architecture, &copy.file,  &copy.kernels_of};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i]) *texts[i] = arena_strdup(arena, *texts[i]);
    return copy;
}

Status kernel_shelf_kernels(KernelShelf *shelf, const Gpu *gpu, Arena *arena,
                            const CalibratedKernels **out) {
    if (!shelf || !gpu->kernels_of || gpu->core) return kernels_load_for(gpu, arena, out);
    pthread_mutex_lock(&shelf->mutex);
    const Shelved *found = shelved_find(shelf, gpu->file, true);
    Status status = status_ok();
    if (found) {
        *out = found->kernels;
    } else if (shelf->num_items == MAX_SHELVED) {
        status = kernels_load_for(gpu, arena, out);
    } else {
        const Gpu own = gpu_copy(gpu, &shelf->arena);
        status = kernels_load_for(&own, &shelf->arena, out);
        if (status.code == STATUS_OK)
            shelved_add(shelf, (Shelved){.name = gpu->file, .kernels = *out});
    }
    pthread_mutex_unlock(&shelf->mutex);
    return status;
}

static Status curves_load(const char *gpu_name, Arena *arena, const NcclKernels **out) {
    KernelProfile profile;
    TRY(kernels_load_named(gpu_name, arena, &profile));
    NcclKernels *curves = ARENA_NEW(arena, NcclKernels);
    *curves = nccl_kernels_rising(&profile.nccl, arena);
    *out = curves;
    return status_ok();
}

Status kernel_shelf_curves(KernelShelf *shelf, const char *gpu_name, Arena *arena,
                           const NcclKernels **out) {
    if (!shelf) return curves_load(gpu_name, arena, out);
    pthread_mutex_lock(&shelf->mutex);
    const Shelved *found = shelved_find(shelf, gpu_name, false);
    Status status = status_ok();
    if (found) {
        *out = found->curves;
    } else if (shelf->num_items == MAX_SHELVED) {
        status = curves_load(gpu_name, arena, out);
    } else {
        status = curves_load(gpu_name, &shelf->arena, out);
        if (status.code == STATUS_OK)
            shelved_add(shelf, (Shelved){.name = gpu_name, .curves = *out});
    }
    pthread_mutex_unlock(&shelf->mutex);
    return status;
}
