// profiler/gpu/work_beside.c - products while something else runs on the same GPU, from before the
// first of them until after the last: a kernel that copies on some SMs, or the calls of a team.
#include "backend/cuda_backend.h"
#include "profiler/gpu/gpu_kernels.h"
#include "profiler/gpu/gpu_team.h"

#include <stdlib.h>

#define MOST_NS ((uint64_t)2 * 1000 * 1000 * 1000)
#define PAUSE_NS ((uint64_t)200 * 1000) // of a call, where the neighbour is alone
#define LEAD_NS ((uint64_t)50 * 1000)   // of a team's first call before the product

enum { MOST_MARKS = 16 };

typedef struct {
    GpuWork *product; // NULL: the neighbour alone
    cudaStream_t side;
    cudaEvent_t ready, begin, end; // where side may begin, and its own work
    // A kernel that copies.
    void *from, *to; // [num_blocks] parts
    BesideState *state;
    // A team's calls.
    TeamRank *rank; // NULL: a kernel
    BackendStream *team_side;
    TeamArrays arrays;
    int num_calls;
    bool ended;                    // before the products
    cudaEvent_t marks[MOST_MARKS]; // behind each call or, of more, each part of them
} BesideWork;

static Status call(GpuWork *work) {
    BesideWork *own = work->own;
    if (own->product) return own->product->call(own->product);
    CUDA_TRY(kernel_pause(PAUSE_NS, work->session->stream));
    return status_ok();
}

// What side does comes after all that was queued for the products.
static Status side_follow(GpuWork *work) {
    BesideWork *own = work->own;
    CUDA_TRY(cudaEventRecord(own->ready, work->session->stream));
    CUDA_TRY(cudaStreamWaitEvent(own->side, own->ready, 0));
    return status_ok();
}

static Status side_interval(const BesideWork *own, double *out_s) {
    float interval_ms = 0;
    CUDA_TRY(cudaStreamSynchronize(own->side));
    CUDA_TRY(cudaEventElapsedTime(&interval_ms, own->begin, own->end));
    *out_s = 1e-3 * (double)interval_ms;
    return status_ok();
}

// --- A kernel that copies

static Status copy_begin(GpuWork *work) {
    BesideWork *own = work->own;
    int num_blocks = work->request.beside.num_blocks;
    cudaStream_t stream = work->session->stream;
    CUDA_TRY(cudaMemsetAsync(own->state, 0, sizeof *own->state, stream));
    TRY(side_follow(work));
    CUDA_TRY(cudaEventRecord(own->begin, own->side));
    CUDA_TRY(kernel_beside(own->from, own->to, num_blocks, own->state, MOST_NS, own->side));
    CUDA_TRY(cudaEventRecord(own->end, own->side));
    CUDA_TRY(kernel_await(own->state, num_blocks, MOST_NS, stream));
    return status_ok();
}

static Status copy_stop(GpuWork *work) {
    BesideWork *own = work->own;
    CUDA_TRY(cudaMemsetAsync(&own->state->stop, 1, sizeof own->state->stop, work->session->stream));
    return status_ok();
}

static Status copy_finish(GpuWork *work, GpuBatch *out) {
    const BesideWork *own = work->own;
    double interval_s;
    BesideState state;
    TRY(side_interval(own, &interval_s));
    CUDA_TRY(cudaMemcpy(&state, own->state, sizeof state, cudaMemcpyDeviceToHost));
    if (state.late || state.started != (unsigned)work->request.beside.num_blocks)
        return status_error(STATUS_MACHINE,
                            "meshwright: the copy beside products was not under way all the time: "
                            "%u of %d blocks began%s",
                            state.started, work->request.beside.num_blocks,
                            state.late ? " and ended before them" : "");
    out->beside_bytes_per_s = 2.0 * BESIDE_PIECE_BYTES * (double)state.num_pieces / interval_s;
    return status_ok();
}

static Status copy_prepare(GpuWork *work) {
    BesideWork *own = work->own;
    int num_blocks = work->request.beside.num_blocks;
    if (num_blocks > work->session->num_sms)
        return status_error(STATUS_NO, "meshwright: a copy on %d SMs; this GPU has %d", num_blocks,
                            work->session->num_sms);
    size_t bytes = (size_t)num_blocks * BESIDE_PART_BYTES;
    CUDA_TRY(cudaStreamCreateWithFlags(&own->side, cudaStreamNonBlocking));
    CUDA_TRY(cudaMalloc(&own->from, bytes));
    CUDA_TRY(cudaMalloc(&own->to, bytes));
    void *state;
    CUDA_TRY(cudaMalloc(&state, sizeof *own->state));
    own->state = state;
    CUDA_TRY(kernel_fill(own->from, NUMBER_BFLOAT16, bytes / 2, FILL_NORMAL, 1, 1,
                         work->session->stream));
    // Kernels that are launched while the copy spins are loaded by then: loading may wait for it
    // (CUDA C++ Programming Guide, "Lazy Loading", on kernels that run concurrently).
    CUDA_TRY(cudaMemsetAsync(own->state, 0, sizeof *own->state, work->session->stream));
    CUDA_TRY(kernel_await(own->state, 0, MOST_NS, work->session->stream));
    CUDA_TRY(kernel_pause(0, work->session->stream));
    CUDA_TRY(cudaStreamSynchronize(work->session->stream));
    work->before = copy_begin;
    work->behind = copy_stop;
    work->finish = copy_finish;
    return status_ok();
}

// --- A team's calls

// Calls before mark i.
static int calls_at(const BesideWork *own, int i) {
    return own->num_calls <= MOST_MARKS ? i + 1
                                        : (int)((int64_t)own->num_calls * (i + 1) / MOST_MARKS);
}

static int num_marks(const BesideWork *own) {
    return own->num_calls <= MOST_MARKS ? own->num_calls : MOST_MARKS;
}

// NCCL's kernels need whole SMs, which a product may leave to nobody: the first call has a lead.
static Status team_begin(GpuWork *work) {
    BesideWork *own = work->own;
    TRY(side_follow(work));
    TRY(gpu_team_align(own->rank, &own->arrays, own->team_side));
    CUDA_TRY(cudaEventRecord(own->begin, own->side));
    CUDA_TRY(cudaStreamWaitEvent(work->session->stream, own->begin, 0));
    CUDA_TRY(kernel_pause(LEAD_NS, work->session->stream));
    for (int i = 0, at = 0; i < own->num_calls; i++) {
        team_call(own->rank->comm, &work->request.team, own->arrays.out, own->arrays.in,
                  own->team_side);
        if (i + 1 == calls_at(own, at)) CUDA_TRY(cudaEventRecord(own->marks[at++], own->side));
    }
    CUDA_TRY(cudaEventRecord(own->end, own->side));
    return work->session->backend->failure;
}

// Over the calls that ended beside the products, or the first where that outlasts them all.
static Status team_rate(const GpuWork *work, float products_ms, double *bytes_per_s) {
    const BesideWork *own = work->own;
    int num_calls = 0;
    float calls_ms = 0, at_ms;
    for (int i = 0; i < num_marks(own); i++) {
        CUDA_TRY(cudaEventElapsedTime(&at_ms, own->begin, own->marks[i]));
        if (i > 0 && at_ms > products_ms) break;
        num_calls = calls_at(own, i);
        calls_ms = at_ms;
    }
    *bytes_per_s =
        2.0 * (double)work->request.team.num_elements * num_calls / (1e-3 * (double)calls_ms);
    return status_ok();
}

static Status team_finish(GpuWork *work, GpuBatch *out) {
    BesideWork *own = work->own;
    double interval_s;
    float products_ms = 0; // from where the first call may begin to where the last product ends
    TRY(side_interval(own, &interval_s));
    if (own->num_calls == 0) return status_ok();
    CUDA_TRY(cudaEventElapsedTime(&products_ms, own->begin, work->session->end));
    own->ended = interval_s < 1e-3 * (double)products_ms;
    return team_rate(work, products_ms, &out->beside_bytes_per_s);
}

void gpu_beside_rank_calls(GpuWork *work, int num_calls) {
    ((BesideWork *)work->own)->num_calls = work->request.beside.product_alone ? 0 : num_calls;
}

bool gpu_beside_rank_ended(const GpuWork *work) {
    return ((const BesideWork *)work->own)->ended;
}

static Status team_side_prepare(GpuWork *work) {
    BesideWork *own = work->own;
    Backend *backend = work->session->backend;
    own->team_side = backend->table->stream_create(backend);
    if (!own->team_side) return backend->failure;
    own->side = cuda_stream_handle(backend, own->team_side);
    for (int i = 0; i < MOST_MARKS; i++) CUDA_TRY(cudaEventCreate(&own->marks[i]));
    work->before = team_begin;
    work->finish = team_finish;
    return gpu_team_arrays(own->rank, &work->request.team, &own->arrays);
}

// --- Both

static void free_own(GpuWork *work) {
    BesideWork *own = work->own;
    if (own->side) cudaStreamSynchronize(own->side);
    gpu_work_release(own->product);
    if (own->begin) cudaEventDestroy(own->begin);
    if (own->end) cudaEventDestroy(own->end);
    if (own->ready) cudaEventDestroy(own->ready);
    for (int i = 0; i < MOST_MARKS; i++)
        if (own->marks[i]) cudaEventDestroy(own->marks[i]);
    gpu_team_arrays_free(&own->arrays);
    cudaFree(own->from);
    cudaFree(own->to);
    cudaFree(own->state);
    if (own->team_side)
        work->session->backend->table->stream_free(work->session->backend, own->team_side);
    else if (own->side)
        cudaStreamDestroy(own->side);
    free(own);
}

static Status prepare(GpuWork *work, TeamRank *rank) {
    BesideWork *own = calloc(1, sizeof *own);
    if (!own) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    own->rank = rank;
    work->own = own;
    work->free_own = free_own;
    work->call = call;
    CUDA_TRY(cudaEventCreate(&own->begin));
    CUDA_TRY(cudaEventCreate(&own->end));
    CUDA_TRY(cudaEventCreateWithFlags(&own->ready, cudaEventDisableTiming));
    TRY(rank ? team_side_prepare(work) : copy_prepare(work));
    if (work->request.beside.alone) return status_ok();
    GpuRequest product = {.kind = GPU_WORK_GEMM, .gemm = work->request.gemm};
    TRY(gpu_work_prepare(work->session, &product, 0, &own->product));
    TRY(own->product->call(own->product)); // loads its kernels, while nothing waits beside it
    CUDA_TRY(cudaStreamSynchronize(work->session->stream));
    return status_ok();
}

Status gpu_beside_rank_prepare(TeamRank *rank, const GpuRequest *request) {
    GpuWork *work = calloc(1, sizeof *work);
    if (!work) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    *work = (GpuWork){.session = rank->session, .request = *request};
    rank->work = work;
    return prepare(work, rank);
}

Status gpu_beside_prepare(GpuWork *work) {
    return work->request.beside.num_blocks > 0 ? prepare(work, NULL) : gpu_team_prepare(work);
}
