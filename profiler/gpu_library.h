// profiler/gpu_library.h - finds and loads libmeshwright-gpu.so.
#pragma once

#include "base/status.h"
#include "profiler/gpu_plugin.h"

// Looks at the path in MESHWRIGHT_GPU_PLUGIN, else beside the executable, then in ../lib of it. It
// stays loaded. Fails with STATUS_MACHINE and one sentence that names what is missing.
Status gpu_library_load(const GpuPlugin **out);
