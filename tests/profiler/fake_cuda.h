// tests/profiler/fake_cuda.h - a CUDA runtime without a GPU: what is queued takes made-up seconds
// of a clock that stands still otherwise, so that what the plugin measures can be worked out by
// hand.
//
// A stream is the second at which all that was queued on it is over; memory is of the host and not
// touched but by copies and small products. FAKE_CUDA names what is there and what goes wrong,
// joined by commas:
//   gpus=N        there are so many; else one
//   memory=D      GPU D has 1 GB
//   pinned=0      the host has no memory that it can pin
//   late=D        the first 8 gates of GPU D wait too long
//   fp8=0         as before Hopper
//   group=missing NCCL cannot be loaded
//   backend=missing
// and of what CUPTI records, where the one of fake_cupti.c is loaded:
//   kernels=N     a product is so many kernels, one behind the other
//   foreign=1     beside each product a kernel of another's tag
//   dropped=M     of products of M rows the last kernel's record is dropped
//   odd=M         of those every second has one more
#pragma once

#include <cuda_runtime_api.h>

#include "backend/backend.h"
#include "profiler/gpu/gpu_kernels.h"

#include <stdbool.h>

// The laws of the fake GPU.
#define FAKE_FLOPS_PER_S 500e12    // of products and attention; of fp8 that accumulates fast twice
#define FAKE_CALL_S 4e-6           // added to both
#define FAKE_GAP_S 1e-6            // of it, before the first kernel begins
#define FAKE_COPY_BYTES_PER_S 40e9 // of each block that copies, read and written
#define FAKE_GROUP_BYTES_PER_S 100e9 // of what a rank holds in a group's call
#define FAKE_GROUP_S 8e-6            // added to it
#define FAKE_TO_DEVICE_BYTES_PER_S                                                                 \
    50e9 // from the host, FAKE_CALL_S added, where it is pinned there
#define FAKE_TO_HOST_BYTES_PER_S 40e9
#define FAKE_RANK_S 20e-6 // and for each rank before one's own, but for sums of one number
#define FAKE_GATE_S 1e-3  // from GPU to GPU between the openings of gates
#define FAKE_LATE_S 50e-6 // added to all that is queued behind a gate that opened too late
enum { FAKE_NUM_SMS = 132, FAKE_GROUP_SMS = 12 }; // the SMs that a collective takes from products

struct CUstream_st {
    int device;
    double end_s; // of what is queued
};

struct CUevent_st {
    double at_s;
    cudaStream_t running; // what it stands behind has no end yet; NULL: at_s is known
};

// The value of a name in FAKE_CUDA, or -1.
int fake_value(const char *name);

// Where what is queued next on a stream begins.
double fake_now_s(cudaStream_t stream);

// Adds so long to a stream; products take longer while something runs beside them.
void fake_work(cudaStream_t stream, double work_s, bool product);

// A product of so many rows.
cudaError_t fake_product(cudaStream_t stream, double work_s, int rows);

// The first launch of a kernel; products have the seconds that they take for a name. Fails where
// something spins on the GPU until the kernel has run (fake_loading.c).
#define FAKE_PAUSE (-1.0)
#define FAKE_AWAIT (-2.0)
cudaError_t fake_load(cudaStream_t stream, double kernel, bool spins);

// Records of what took this time (fake_records.c).
void fake_record(const char *name, double begin_s, double end_s);
void fake_record_product(int rows, double begin_s, double end_s);

// Until when a group's calls keep SMs of a GPU.
void fake_group_until(int device, double end_s);
