// config/kernels/kernel_nccl.h - measured collectives inside one node: section `nccl` of a kernel
// profile.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/machine/link.h"

typedef enum {
    NCCL_ALL_GATHER,
    NCCL_ALL_REDUCE,
    NCCL_ALL_TO_ALL,
    NCCL_REDUCE_SCATTER,
    NUM_NCCL_OPS
} NcclOp;

// What adds numbers depends on their format, what copies them does not.
typedef enum { NCCL_ANY, NCCL_HALF, NCCL_INT8, NUM_NCCL_DTYPES } NcclDtype;

extern const char *const NCCL_OP_NAMES[NUM_NCCL_OPS + 1];       // end with NULL
extern const char *const NCCL_DTYPE_NAMES[NUM_NCCL_DTYPES + 1]; //

// Seconds over the bytes of the whole buffer: those of costmodel/kernel/kernel_nccl.h.
typedef struct {
    int op;       // NcclOp
    int dtype;    // NcclDtype; NCCL_ANY for all-gather and all-to-all
    int num_gpus; // >= 2
    int num_points;
    const double *bytes;         // [num_points], rising
    const double *seconds;       // [num_points]
    double residual_median_frac; // |error| on left-out sizes, median
    double residual_p90_frac;    // and 90th percentile
} NcclCurve;

typedef struct {
    int num_curves;
    const NcclCurve *curves; // [num_curves]; of one op and dtype with rising num_gpus
    const char *link;        // they were measured on (hw-profiles/links); NULL where unknown
    bool switched;           // that link
} NcclKernels;

// Share of the buffer that each rank sends: all-reduce twice.
double nccl_wire_frac(NcclOp op, double num_gpus);

// No collective is faster: its bytes on the wire at the link's nominal bandwidth. Where the switch
// adds, an all-reduce sends every byte once.
double nccl_least_s(const Link *link, NcclOp op, double num_gpus, double bytes);

// Reads and checks; refuses curves beyond the nominal bandwidth of their link.
Status nccl_kernels_read(const JsonNode *node, Arena *arena, NcclKernels *out);

// The curves without their noise: a longer message is never faster than a shorter one, nor a larger
// group than a smaller one.
NcclKernels nccl_kernels_rising(const NcclKernels *kernels, Arena *arena);

// The section again.
cJSON *nccl_kernels_to_json(const NcclKernels *kernels);
