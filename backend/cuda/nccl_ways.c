// backend/cuda/nccl_ways.c - messages by NCCL that are under way while other work goes on: each way
// from one GPU to another has a group and a stream of its own.
//
// What NCCL does in one group it does one after the other, and a message is not over before its
// other end has begun. So messages that may wait for each other in a circle need groups apart.
// They are told apart by nothing but their order (comm.h).
#include "backend/cuda/nccl_comm.h"

#include <stdlib.h>
#include <string.h>

struct CommRequest {
    BackendEvent *done;
};

static const Nccl *nccl; // once there are ways

// --- Opening

// What run_setup.c sets where nobody did (messages_apart) must not be set otherwise.
static Status setting_check(const char *name, const char *bad) {
    const char *set = getenv(name);
    if (!set || strcmp(set, bad) != 0) return status_ok();
    return status_error(
        STATUS_INVALID,
        "%s is %s: this schedule's messages are under way beside computation, which "
        "might then wait for them; leave it unset",
        name, bad);
}

enum { MOST_QUEUES = 32, NCCL_STREAMS = 2 }; // CUDA's limit; of each of NCCL's groups

// Work of streams that share one of the device's queues waits for each other. NCCL's groups have
// streams of their own beside the one that they are called on (init.cc: deviceStream, hostStream).
static int queues_needed(int num_ways) {
    const int num = 1 + num_ways * (1 + NCCL_STREAMS) + NCCL_STREAMS; // also of the group itself
    return num < MOST_QUEUES ? num : MOST_QUEUES;
}

static Status queues_check(int num_streams) {
    const char *set = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const int num_queues = set ? atoi(set) : 8; // CUDA's default
    TRY(setting_check("CUDA_MODULE_LOADING", "LAZY"));
    TRY(setting_check("NCCL_RUNTIME_CONNECT", "1"));
    if (num_queues >= num_streams) return status_ok();
    return status_error(STATUS_INVALID,
                        "CUDA_DEVICE_MAX_CONNECTIONS is %d: this schedule's messages need %d "
                        "queues, to be under way beside computation; leave it unset",
                        num_queues, num_streams);
}

// NCCL connects two GPUs at their first message, for which the processes wait for each other: now,
// while there is no other work to wait for.
static Status way_connect(Backend *backend, const NcclWay *way) {
    const size_t bytes = sizeof(float);
    void *array = backend->table->alloc(backend, bytes);
    backend->table->zero(backend, array, bytes, way->stream);
    if (!cuda_well(backend)) return backend->failure;
    const ncclResult_t result =
        way->receives ? nccl->ncclRecv(array, 1, ncclFloat32, 0, way->handle, way->stream->handle)
                      : nccl->ncclSend(array, 1, ncclFloat32, 1, way->handle, way->stream->handle);
    const Status status = result == ncclSuccess
                              ? backend_sync(backend)
                              : nccl_error(nccl, result, way->receives ? "ncclRecv" : "ncclSend");
    backend->table->release(backend, array, bytes);
    return status;
}

// Ways of one round have no rank in common, so that one call splits a group for each.
static Status round_open(NcclComm *comm, const Way *ways, const bool *in_round, int num_ways) {
    const int rank = comm->base.rank;
    int own = -1;
    for (int i = 0; i < num_ways; i++)
        if (in_round[i] && (ways[i].from == rank || ways[i].to == rank)) own = i;
    const int color = own < 0 ? NCCL_SPLIT_NOCOLOR : own;
    const bool receives = own >= 0 && ways[own].to == rank;
    ncclComm_t handle = NULL;
    NCCL_TRY(nccl, nccl->ncclCommSplit(comm->handle, color, receives, &handle, NULL));
    if (own < 0) return status_ok();
    NcclWay *way = &comm->ways[own];
    way->handle = handle;
    way->receives = receives;
    way->stream = cuda_stream_create(comm->base.backend);
    TRY(comm->base.backend->failure);
    return way_connect(comm->base.backend, way);
}

// Takes into a round what is left and shares no rank with it; false: nothing is left.
static bool round_choose(const Way *ways, int num_ways, bool *opened, bool *in_round) {
    bool any = false;
    for (int i = 0; i < num_ways; i++) {
        in_round[i] = !opened[i];
        for (int k = 0; k < i && in_round[i]; k++)
            in_round[i] =
                !in_round[k] || (ways[k].from != ways[i].from && ways[k].to != ways[i].to &&
                                 ways[k].from != ways[i].to && ways[k].to != ways[i].from);
        any |= in_round[i];
    }
    for (int i = 0; i < num_ways; i++) opened[i] |= in_round[i];
    return any;
}

// The most ways of any rank: what is refused all refuse, before they wait for each other.
static int most_ways(const Way *ways, int num_ways, int num_ranks) {
    int most = 0;
    for (int rank = 0; rank < num_ranks; rank++) {
        int num = 0;
        for (int i = 0; i < num_ways; i++) num += ways[i].from == rank || ways[i].to == rank;
        most = num > most ? num : most;
    }
    return most;
}

static Status ways_open(NcclComm *comm, const Way *ways, int num_ways) {
    TRY(nccl_find(&nccl));
    if (!nccl->ncclCommSplit)
        return status_error(STATUS_MACHINE, "meshwright: this schedule's messages need NCCL 2.18 "
                                            "(ncclCommSplit) or later");
    TRY(queues_check(queues_needed(most_ways(ways, num_ways, comm->base.size))));
    comm->ways = calloc((size_t)num_ways, sizeof *comm->ways);
    bool *marks = calloc(2 * (size_t)num_ways, sizeof *marks); // opened, and in this round
    if (!comm->ways || !marks) {
        free(marks);
        return status_error(STATUS_MACHINE, "meshwright: out of memory");
    }
    comm->num_ways = num_ways;
    ((CudaBackend *)comm->base.backend)->has_ways = true;
    Status status = status_ok();
    while (status.code == STATUS_OK && round_choose(ways, num_ways, marks, marks + num_ways))
        status = round_open(comm, ways, marks + num_ways, num_ways);
    free(marks);
    return status;
}

// What fails on one rank only, others wait for: nothing is waited for any more.
Status nccl_open_ways(Comm *comm, const Way *ways, int num_ways) {
    const Status status = ways_open((NcclComm *)comm, ways, num_ways);
    if (status.code != STATUS_OK) cuda_fail(comm->backend, status);
    return status;
}

void nccl_ways_close(NcclComm *comm) {
    Backend *backend = comm->base.backend;
    for (int i = 0; i < comm->num_ways; i++) {
        NcclWay *way = &comm->ways[i];
        // After a failure the peers may never come to their part of what is queued.
        if (!way->handle || !cuda_well(backend)) continue;
        nccl->ncclCommDestroy(way->handle);
        cuda_stream_free(backend, way->stream);
    }
    free(comm->ways);
    comm->ways = NULL;
    comm->num_ways = 0;
}

// --- Messages

static void message_queue(Comm *comm, const Message *m, const NcclWay *way) {
    const void *arrays[] = {m->array};
    Backend *backend = comm->backend;
    if (!cuda_begin(backend, way->stream, arrays, 1)) return;
    comm->num_calls++;
    if (!m->receive)
        comm->sent_bytes[COMM_MESSAGES] += (double)m->count * (double)dtype_bytes(m->dtype);
    const ncclResult_t result =
        m->receive ? nccl->ncclRecv(m->array, (size_t)m->count, nccl_type(m->dtype), 0, way->handle,
                                    way->stream->handle)
                   : nccl->ncclSend(m->array, (size_t)m->count, nccl_type(m->dtype), 1, way->handle,
                                    way->stream->handle);
    if (result != ncclSuccess) cuda_fail(backend, nccl_error(nccl, result, "a message"));
    // Not waited for with MESHWRIGHT_CUDA_SYNC either: its other end may come later.
}

// The array is ready, or free to be written, once `stream` has come to here.
CommRequest *nccl_start(Comm *comm, const Message *message, BackendStream *stream) {
    Backend *backend = comm->backend;
    const NcclWay *way = &((NcclComm *)comm)->ways[message->way];
    CommRequest *request = calloc(1, sizeof *request);
    if (!request) cuda_fail(backend, status_error(STATUS_MACHINE, "meshwright: out of memory"));
    if (request) request->done = cuda_event_create(backend, false);
    if (!cuda_well(backend)) {
        free(request);
        return NULL;
    }
    cuda_stream_await((CudaBackend *)backend, way->stream, stream);
    message_queue(comm, message, way);
    cuda_event_record(backend, request->done, way->stream);
    return request;
}

bool nccl_finish(Comm *comm, CommRequest *request, bool wait) {
    if (!request) return true;
    Backend *backend = comm->backend;
    if (wait) {
        cuda_event_await(backend, request->done, backend->stream);
    } else if (cuda_well(backend)) {
        const cudaError_t error = cudaEventQuery(request->done->handle);
        if (error == cudaErrorNotReady) return false;
        cuda_check(backend, error, "cudaEventQuery");
        // What the host knows to be over, all that is queued from now on comes after.
        uint64_t *awaited = &backend->stream->awaited[request->done->stream];
        if (*awaited < request->done->num_queued) *awaited = request->done->num_queued;
    }
    cuda_event_free(backend, request->done);
    free(request);
    return true;
}
