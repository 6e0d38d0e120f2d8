// backend/cuda/comm_nccl.c - groups of GPUs by NCCL, which is opened at run time: the plugin runs
// one GPU alone where it is not installed.
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/cuda_plugin.h"

#include <stdlib.h>
#include <string.h>

#ifndef MESHWRIGHT_WITH_NCCL

static Status nccl_missing(void) {
    return status_error(STATUS_MACHINE, "meshwright: libmeshwright-cuda.so was built without NCCL "
                                        "(nccl.h), which several GPUs need");
}

int64_t cuda_nccl_version(void) {
    return 0;
}

Status cuda_nccl_id(unsigned char *id) {
    (void)id;
    return nccl_missing();
}

Status cuda_nccl_create(Backend *backend, const unsigned char *id, int rank, int size, Comm **out) {
    (void)backend, (void)id, (void)rank, (void)size, (void)out;
    return nccl_missing();
}

#else

#include "backend/cuda/nccl_comm.h"

_Static_assert(CUDA_COMM_ID_BYTES == NCCL_UNIQUE_ID_BYTES, "the id is NCCL's");

static const Nccl *nccl; // once cuda_nccl_create has found it

// --- Calls

static ncclComm_t handle_of(const Comm *comm) {
    return ((const NcclComm *)comm)->handle;
}

static bool begin(Comm *comm, const void *in, const void *out, BackendStream *stream, CommKind kind,
                  double sent_bytes) {
    const void *arrays[] = {in, out};
    if (!cuda_begin(comm->backend, stream, arrays, 2)) return false;
    comm->num_calls++;
    comm->sent_bytes[kind] += sent_bytes;
    return true;
}

static void end(Comm *comm, BackendStream *stream, ncclResult_t result, const char *what) {
    if (result != ncclSuccess) cuda_fail(comm->backend, nccl_error(nccl, result, what));
    cuda_end(comm->backend, stream, cudaSuccess, what);
}

static double bytes_of(int64_t count, Dtype dtype) {
    return (double)count * (double)dtype_bytes(dtype);
}

static void all_reduce(Comm *comm, void *array, int64_t count, Dtype dtype, ReduceOp op,
                       BackendStream *stream) {
    if (!begin(comm, array, array, stream, COMM_ALL_REDUCE, bytes_of(count, dtype))) return;
    end(comm, stream,
        nccl->ncclAllReduce(array, array, (size_t)count, nccl_type(dtype),
                            op == REDUCE_MAX ? ncclMax : ncclSum, handle_of(comm), stream->handle),
        "ncclAllReduce");
}

static void all_gather(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                       BackendStream *stream) {
    if (!begin(comm, in, out, stream, COMM_ALL_GATHER, comm->size * bytes_of(count, dtype))) return;
    end(comm, stream,
        nccl->ncclAllGather(in, out, (size_t)count, nccl_type(dtype), handle_of(comm),
                            stream->handle),
        "ncclAllGather");
}

static void reduce_scatter(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                           BackendStream *stream) {
    if (!begin(comm, in, out, stream, COMM_REDUCE_SCATTER, comm->size * bytes_of(count, dtype)))
        return;
    end(comm, stream,
        nccl->ncclReduceScatter(in, out, (size_t)count, nccl_type(dtype), ncclSum, handle_of(comm),
                                stream->handle),
        "ncclReduceScatter");
}

static void broadcast(Comm *comm, void *array, int64_t count, Dtype dtype, int root,
                      BackendStream *stream) {
    if (!begin(comm, array, array, stream, COMM_BROADCAST, bytes_of(count, dtype))) return;
    end(comm, stream,
        nccl->ncclBroadcast(array, array, (size_t)count, nccl_type(dtype), root, handle_of(comm),
                            stream->handle),
        "ncclBroadcast");
}

// The messages of a group, whose first failure is kept; the group is closed in any case.
static void group_end(Comm *comm, BackendStream *stream, ncclResult_t result, const char *what) {
    ncclResult_t closed = nccl->ncclGroupEnd();
    end(comm, stream, result != ncclSuccess ? result : closed, what);
}

static double parts_bytes(const Comm *comm, const int64_t *counts, Dtype dtype) {
    double sum = 0;
    for (int i = 0; i < comm->size; i++) sum += bytes_of(counts[i], dtype);
    return sum;
}

// NCCL has no gathers and scatters of unequal parts: each rank's part is a call of a group.
static void all_gather_parts(Comm *comm, void *out, const void *in, const int64_t *counts,
                             Dtype dtype, BackendStream *stream) {
    if (!begin(comm, in, out, stream, COMM_ALL_GATHER, parts_bytes(comm, counts, dtype))) return;
    char *part = out;
    ncclResult_t result = nccl->ncclGroupStart();
    for (int i = 0; i < comm->size && result == ncclSuccess; i++) {
        if (counts[i] > 0)
            result = nccl->ncclBroadcast(i == comm->rank ? in : part, part, (size_t)counts[i],
                                         nccl_type(dtype), i, handle_of(comm), stream->handle);
        part += counts[i] * (int64_t)dtype_bytes(dtype);
    }
    group_end(comm, stream, result, "all_gather_parts");
}

static void reduce_scatter_parts(Comm *comm, void *out, const void *in, const int64_t *counts,
                                 Dtype dtype, BackendStream *stream) {
    if (!begin(comm, in, out, stream, COMM_REDUCE_SCATTER, parts_bytes(comm, counts, dtype)))
        return;
    const char *part = in;
    ncclResult_t result = nccl->ncclGroupStart();
    for (int i = 0; i < comm->size && result == ncclSuccess; i++) {
        if (counts[i] > 0)
            result = nccl->ncclReduce(part, out, (size_t)counts[i], nccl_type(dtype), ncclSum, i,
                                      handle_of(comm), stream->handle);
        part += counts[i] * (int64_t)dtype_bytes(dtype);
    }
    group_end(comm, stream, result, "reduce_scatter_parts");
}

static void all_to_all(Comm *comm, void *out, const int64_t *out_counts, const int64_t *out_offsets,
                       const void *in, const int64_t *in_counts, const int64_t *in_offsets,
                       Dtype dtype, BackendStream *stream) {
    double sent_bytes = 0;
    for (int i = 0; i < comm->size; i++) sent_bytes += bytes_of(in_counts[i], dtype);
    if (!begin(comm, in, out, stream, COMM_ALL_TO_ALL, sent_bytes)) return;
    int64_t bytes = (int64_t)dtype_bytes(dtype);
    ncclResult_t result = nccl->ncclGroupStart();
    for (int i = 0; i < comm->size && result == ncclSuccess; i++) {
        if (in_counts[i] > 0)
            result = nccl->ncclSend((const char *)in + in_offsets[i] * bytes, (size_t)in_counts[i],
                                    nccl_type(dtype), i, handle_of(comm), stream->handle);
        if (out_counts[i] > 0 && result == ncclSuccess)
            result = nccl->ncclRecv((char *)out + out_offsets[i] * bytes, (size_t)out_counts[i],
                                    nccl_type(dtype), i, handle_of(comm), stream->handle);
    }
    group_end(comm, stream, result, "all_to_all");
}

static ncclResult_t message(const Comm *comm, const Message *m, cudaStream_t stream) {
    return m->receive ? nccl->ncclRecv(m->array, (size_t)m->count, nccl_type(m->dtype), m->peer,
                                       handle_of(comm), stream)
                      : nccl->ncclSend(m->array, (size_t)m->count, nccl_type(m->dtype), m->peer,
                                       handle_of(comm), stream);
}

static void exchange(Comm *comm, const Message *messages, int num_messages, BackendStream *stream) {
    if (num_messages == 0 || !begin(comm, NULL, NULL, stream, COMM_MESSAGES, 0)) return;
    ncclResult_t result = nccl->ncclGroupStart();
    for (int i = 0; i < num_messages && result == ncclSuccess; i++) {
        const Message *m = &messages[i];
        if (stream->index != 0) cuda_memory_used((CudaBackend *)comm->backend, stream, m->array);
        if (!m->receive) comm->sent_bytes[COMM_MESSAGES] += bytes_of(m->count, m->dtype);
        result = message(comm, m, stream->handle);
    }
    group_end(comm, stream, result, "exchange");
}

static void comm_free(Comm *comm) {
    if (!comm) return;
    // After a failure the peers may never come to their part of what is queued.
    nccl_ways_close((NcclComm *)comm);
    if (cuda_well(comm->backend)) nccl->ncclCommDestroy(handle_of(comm));
    free(comm);
}

static const CommTable TABLE = {
    .free = comm_free,
    .all_reduce = all_reduce,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_gather_parts = all_gather_parts,
    .reduce_scatter_parts = reduce_scatter_parts,
    .all_to_all = all_to_all,
    .broadcast = broadcast,
    .exchange = exchange,
    .open_ways = nccl_open_ways,
    .start = nccl_start,
    .finish = nccl_finish,
};

Status cuda_nccl_id(unsigned char *id) {
    TRY(nccl_find(&nccl));
    ncclUniqueId unique;
    NCCL_TRY(nccl, nccl->ncclGetUniqueId(&unique));
    memcpy(id, &unique, sizeof unique);
    return status_ok();
}

Status cuda_nccl_create(Backend *backend, const unsigned char *id, int rank, int size, Comm **out) {
    TRY(nccl_find(&nccl));
    if (!cuda_well(backend)) return backend->failure;
    NcclComm *comm = calloc(1, sizeof *comm);
    if (!comm) return status_error(STATUS_MACHINE, "meshwright: out of memory");
    comm->base = (Comm){.table = &TABLE, .backend = backend, .rank = rank, .size = size};
    ncclUniqueId unique;
    memcpy(&unique, id, sizeof unique);
    ncclResult_t result = nccl->ncclCommInitRank(&comm->handle, size, unique, rank);
    if (result != ncclSuccess) {
        free(comm);
        return nccl_error(nccl, result, "ncclCommInitRank");
    }
    *out = &comm->base;
    return status_ok();
}

#endif
