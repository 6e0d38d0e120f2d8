// profiler/gpu_check.h - are the kernels that are timed right? Each runs once at small sizes and is
// compared with the same arithmetic on the host.
#pragma once

#include "base/arena.h"
#include "profiler/gpu_plugin.h"

typedef struct {
    const char *name;        // "rmsnorm_forward 96 x 1600", "bfloat16 backward_weight ..."
    const char *array;       // with the largest error
    double error, tolerance; // largest |difference| / (|expected| + root mean square of expected)
} GpuCheck;

typedef struct {
    GpuCheck *checks; // [num_checks]
    int num_checks, num_wrong;
} GpuChecks;

Status gpu_check(const GpuPlugin *plugin, int device, Arena *arena, GpuChecks *out);

// The error of one array as above; NAN anywhere is infinite.
double gpu_check_error(Number dtype, const void *found, const void *expected, size_t num_elements);

// output [m][n] = left right as GemmLayout has them, in double; adds where accumulate.
void gemm_reference(const GemmRequest *request, const void *left, const void *right, void *output);
