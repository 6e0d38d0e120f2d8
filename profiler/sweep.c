#include "profiler/sweep.h"

const char *const SWEEP_NAMES[NUM_SWEEPS + 1] = {"launch",
                                                 "gemm",
                                                 "gemm_backward",
                                                 "gemm_other",
                                                 "context_attention",
                                                 "attention_backward",
                                                 "memory_bound",
                                                 "host_copy",
                                                 "nccl",
                                                 "send_recv",
                                                 "contention",
                                                 "sustained",
                                                 NULL};

void sweep_add(Sweep *sweep, GpuRequest request, Arena *arena) {
    // Grows by doubling: a power of two is full.
    int n = sweep->num_requests;
    if (n == 0 || (n & (n - 1)) == 0)
        sweep->requests =
            arena_grow(arena, sweep->requests, (size_t)(n ? 2 * n : 1) * sizeof request);
    sweep->requests[sweep->num_requests++] = request;
}

void sweep_launch(Sweep *sweep, Arena *arena) {
    static const LaunchRequest LAUNCHES[] = {
        {LAUNCH_INTERVAL, 200},      {LAUNCH_ROUND_TRIP, 1},       {LAUNCH_GPU_INTERVAL, 200},
        {LAUNCH_GRAPH_INTERVAL, 10}, {LAUNCH_GRAPH_INTERVAL, 200}, {LAUNCH_GRAPH_REPLAY, 1},
        {LAUNCH_GRAPH_REPLAY, 10},   {LAUNCH_GRAPH_REPLAY, 200},
    };
    for (size_t i = 0; i < sizeof LAUNCHES / sizeof *LAUNCHES; i++)
        sweep_add(sweep, (GpuRequest){.kind = GPU_WORK_LAUNCH, .launch = LAUNCHES[i]}, arena);
}

Sweep sweep_new(SweepKind kind, bool quick, int num_gpus, Arena *arena) {
    Sweep sweep = {0};
    switch (kind) {
    case SWEEP_LAUNCH:
        sweep_launch(&sweep, arena);
        break;
    case SWEEP_GEMM:
        sweep_gemm(&sweep, quick, arena);
        break;
    case SWEEP_GEMM_BACKWARD:
        sweep_gemm_backward(&sweep, quick, arena);
        break;
    case SWEEP_GEMM_OTHER:
        sweep_gemm_other(&sweep, quick, arena);
        break;
    case SWEEP_ATTENTION:
        sweep_attention(&sweep, quick, arena);
        break;
    case SWEEP_ATTENTION_BACKWARD:
        sweep_attention_backward(&sweep, quick, arena);
        break;
    case SWEEP_MEMORY:
        sweep_memory(&sweep, quick, arena);
        break;
    case SWEEP_HOST_COPY:
        sweep_host_copy(&sweep, quick, arena);
        break;
    case SWEEP_NCCL:
        sweep_nccl(&sweep, quick, num_gpus, arena);
        break;
    case SWEEP_SEND_RECV:
        sweep_send_recv(&sweep, quick, num_gpus, arena);
        break;
    case SWEEP_CONTENTION:
        sweep_contention(&sweep, quick, num_gpus, arena);
        break;
    default:
        sweep_sustained(&sweep, quick, arena);
        break;
    }
    return sweep;
}
