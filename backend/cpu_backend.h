// backend/cpu_backend.h - the backend of a CPU: OpenBLAS for products, plain loops for the rest.
#pragma once

#include "backend/backend.h"

// Where act is DTYPE_FP64, so is wide. Where act is DTYPE_FP32, so is wide, but with
// MESHWRIGHT_CPU_WIDE=fp64 in the environment. That is for tests, as a GPU's two formats differ,
// too. memory_bytes: most that alloc may give out; 0: all of the machine. Streams are done in the
// order in which they are filled.
Status cpu_backend_open(Dtype act, size_t memory_bytes, Backend **out);
