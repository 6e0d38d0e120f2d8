// tests/checked_gpu/kernels.h - what the files of kernels share.
#pragma once

#include "backend/cuda/cuda_device.h"
#include "tests/checked_gpu/checked_gpu.h"

// The CPU in fp32, which does the work.
Backend *checked_cpu(void);

// As a launch of backend/cuda: begun with its arrays, which order it after what they wait for.
void checked_launch(Backend *backend, BackendStream *stream, const Call *call);
