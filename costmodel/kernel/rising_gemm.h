// costmodel/kernel/rising_gemm.h - a measured product whose time rises with m, n and k but at
// edges.
//
// Model:  costmodel/kernel/kernel_gemm.h on the measured sizes, a lattice over m, n and k that
// rises
//         (costmodel/kernel/rising.h). Libraries choose another kernel at some of those sizes, most
//         of them of m.
// Limits: more than was measured takes eightfold steps.
#pragma once

#include "costmodel/kernel/kernel_edge.h"
#include "costmodel/kernel/kernel_gemm.h"

typedef struct RisingGemm RisingGemm;

// Of one number format that the GPU and the kernels have; all must live as long as the arena.
RisingGemm *rising_gemm_new(const Gpu *gpu, const GemmKernels *kernels, GemmDtype dtype,
                            Arena *arena);

double rising_gemm_s(const RisingGemm *gemm, double m, double n, double k);

// Edges of m, n and k.
void rising_gemm_edges(const RisingGemm *gemm, double m, double n, double k, KernelEdges *edges);
