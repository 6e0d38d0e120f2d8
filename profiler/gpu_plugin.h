// profiler/gpu_plugin.h - the table of functions of libmeshwright-gpu.so, the only part of the
// profiler that links CUDA. profiler/gpu_library.h loads it.
//
// The plugin prepares one piece of work at a time (allocates, fills, chooses the algorithm), runs
// as many calls of it as it is asked for, and times them. How often is the caller's business.
#pragma once

#include "base/status.h"
#include "profiler/attention_work.h"
#include "profiler/number.h"
#include "profiler/team_work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Changes with every change of this header, of memory_ops.h, attention_work.h or team_work.h.
#define GPU_PLUGIN_ABI 5
#define GPU_PLUGIN_SYMBOL "meshwright_gpu_plugin"

enum { GPU_KERNEL_NAME = 160, GPU_MAX_CALLS = 256 };

typedef struct {
    char name[256];
    char pci_bus_id[32];
    int compute_major, compute_minor, num_sms;
    double memory_bytes, l2_bytes;
    double max_sm_clock_hz, max_memory_clock_hz;
    int memory_bus_bits;
    int driver_cuda_version, runtime_cuda_version; // as CUDA counts: 13000 is 13.0
    int64_t cublaslt_version;
    int64_t cudnn_version, nccl_version; // 0: attention and groups do without
    bool has_cupti;                      // built with CUPTI
    int num_devices;                     // that this process sees
} GpuInfo;

// Whose product it is; m, n, k are always those of the product itself, [m][n] = [m][k] [k][n].
typedef enum {
    GEMM_FORWARD,         // y = x W^T:    x [m][k], W [n][k]   (cuBLAS: TN)
    GEMM_BACKWARD_INPUT,  // dx = dy W:    dy [m][k], W [k][n]  (NN)
    GEMM_BACKWARD_WEIGHT, // dW = dy^T x:  dy [k][m], x [k][n]  (NT)
} GemmLayout;

typedef struct {
    Number dtype, out_dtype;
    GemmLayout layout;
    int m, n, k;
    bool accumulate; // beta = 1: adds to the output
    bool zeros;      // inputs of zeros instead of normal numbers
} GemmRequest;

// fp8 is what Transformer Engine trains with on Hopper (transformer_engine/common/recipe: format
// HYBRID): gradients, the left operands of both backward products, are E5M2, all else E4M3.
static inline Number gemm_left_dtype(const GemmRequest *request) {
    bool is_gradient = request->layout != GEMM_FORWARD;
    return request->dtype == NUMBER_FP8 && is_gradient ? NUMBER_FP8_E5M2 : request->dtype;
}

// How the operands lie. On Hopper cuBLASLt multiplies fp8 only where both are contiguous along the
// sum (TN): of a backward product they are transposed beforehand, which is not timed.
static inline GemmLayout gemm_operands(const GemmRequest *request) {
    return request->dtype == NUMBER_FP8 ? GEMM_FORWARD : request->layout;
}

typedef struct {
    const char *op; // of MEMORY_OPS
    int64_t rows, columns;
} MemoryRequest;

// Between pinned memory of the host and the GPU.
typedef struct {
    bool to_device; // else to the host
    int64_t num_bytes;
} HostCopyRequest;

typedef enum {
    LAUNCH_INTERVAL,       // host seconds of one launch, many without waiting
    LAUNCH_ROUND_TRIP,     // host seconds of a launch and the wait for its end
    LAUNCH_GPU_INTERVAL,   // GPU seconds from kernel to kernel, all queued before the first starts
    LAUNCH_GRAPH_INTERVAL, // GPU seconds from kernel to kernel within a graph
    LAUNCH_GRAPH_REPLAY,   // host seconds from the launch of a graph to its end, per graph
    NUM_LAUNCH_OPS
} LaunchOp;

typedef struct {
    LaunchOp op;
    int num_kernels; // in a row, or in a graph
} LaunchRequest;

// Products while something else runs on the same GPU: a kernel that copies, or, with a team, its
// call over and over on each of its GPUs.
typedef struct {
    bool alone;         // without the product: how fast the neighbour is by itself
    bool product_alone; // of a team: without its calls, all GPUs at once
    int num_blocks;     // of the kernel that copies, one an SM; 0: the team
} BesideRequest;

typedef enum {
    GPU_WORK_GEMM,
    GPU_WORK_MEMORY,
    GPU_WORK_HOST_COPY,
    GPU_WORK_LAUNCH,
    GPU_WORK_ATTENTION,
    GPU_WORK_TEAM,
    GPU_WORK_BESIDE, // gemm, beside, and team where that has no blocks
} GpuWorkKind;

typedef struct {
    GpuWorkKind kind;
    GemmRequest gemm;
    MemoryRequest memory;
    HostCopyRequest host_copy;
    LaunchRequest launch;
    AttentionRequest attention;
    TeamRequest team;
    BesideRequest beside;
} GpuRequest;

typedef enum { GPU_TIMER_EVENTS, GPU_TIMER_CUPTI } GpuTimer;

typedef struct {
    double batch_s;               // of all calls, by two events around them
    int num_call_s;               // 0 where CUPTI does not tell them, else the number of calls
    size_t num_dropped;           // records that CUPTI had no room for; num_call_s is then 0
    double call_s[GPU_MAX_CALLS]; // first start to last end of each call's kernels
    char kernel[GPU_KERNEL_NAME]; // the longest of a call; empty without CUPTI
    // Of GPU_WORK_BESIDE, else 0: what the neighbour did meanwhile. A copy counts bytes read and
    // written, a team num_elements of 2 bytes a call.
    double beside_bytes_per_s;
} GpuBatch;

typedef struct GpuSession GpuSession;
typedef struct GpuWork GpuWork;

typedef struct {
    uint32_t abi; // GPU_PLUGIN_ABI
    // STATUS_MACHINE with the missing part's name where there is no driver or no such device.
    Status (*probe)(int device, GpuInfo *out);
    // *timer is what was asked for and becomes what there is; note says why they differ.
    Status (*open)(int device, GpuTimer *timer, GpuSession **out, char *note, size_t note_size);
    void (*close)(GpuSession *session); // accepts NULL

    // STATUS_NO where the device has no such kernel, or what the work needs is not installed.
    Status (*prepare)(GpuSession *session, const GpuRequest *request, GpuWork **out);
    // num_calls from 1 to GPU_MAX_CALLS. Queued: all are launched before the first begins, so that
    // no launch is waited for.
    Status (*run)(GpuWork *work, int num_calls, bool queued, GpuBatch *out);
    void (*release)(GpuWork *work); // accepts NULL

    // One call on arrays of the host, for checks. buffers as MEMORY_OPS lists them; what is written
    // comes back. Of a product: left and right operands and the output, as GemmLayout says.
    Status (*apply_memory)(GpuSession *session, const MemoryRequest *request, void *const *buffers);
    Status (*apply_gemm)(GpuSession *session, const GemmRequest *request, const void *left,
                         const void *right, void *output);
} GpuPlugin;

// What the library exports under GPU_PLUGIN_SYMBOL.
typedef const GpuPlugin *(*GpuPluginGet)(void);
