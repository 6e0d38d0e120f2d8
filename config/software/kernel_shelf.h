// config/software/kernel_shelf.h - measured kernels and software stacks that many scenarios share,
// each file read once.
//
// A file of kernels holds 300 kB of JSON and a stack's rules 40 kB, which is most of the time of
// reading a scenario. Where one question reads thousands of scenarios, on several threads, they
// take them from a shelf. Without a shelf (NULL) the functions read the file into the caller's
// arena.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/kernels/kernels.h"
#include "config/software/stack.h"

typedef struct KernelShelf KernelShelf;

KernelShelf *kernel_shelf_new(void);
void kernel_shelf_free(KernelShelf *shelf); // and all that was taken from it; NULL is accepted

// As kernels_load_for; GPUs of the same file have the same kernels.
Status kernel_shelf_kernels(KernelShelf *shelf, const Gpu *gpu, Arena *arena,
                            const CalibratedKernels **out);

// The collectives of a bundled GPU's profile, their times made to rise with the bytes.
Status kernel_shelf_curves(KernelShelf *shelf, const char *gpu_name, Arena *arena,
                           const NcclKernels **out);

// As stack_load_named, its rules among it.
Status kernel_shelf_stack(KernelShelf *shelf, const char *name, Arena *arena, Stack *out);
