// profiler/gpu/pack.cuh - the packs of the CUDA backend, for the kernels that are measured.
#pragma once

#include "backend/cuda/pack.cuh"
#include "profiler/gpu/gpu_kernels.h"
