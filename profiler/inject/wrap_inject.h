// profiler/inject/wrap_inject.h - inside libmeshwright-wrap.so: what its parts tell each other.
//
// The library is loaded into a foreign process: by the CUDA driver, which CUDA_INJECTION64_PATH
// tells to, when the process initialises CUDA; and by NVTX, which NVTX_INJECTION64_PATH tells to,
// when the process marks its first range. It says nothing, never ends the process, and does
// nothing in a process without MESHWRIGHT_WRAP_RECORDS, the folder for its files (wrap_file.h).
//
// NVTX ranges are taken here and not by CUPTI's activity kind MARKER: CUPTI 13.0 as the receiver of
// NVTX breaks processes that name threads (github.com/NVIDIA/NVTX, issue 125).
#pragma once

#include "profiler/wrap_file.h"

// Begins to record in this process, once. False where that cannot be.
bool wrap_begin(void);

// The time on CUPTI's clock; 0 where nothing is recorded.
uint64_t wrap_now_ns(void);

// The calling thread, as CUPTI numbers it in its records of calls.
uint32_t wrap_thread_id(void);

// Adds a range that has ended.
void wrap_range_add(const WrapRange *range);

// From here on, calls of the API are recorded too. Called before the first range opens.
void wrap_calls_begin(void);
