// config/kernels/kernels.h - measured kernels of one GPU: hw-profiles/kernels/NAME.json, or a file
// of `calibrate --kernels` that a GPU's kernels_of names, checked.
//
// A section per kind (calibrate/kinds.h makes them). A GPU without a file, or a file without a
// section, has no calibrated kernels of that kind: costmodel/kernel/compute.h is what remains.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/memo.h"
#include "base/status.h"
#include "config/kernels/kernel_attention.h"
#include "config/kernels/kernel_gemm.h"
#include "config/kernels/kernel_moe.h"
#include "config/kernels/kernel_nccl.h"
#include "config/machine/gpu.h"

#include <stdbool.h>

typedef struct {
    const char *gpu; // the name of the GPU it was measured on; NULL: nothing calibrated
    GemmKernels gemm;
    MoeKernels moe;
    NcclKernels nccl;
    ContextKernels context_attention, context_mla;
    GenerationKernels generation_attention, generation_mla;
    // The structs of further kinds go here, each from a header config/kernels/kernel_KIND.h.
} KernelProfile;

// Kernels as a GPU prices them: its own, or those of its nearest relative.
typedef struct {
    KernelProfile profile;
    bool inherited; // the profile is a relative's
    bool foreign;   // of another architecture
    Memo *products; // seconds of products already priced, costmodel/kernel/compute.c
    Gpu gpu;        // for the formulas: the GPU, its peaks scaled where it inherits by how much of
                    // them it reaches over how much the relative does (GpuEfficiency.gemm_max_frac)
} CalibratedKernels;

// Of gpu->kernels_of; *out is NULL where that is. The sections that a training step is not priced
// by are not read. A path or name that leads nowhere is refused at the GPU's file with the names
// there are.
Status kernels_load_for(const Gpu *gpu, Arena *arena, const CalibratedKernels **out);

// Reads all sections, those that no training step needs too; a GPU without kernels_of is refused.
Status kernels_load_whole(const Gpu *gpu, Arena *arena, const CalibratedKernels **out);

// True where hw-profiles/kernels has a file for this GPU.
bool kernels_exist(const char *gpu_name, Arena *arena);

// Reads the bundled profile of a GPU; refuses (naming those there are) where there is none.
Status kernels_load_named(const char *gpu_name, Arena *arena, KernelProfile *out);

// Reads a file, which must be of that GPU.
Status kernels_load(const char *path, const Gpu *gpu, Arena *arena, KernelProfile *out);

// Reads a profile from a text in memory, with a NUL at text[size]; file is its name in messages.
Status kernels_parse(const char *text, size_t size, const char *file, const Gpu *gpu, Arena *arena,
                     KernelProfile *out);
