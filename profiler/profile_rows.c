#include "profiler/profile_rows.h"
#include "profiler/memory_ops.h"

#include <math.h>

#define MEASURED_COLUMNS                                                                           \
    "latency_ms,batch_latency_ms,spread_frac,num_samples,timer,kernel,sm_clock_hz,temperature_c,"  \
    "throttle_reasons"

// The key columns of attention and of groups are those of calibrate/kinds.c.
#define ATTENTION_COLUMNS                                                                          \
    "attn_dtype,kv_cache_dtype,batch_size,isl,num_heads,num_key_value_heads,head_dim,window_size,"
#define TEAM_COLUMNS "op_name,nccl_dtype,num_gpus,message_size,"

static const struct {
    int num_keys;
    const char *header;
} TABLES[NUM_SWEEPS] = {
    [SWEEP_LAUNCH] = {2, "op,num_kernels," MEASURED_COLUMNS},
    [SWEEP_GEMM] = {4, "gemm_dtype,m,n,k," MEASURED_COLUMNS},
    [SWEEP_GEMM_BACKWARD] = {7, "gemm_dtype,m,n,k,layout,out_dtype,beta," MEASURED_COLUMNS},
    [SWEEP_GEMM_OTHER] = {4, "gemm_dtype,m,n,k," MEASURED_COLUMNS},
    [SWEEP_ATTENTION] = {8, ATTENTION_COLUMNS MEASURED_COLUMNS},
    [SWEEP_ATTENTION_BACKWARD] = {8, ATTENTION_COLUMNS MEASURED_COLUMNS},
    [SWEEP_NCCL] = {4, TEAM_COLUMNS MEASURED_COLUMNS},
    [SWEEP_SEND_RECV] = {4, TEAM_COLUMNS MEASURED_COLUMNS},
    [SWEEP_CONTENTION] = {8, "gemm_dtype,m,n,k,beside,num_gpus,num_blocks,message_size,"
                             "alone_latency_ms,slowdown_frac,beside_alone_bytes_per_s,"
                             "beside_bytes_per_s," MEASURED_COLUMNS},
    [SWEEP_MEMORY] = {4, "op,dtype,rows,columns,bytes," MEASURED_COLUMNS},
    [SWEEP_HOST_COPY] = {2, "op,bytes," MEASURED_COLUMNS},
    [SWEEP_SUSTAINED] = {5, "gemm_dtype,m,n,k,data,seconds,mean_sm_clock_hz,mean_power_watts,"
                            "temperature_c,throttle_reasons,latency_ms_first,latency_ms_steady"},
};

static const char *const LAYOUTS[] = {"forward", "backward_input", "backward_weight"};
static const char *const LAUNCH_OPS[NUM_LAUNCH_OPS] = {
    [LAUNCH_INTERVAL] = "host_launch_interval",
    [LAUNCH_ROUND_TRIP] = "host_launch_round_trip",
    [LAUNCH_GPU_INTERVAL] = "gpu_kernel_interval",
    [LAUNCH_GRAPH_INTERVAL] = "gpu_graph_kernel_interval",
    [LAUNCH_GRAPH_REPLAY] = "host_graph_round_trip",
};

const char *profile_header(SweepKind kind, int *num_keys) {
    *num_keys = TABLES[kind].num_keys;
    return TABLES[kind].header;
}

static const char *attention_key(const AttentionRequest *attention, Arena *arena) {
    return arena_printf(arena, "bfloat16,bfloat16,%d,%d,%d,%d,%d,0", attention->batch,
                        attention->tokens, attention->heads, attention->kv_heads,
                        attention->head_dim);
}

// What runs beside a product, where, and of what size.
static const char *beside_key(const GpuRequest *request, Arena *arena) {
    const TeamRequest *team = &request->team;
    if (request->beside.num_blocks > 0)
        return arena_printf(arena, "copy,1,%d,0", request->beside.num_blocks);
    return arena_printf(arena, "%s,%d,0,%lld", TEAM_OP_NAMES[team->op], team->num_gpus,
                        (long long)team->num_elements);
}

const char *profile_key(SweepKind kind, const GpuRequest *request, Arena *arena) {
    const GemmRequest *gemm = &request->gemm;
    const char *shape =
        arena_printf(arena, "%s,%d,%d,%d", number_name(gemm->dtype), gemm->m, gemm->n, gemm->k);
    switch (kind) {
    case SWEEP_LAUNCH:
        return arena_printf(arena, "%s,%d", LAUNCH_OPS[request->launch.op],
                            request->launch.num_kernels);
    case SWEEP_MEMORY:
        return arena_printf(arena, "%s,%s,%lld,%lld", request->memory.op,
                            number_name(memory_op_find(request->memory.op)->dtype),
                            (long long)request->memory.rows, (long long)request->memory.columns);
    case SWEEP_HOST_COPY:
        return arena_printf(arena, "%s,%lld",
                            request->host_copy.to_device ? "host_to_device" : "device_to_host",
                            (long long)request->host_copy.num_bytes);
    case SWEEP_ATTENTION:
    case SWEEP_ATTENTION_BACKWARD:
        return attention_key(&request->attention, arena);
    case SWEEP_NCCL:
    case SWEEP_SEND_RECV:
        return arena_printf(arena, "%s,bfloat16,%d,%lld", TEAM_OP_NAMES[request->team.op],
                            request->team.num_gpus, (long long)request->team.num_elements);
    case SWEEP_CONTENTION:
        return arena_printf(arena, "%s,%s", shape, beside_key(request, arena));
    case SWEEP_GEMM_BACKWARD:
        return arena_printf(arena, "%s,%s,%s,%d", shape, LAYOUTS[gemm->layout],
                            number_name(gemm->out_dtype), gemm->accumulate ? 1 : 0);
    case SWEEP_SUSTAINED:
        return arena_printf(arena, "%s,%s", shape, gemm->zeros ? "zeros" : "normal");
    default:
        return shape;
    }
}

const char *profile_cell(const char *text, Arena *arena) {
    char *cell = arena_strdup(arena, text);
    for (char *c = cell; *c; c++)
        if (*c == ',' || *c == '"' || *c == '\n' || *c == '\r') *c = ';';
    return cell;
}

// A number of so many digits, or nothing.
static const char *number(double value, int digits, Arena *arena) {
    return isfinite(value) ? arena_printf(arena, "%.*g", digits, value) : "";
}

static const char *reasons(const DeviceWindow *window, Arena *arena) {
    char text[NVML_REASONS_SIZE];
    return window->num_readings ? arena_strdup(arena, nvml_reasons_text(window->reasons, text))
                                : "";
}

const char *profile_cells(SweepKind kind, const GpuRequest *request, const Measured *measured,
                          const DeviceWindow *window, Arena *arena) {
    const char *bytes = "";
    if (kind == SWEEP_MEMORY) {
        const MemoryRequest *memory = &request->memory;
        bytes = arena_printf(
            arena, "%.0f,",
            memory_op_bytes(memory_op_find(memory->op), memory->rows, memory->columns));
    }
    const char *timer = measured->timer == GPU_TIMER_CUPTI ? "cupti" : "events";
    if (kind == SWEEP_LAUNCH) {
        LaunchOp op = request->launch.op;
        bool gpu = op == LAUNCH_GPU_INTERVAL || op == LAUNCH_GRAPH_INTERVAL;
        timer = gpu ? "events" : "host";
    }
    return arena_printf(
        arena, "%s%.6g,%.6g,%.4g,%d,%s,%s,%s,%s,%s", bytes, 1e3 * measured->latency_s,
        1e3 * measured->batch_latency_s, measured->spread_frac, measured->num_samples, timer,
        profile_cell(measured->kernel, arena), number(window->sm_clock_hz, 5, arena),
        number(window->temperature_c, 3, arena), reasons(window, arena));
}

const char *profile_sustained_cells(const Sustained *sustained, Arena *arena) {
    const DeviceWindow *steady = &sustained->steady;
    return arena_printf(arena, "%.4g,%s,%s,%s,%s,%.6g,%.6g", sustained->span_s,
                        number(steady->sm_clock_hz, 6, arena),
                        number(steady->power_watts, 5, arena),
                        number(steady->temperature_c, 3, arena), reasons(steady, arena),
                        1e3 * sustained->first_s, 1e3 * sustained->steady_s);
}

const char *profile_contention_cells(const GpuRequest *request, const Contention *contention,
                                     const DeviceWindow *window, Arena *arena) {
    const Measured *both = &contention->both;
    return arena_printf(arena, "%.6g,%.4g,%.6g,%.6g,%s", 1e3 * contention->alone_s,
                        both->latency_s / contention->alone_s - 1,
                        contention->beside_alone_bytes_per_s, both->beside_bytes_per_s,
                        profile_cells(SWEEP_CONTENTION, request, both, window, arena));
}
