// costmodel/kernel/rising_nccl.h - a measured collective inside a node whose time rises with the
// message and with the group but at edges.
//
// Model:  costmodel/kernel/kernel_nccl.h on a lattice over GPUs and bytes that rises
//         (costmodel/kernel/rising.h), one for each collective and number format. NCCL chooses
//         protocol and algorithm by the size, so that more bytes may take less time.
// Limits: as kernel_nccl.h.
#pragma once

#include "costmodel/kernel/kernel_edge.h"
#include "costmodel/kernel/kernel_nccl.h"

typedef struct RisingNccl RisingNccl;

// What is called, and on how much.
typedef struct {
    NcclOp op;
    NcclDtype dtype; // NCCL_HALF or NCCL_INT8
    double element_bytes;
    double num_gpus, num_elements;
} NcclCall;

// kernels must live as long as the arena.
RisingNccl *rising_nccl_new(const NcclKernels *kernels, Arena *arena);

// NAN as kernel_nccl_s has it.
double rising_nccl_s(RisingNccl *nccl, const NcclCall *call);

// Edges of num_gpus and message_size (elements).
void rising_nccl_edges(RisingNccl *nccl, const NcclCall *call, KernelEdges *edges);
