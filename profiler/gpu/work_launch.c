// profiler/gpu/work_launch.c - what launching costs, with a kernel that does nothing.
#include "profiler/gpu/gpu_kernels.h"
#include "profiler/gpu/gpu_session.h"

#include <stdlib.h>
#include <time.h>

typedef struct {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
} LaunchWork;

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static Status launch_empty(GpuWork *work) {
    CUDA_TRY(kernel_empty(work->session->stream));
    return status_ok();
}

static Status launch_graph(GpuWork *work) {
    const LaunchWork *launch = work->own;
    CUDA_TRY(cudaGraphLaunch(launch->exec, work->session->stream));
    return status_ok();
}

// Host seconds of a launch, the queue being far from full.
static Status host_interval(GpuWork *work, double *out_s) {
    int num_kernels = work->request.launch.num_kernels;
    double begin_s = now_s();
    for (int i = 0; i < num_kernels; i++) TRY(launch_empty(work));
    *out_s = (now_s() - begin_s) / num_kernels;
    CUDA_TRY(cudaStreamSynchronize(work->session->stream));
    return status_ok();
}

static Status round_trip(GpuWork *work, double *out_s) {
    double begin_s = now_s();
    TRY(work->call(work));
    CUDA_TRY(cudaStreamSynchronize(work->session->stream));
    *out_s = now_s() - begin_s;
    return status_ok();
}

// GPU seconds per kernel; from the first call's end to the last's would leave one out, so that the
// events' own time is among num_kernels.
static Status gpu_interval(GpuWork *work, double *out_s) {
    const LaunchRequest *request = &work->request.launch;
    GpuBatch batch;
    bool graph = request->op == LAUNCH_GRAPH_INTERVAL;
    TRY(gpu_batch(work, graph ? 1 : request->num_kernels, true, &batch));
    *out_s = batch.batch_s / request->num_kernels;
    return status_ok();
}

static Status measure(GpuWork *work, int num_calls, bool queued, GpuBatch *out) {
    (void)queued;
    out->batch_s = 0;
    for (int i = 0; i < num_calls; i++) {
        double *call_s = &out->call_s[i];
        switch (work->request.launch.op) {
        case LAUNCH_INTERVAL:
            TRY(host_interval(work, call_s));
            break;
        case LAUNCH_ROUND_TRIP:
        case LAUNCH_GRAPH_REPLAY:
            TRY(round_trip(work, call_s));
            break;
        default:
            TRY(gpu_interval(work, call_s));
            break;
        }
        out->batch_s += *call_s;
    }
    out->num_call_s = num_calls;
    return status_ok();
}

static Status capture(GpuWork *work, LaunchWork *launch) {
    cudaStream_t stream = work->session->stream;
    CUDA_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < work->request.launch.num_kernels && error == cudaSuccess; i++)
        error = kernel_empty(stream);
    cudaError_t ended = cudaStreamEndCapture(stream, &launch->graph);
    CUDA_TRY(error);
    CUDA_TRY(ended);
    CUDA_TRY(cudaGraphInstantiate(&launch->exec, launch->graph, 0));
    return status_ok();
}

static void free_own(GpuWork *work) {
    LaunchWork *launch = work->own;
    if (launch->exec) cudaGraphExecDestroy(launch->exec);
    if (launch->graph) cudaGraphDestroy(launch->graph);
    free(launch);
}

Status gpu_launch_prepare(GpuWork *work) {
    const LaunchRequest *request = &work->request.launch;
    if (request->num_kernels < 1 || request->num_kernels > GPU_MAX_CALLS)
        return status_error(STATUS_INVALID, "meshwright: %d kernels; expected 1 to %d",
                            request->num_kernels, GPU_MAX_CALLS);
    LaunchWork *launch = calloc(1, sizeof *launch);
    if (!launch) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    work->own = launch;
    work->free_own = free_own;
    work->num_copies = 1;
    work->measure = measure;
    work->call = launch_empty;
    TRY(launch_empty(work)); // what is loaded at first use is loaded
    CUDA_TRY(cudaStreamSynchronize(work->session->stream));
    if (request->op != LAUNCH_GRAPH_INTERVAL && request->op != LAUNCH_GRAPH_REPLAY)
        return status_ok();
    work->call = launch_graph;
    return capture(work, launch);
}
