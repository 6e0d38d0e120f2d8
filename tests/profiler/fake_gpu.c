// Stands in for libmeshwright-gpu.so where there is no GPU: products and operators take made-up
// times of an H100, and are computed by the host's reference. FAKE_GPU names what goes wrong:
//   wrong:NAME    the operator of that name gives a wrong result (gemm: every product)
//   fails:N       from the N-th piece of work on, nothing works
//   fp8           there are no such products
//   cupti         cannot record
//   gpus:N        there are so many of them; else one
//   backend       libmeshwright-cuda.so is missing
#include "profiler/gpu_check.h"
#include "profiler/memory_reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const GpuPlugin *meshwright_gpu_plugin(void);

struct GpuSession {
    GpuTimer timer;
};

struct GpuWork {
    GpuRequest request;
    GpuTimer timer;
    double call_s;
    int num_runs;
};

// "NAME:" of the environment's FAKE_GPU, else NULL.
static const char *fault(const char *name) {
    const char *chosen = getenv("FAKE_GPU");
    size_t length = strlen(name);
    return chosen && strncmp(chosen, name, length) == 0 ? chosen + length : NULL;
}

static Status probe(int device, GpuInfo *out) {
    (void)device;
    *out = (GpuInfo){.name = "Fake GPU",
                     .pci_bus_id = "0000:00:00.0",
                     .compute_major = 9,
                     .num_sms = 132,
                     .memory_bytes = 80e9,
                     .l2_bytes = 50e6,
                     .max_sm_clock_hz = 1.98e9,
                     .max_memory_clock_hz = 2.619e9,
                     .memory_bus_bits = 5120,
                     .driver_cuda_version = 13000,
                     .runtime_cuda_version = 13000,
                     .cublaslt_version = 130000,
                     .cudnn_version = fault("backend") ? 0 : 91900,
                     .nccl_version = fault("backend") ? 0 : 22703,
                     .has_cupti = true,
                     .num_devices = fault("gpus:") ? atoi(fault("gpus:")) : 1};
    const char *name = fault("name:");
    if (name) snprintf(out->name, sizeof out->name, "%s", name);
    return status_ok();
}

static Status session_open(int device, GpuTimer *timer, GpuSession **out, char *note,
                           size_t note_size) {
    (void)device;
    note[0] = '\0';
    if (*timer == GPU_TIMER_CUPTI && fault("cupti")) {
        snprintf(note, note_size, "it says so");
        *timer = GPU_TIMER_EVENTS;
    }
    *out = calloc(1, sizeof **out);
    (*out)->timer = *timer;
    return status_ok();
}

static void session_close(GpuSession *session) {
    free(session);
}

// 150 GB/s, and 2 us a rank.
static double team_s(const TeamRequest *team) {
    return 2e-6 * team->num_gpus + 2.0 * (double)team->num_elements / 150e9;
}

// At 600 TFLOP/s (fp8: twice) and 2.5 TB/s, from and to the host 50 GB/s. Beside a copy on b of 132
// SMs b parts are missing, beside a collective 16.
static double call_s(const GpuRequest *request) {
    const GemmRequest *gemm = &request->gemm;
    const MemoryRequest *memory = &request->memory;
    if (request->kind == GPU_WORK_LAUNCH) return 4e-6;
    if (request->kind == GPU_WORK_HOST_COPY)
        return 10e-6 + (double)request->host_copy.num_bytes / 50e9;
    if (request->kind == GPU_WORK_TEAM) return team_s(&request->team);
    if (request->kind == GPU_WORK_ATTENTION)
        return 5e-6 + attention_flops(&request->attention) / 400e12;
    if (request->kind == GPU_WORK_BESIDE) {
        GpuRequest product = {.kind = GPU_WORK_GEMM, .gemm = request->gemm};
        if (request->beside.product_alone) return call_s(&product);
        int num_blocks = request->beside.num_blocks > 0 ? request->beside.num_blocks : 16;
        return request->beside.alone ? 200e-6 : call_s(&product) * 132 / (132 - num_blocks);
    }
    if (request->kind == GPU_WORK_MEMORY)
        return 2e-6 +
               memory_op_bytes(memory_op_find(memory->op), memory->rows, memory->columns) / 2.5e12;
    double flops = 2.0 * gemm->m * gemm->n * gemm->k;
    double bytes = 2.0 * ((double)gemm->m * gemm->k + (double)gemm->n * gemm->k);
    return 3e-6 + flops / (gemm->dtype == NUMBER_FP8 ? 1.2e15 : 6e14) + bytes / 2.5e12;
}

static Status prepare(GpuSession *session, const GpuRequest *request, GpuWork **out) {
    static int num_prepared;
    const char *last = fault("fails:");
    if (last && ++num_prepared >= atoi(last))
        return status_error(STATUS_MACHINE, "meshwright: the GPU failed: it fell off the bus");
    if (fault("fp8") && request->kind == GPU_WORK_GEMM && request->gemm.dtype == NUMBER_FP8)
        return status_error(STATUS_NO, "meshwright: cuBLASLt has no fp8 product");
    if (fault("backend") && (request->kind == GPU_WORK_ATTENTION || request->team.num_gpus > 0))
        return status_error(STATUS_NO, "meshwright: there is no libmeshwright-cuda.so");
    *out = calloc(1, sizeof **out);
    **out = (GpuWork){.request = *request, .timer = session->timer, .call_s = call_s(request)};
    return status_ok();
}

// Calls differ by up to 2 in a thousand; a batch has a gap of 1 us behind each.
static Status run(GpuWork *work, int num_calls, bool queued, GpuBatch *out) {
    (void)queued;
    bool host = work->request.kind == GPU_WORK_LAUNCH;
    out->batch_s = 0;
    for (int i = 0; i < num_calls; i++) {
        double jitter = 1 + 1e-3 * (work->num_runs++ % 3);
        out->call_s[i] = work->call_s * jitter;
        out->batch_s += out->call_s[i] + (host ? 0 : 1e-6);
    }
    // A block copies 40 GB/s by itself, nine tenths of that beside products.
    const BesideRequest *beside = &work->request.beside;
    out->beside_bytes_per_s = 0;
    if (work->request.kind == GPU_WORK_BESIDE)
        out->beside_bytes_per_s =
            (beside->num_blocks > 0
                 ? 40e9 * beside->num_blocks
                 : 2.0 * (double)work->request.team.num_elements / team_s(&work->request.team)) *
            (beside->alone ? 1 : 0.9);
    bool told = host || work->timer == GPU_TIMER_CUPTI;
    out->num_call_s = told ? num_calls : 0;
    snprintf(out->kernel, sizeof out->kernel, "%s",
             work->timer == GPU_TIMER_CUPTI ? "fake<int, 2>" : "");
    return status_ok();
}

static void work_release(GpuWork *work) {
    free(work);
}

static Status apply_memory(GpuSession *session, const MemoryRequest *request,
                           void *const *buffers) {
    (void)session;
    const MemoryOp *op = memory_op_find(request->op);
    int64_t n = request->rows * request->columns;
    // Every tenth is dropped.
    if (strcmp(op->name, "dropout_add") == 0)
        for (int64_t i = 0; i < n; i++) ((uint8_t *)buffers[3])[i] = i % 10 != 0;
    memory_reference(op, request->rows, request->columns, buffers);
    const char *wrong = fault("wrong:");
    if (!wrong || strcmp(wrong, op->name) != 0) return status_ok();
    for (int i = op->num_buffers - 1; i >= 0; i--) {
        const MemoryBuffer *buffer = &op->buffers[i];
        if (buffer->use != BUFFER_WRITE && buffer->use != BUFFER_BOTH) continue;
        number_write(buffer->dtype, buffers[i], 0,
                     1 + 2 * number_read(buffer->dtype, buffers[i], 0));
        break;
    }
    return status_ok();
}

static Status apply_gemm(GpuSession *session, const GemmRequest *request, const void *left,
                         const void *right, void *output) {
    (void)session;
    GemmRequest taken = *request;
    const char *wrong = fault("wrong:");
    // A typical mistake: a square operand read the wrong way round is still a product.
    if (wrong && strcmp(wrong, "gemm") == 0) taken.accumulate = !taken.accumulate;
    gemm_reference(&taken, left, right, output);
    return status_ok();
}

const GpuPlugin *meshwright_gpu_plugin(void) {
    static const GpuPlugin PLUGIN = {
        .abi = GPU_PLUGIN_ABI,
        .probe = probe,
        .open = session_open,
        .close = session_close,
        .prepare = prepare,
        .run = run,
        .release = work_release,
        .apply_memory = apply_memory,
        .apply_gemm = apply_gemm,
    };
    return &PLUGIN;
}
