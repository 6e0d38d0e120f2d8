// The backend and the groups of the fake CUDA runtime: attention at one rate, and ranks that wait
// for each other in every call, which fails where they do not ask for the same.
#include "tests/profiler/fake_cuda.h"

#include "backend/cuda_backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct BackendStream {
    cudaStream_t handle;
};

typedef struct {
    Backend base;
    int device;
} FakeBackend;

// --- The backend

static BackendStream *stream_create(Backend *backend) {
    BackendStream *stream = calloc(1, sizeof *stream);
    cudaSetDevice(((FakeBackend *)backend)->device);
    cudaStreamCreateWithFlags(&stream->handle, 0);
    return stream;
}

static void stream_free(Backend *backend, BackendStream *stream) {
    (void)backend;
    cudaStreamDestroy(stream->handle);
    free(stream);
}

static void backend_close(Backend *backend) {
    stream_free(backend, backend->stream);
    free(backend);
}

static void attention(Backend *backend, const Attention *call, int flops_a_pair,
                      BackendStream *stream) {
    double tokens = (double)call->num_queries;
    double pairs = call->batch * call->heads * tokens * (tokens + 1) / 2;
    bool whole = call->q && call->k && call->v && call->o && call->lse && call->causal;
    if (flops_a_pair == 10) whole &= call->dout && call->dq && call->dk && call->dv;
    if (!whole)
        backend->failure = status_error(STATUS_MACHINE, "attention without one of its arrays");
    fake_work(stream->handle,
              FAKE_CALL_S + pairs * call->head_dim * flops_a_pair / FAKE_FLOPS_PER_S, false);
}

static void attention_forward(Backend *backend, const Attention *call, BackendStream *stream) {
    attention(backend, call, 4, stream);
}

static void attention_backward(Backend *backend, const Attention *call, BackendStream *stream) {
    attention(backend, call, 10, stream);
}

static const BackendTable TABLE = {.abi = BACKEND_ABI,
                                   .close = backend_close,
                                   .stream_create = stream_create,
                                   .stream_free = stream_free,
                                   .attention_forward = attention_forward,
                                   .attention_backward = attention_backward};

Status cuda_backend_open(int device, Dtype act, Backend **out) {
    if (fake_value("backend") >= 0)
        return status_error(STATUS_MACHINE, "meshwright: there is no libmeshwright-cuda.so");
    FakeBackend *backend = calloc(1, sizeof *backend);
    backend->base = (Backend){.table = &TABLE, .act = act, .wide = DTYPE_FP32};
    backend->device = device;
    backend->base.stream = stream_create(&backend->base);
    *out = &backend->base;
    return status_ok();
}

Status cuda_versions(CudaVersions *out) {
    if (fake_value("backend") >= 0)
        return status_error(STATUS_MACHINE, "meshwright: there is no libmeshwright-cuda.so");
    *out = (CudaVersions){.cudnn = 91900, .nccl = fake_value("group") >= 0 ? 0 : 22703};
    return status_ok();
}

void *cuda_stream_handle(const Backend *backend, const BackendStream *stream) {
    (void)backend;
    return stream->handle;
}

// --- Groups

enum { MOST_RANKS = 8 };

typedef struct {
    pthread_barrier_t barrier;
    int size, num_left;
    const char *call[MOST_RANKS];
    int64_t count[MOST_RANKS];
    double ready_s[MOST_RANKS];
} Group;

typedef struct {
    Comm base;
    Group *group;
} FakeComm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Group *newest; // of the ranks that are just meeting

// All ranks, and what they bring; the last to come decides when the call begins.
static void meet(Comm *comm, const char *call, int64_t count, double bytes, BackendStream *stream) {
    Group *group = ((FakeComm *)comm)->group;
    group->call[comm->rank] = call;
    group->count[comm->rank] = count;
    group->ready_s[comm->rank] = fake_now_s(stream->handle);
    pthread_barrier_wait(&group->barrier);
    double begin_s = 0;
    for (int i = 0; i < group->size; i++) {
        if (strcmp(group->call[i], call) != 0 || group->count[i] != count)
            comm->backend->failure =
                status_error(STATUS_MACHINE, "rank %d: %s of %lld, rank %d: %s of %lld", comm->rank,
                             call, (long long)count, i, group->call[i], (long long)group->count[i]);
        if (begin_s < group->ready_s[i]) begin_s = group->ready_s[i];
    }
    pthread_barrier_wait(&group->barrier);
    stream->handle->end_s = begin_s;
    double staggered_s = count > 1 ? comm->rank * FAKE_RANK_S : 0;
    fake_work(stream->handle, FAKE_GROUP_S + bytes / FAKE_GROUP_BYTES_PER_S + staggered_s, false);
    if (stream != comm->backend->stream)
        fake_group_until(stream->handle->device, stream->handle->end_s);
}

static double bytes_of(int64_t count, Dtype dtype) {
    return (double)count * (dtype == DTYPE_BF16 ? 2 : 4);
}

static void all_reduce(Comm *comm, void *array, int64_t count, Dtype dtype, ReduceOp op,
                       BackendStream *stream) {
    (void)array, (void)op;
    meet(comm, "all_reduce", count, bytes_of(count, dtype), stream);
}

static void all_gather(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                       BackendStream *stream) {
    (void)out, (void)in;
    meet(comm, "all_gather", count, comm->size * bytes_of(count, dtype), stream);
}

static void reduce_scatter(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                           BackendStream *stream) {
    (void)out, (void)in;
    meet(comm, "reduce_scatter", count, comm->size * bytes_of(count, dtype), stream);
}

static void all_to_all(Comm *comm, void *out, const int64_t *out_counts, const int64_t *out_offsets,
                       const void *in, const int64_t *in_counts, const int64_t *in_offsets,
                       Dtype dtype, BackendStream *stream) {
    (void)out, (void)out_counts, (void)out_offsets, (void)in, (void)in_offsets;
    meet(comm, "all_to_all", in_counts[0], comm->size * bytes_of(in_counts[0], dtype), stream);
}

static void exchange(Comm *comm, const Message *messages, int num_messages, BackendStream *stream) {
    double bytes = num_messages > 0 ? bytes_of(messages[0].count, messages[0].dtype) : 0;
    meet(comm, "exchange", 1 + num_messages, bytes, stream);
}

static void comm_free(Comm *comm) {
    Group *group = ((FakeComm *)comm)->group;
    pthread_mutex_lock(&lock);
    bool last = --group->num_left == 0;
    pthread_mutex_unlock(&lock);
    if (last) {
        pthread_barrier_destroy(&group->barrier);
        free(group);
    }
    free(comm);
}

static const CommTable COMM = {.free = comm_free,
                               .all_reduce = all_reduce,
                               .all_gather = all_gather,
                               .reduce_scatter = reduce_scatter,
                               .all_to_all = all_to_all,
                               .exchange = exchange};

Status cuda_comm_id(Backend *backend, unsigned char id[CUDA_COMM_ID_BYTES]) {
    (void)backend;
    if (fake_value("group") >= 0)
        return status_error(STATUS_MACHINE, "meshwright: several GPUs need NCCL, which cannot be "
                                            "loaded: libnccl.so.2");
    memset(id, 0, CUDA_COMM_ID_BYTES);
    newest = NULL;
    return status_ok();
}

Status cuda_comm_create(Backend *backend, const unsigned char id[CUDA_COMM_ID_BYTES], int rank,
                        int size, Comm **out) {
    (void)id;
    FakeComm *comm = calloc(1, sizeof *comm);
    pthread_mutex_lock(&lock);
    if (!newest) {
        newest = calloc(1, sizeof *newest);
        newest->size = newest->num_left = size;
        pthread_barrier_init(&newest->barrier, NULL, (unsigned)size);
    }
    comm->group = newest;
    pthread_mutex_unlock(&lock);
    comm->base = (Comm){.table = &COMM, .backend = backend, .rank = rank, .size = size};
    *out = &comm->base;
    pthread_barrier_wait(&comm->group->barrier);
    return status_ok();
}
