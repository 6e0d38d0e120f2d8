#include "backend/mpi_comm.h"

#include <assert.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Comm base; // first: a Comm * is cast to this
    MPI_Comm group;
    int *counts;   // [4][size]: of all_to_all, and of parts
    void *scratch; // grows, never shrinks
    size_t scratch_bytes;
} MpiComm;

// Of exchanges; those of single messages begin behind it and go round at what every MPI allows.
enum { MESSAGE_TAG = 1, NUM_TAGS = 32000 };

// --- Failures

static Status mpi_status(int error, const char *what) {
    if (error == MPI_SUCCESS) return status_ok();
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    return status_error(STATUS_MACHINE, "MPI: %s failed in process %d: %s", what, mpi_rank(), text);
}

static void keep(Comm *comm, Status status) {
    if (comm->backend->failure.code == STATUS_OK) comm->backend->failure = status;
}

// Whether a call may go ahead: not after a failure, nor with more elements than MPI can count. (Of
// parts all together: Open MPI adds them up in an int.)
static bool may_run(Comm *comm, int64_t count, const char *what) {
    if (comm->backend->failure.code != STATUS_OK) return false;
    if (count >= 0 && count <= INT_MAX) return true;
    keep(comm, status_error(STATUS_INVALID, "%s of %lld elements: MPI counts to %d", what,
                            (long long)count, INT_MAX));
    return false;
}

static void count_call(Comm *comm, CommKind kind, double bytes) {
    comm->num_calls++;
    comm->sent_bytes[kind] += bytes;
}

static MPI_Datatype datatype(Dtype dtype) {
    switch (dtype) {
    case DTYPE_BF16:
        return MPI_UINT16_T; // only moved
    case DTYPE_FP32:
        return MPI_FLOAT;
    case DTYPE_FP64:
        return MPI_DOUBLE;
    default:
        return MPI_INT32_T;
    }
}

static bool may_reduce(Comm *comm, Dtype dtype) {
    if (dtype != DTYPE_BF16) return true;
    keep(comm, status_error(STATUS_INVALID, "MPI cannot reduce bf16"));
    return false;
}

// Memory for one call; NULL, and the failure kept, where there is none.
static void *scratch_of(MpiComm *mpi, size_t bytes) {
    if (bytes <= mpi->scratch_bytes) return mpi->scratch;
    free(mpi->scratch);
    mpi->scratch = malloc(bytes);
    mpi->scratch_bytes = mpi->scratch == NULL ? 0 : bytes;
    if (mpi->scratch == NULL) {
        keep(&mpi->base, status_error(STATUS_MACHINE, "no %zu bytes for a message", bytes));
    }
    return mpi->scratch;
}

// --- Collectives

static void all_reduce(Comm *comm, void *array, int64_t count, Dtype dtype, ReduceOp op,
                       BackendStream *stream) {
    (void)stream;
    if (!may_run(comm, count, "all_reduce") || !may_reduce(comm, dtype)) return;
    count_call(comm, COMM_ALL_REDUCE, (double)count * (double)dtype_bytes(dtype));
    int error = MPI_Allreduce(MPI_IN_PLACE, array, (int)count, datatype(dtype),
                              op == REDUCE_SUM ? MPI_SUM : MPI_MAX, ((MpiComm *)comm)->group);
    keep(comm, mpi_status(error, "all_reduce"));
}

static void all_gather(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                       BackendStream *stream) {
    (void)stream;
    if (!may_run(comm, count * comm->size, "all_gather")) return;
    size_t part_bytes = (size_t)count * dtype_bytes(dtype);
    count_call(comm, COMM_ALL_GATHER, (double)part_bytes * comm->size);
    const char *place = (const char *)out + part_bytes * (size_t)comm->rank;
    int error = MPI_Allgather(in == place ? MPI_IN_PLACE : in, (int)count, datatype(dtype), out,
                              (int)count, datatype(dtype), ((MpiComm *)comm)->group);
    keep(comm, mpi_status(error, "all_gather"));
}

// MPI wants in and out apart; where out lies in `in`, the sum takes a way around.
static void reduce_scatter(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                           BackendStream *stream) {
    (void)stream;
    if (!may_run(comm, count * comm->size, "reduce_scatter") || !may_reduce(comm, dtype)) return;
    MpiComm *mpi = (MpiComm *)comm;
    size_t part_bytes = (size_t)count * dtype_bytes(dtype);
    count_call(comm, COMM_REDUCE_SCATTER, (double)part_bytes * comm->size);
    bool in_place = out == (const char *)in + part_bytes * (size_t)comm->rank && count > 0;
    void *sum = in_place ? scratch_of(mpi, part_bytes) : out;
    if (in_place && sum == NULL) return;
    int error = MPI_Reduce_scatter_block(in, sum, (int)count, datatype(dtype), MPI_SUM, mpi->group);
    if (in_place && error == MPI_SUCCESS) memcpy(out, sum, part_bytes);
    keep(comm, mpi_status(error, "reduce_scatter"));
}

// Elements to int, as MPI wants them.
static bool narrow(Comm *comm, int *to, const int64_t *from) {
    for (int r = 0; r < comm->size; r++) {
        if (!may_run(comm, from[r], "all_to_all")) return false;
        to[r] = (int)from[r];
    }
    return true;
}

static void all_to_all(Comm *comm, void *out, const int64_t *out_counts, const int64_t *out_offsets,
                       const void *in, const int64_t *in_counts, const int64_t *in_offsets,
                       Dtype dtype, BackendStream *stream) {
    (void)stream;
    MpiComm *mpi = (MpiComm *)comm;
    int size = comm->size, *counts = mpi->counts;
    if (!narrow(comm, counts, in_counts) || !narrow(comm, counts + size, in_offsets) ||
        !narrow(comm, counts + 2 * size, out_counts) ||
        !narrow(comm, counts + 3 * size, out_offsets)) {
        return;
    }
    double elements = 0;
    for (int r = 0; r < size; r++) elements += (double)in_counts[r];
    count_call(comm, COMM_ALL_TO_ALL, elements * (double)dtype_bytes(dtype));
    int error = MPI_Alltoallv(in, counts, counts + size, datatype(dtype), out, counts + 2 * size,
                              counts + 3 * size, datatype(dtype), mpi->group);
    keep(comm, mpi_status(error, "all_to_all"));
}

// Counts and offsets of parts that lie one behind the other. Returns the sum, -1 after a failure.
static int64_t parts_of(Comm *comm, const int64_t *counts) {
    int *to = ((MpiComm *)comm)->counts;
    int64_t sum = 0;
    if (!narrow(comm, to, counts)) return -1;
    for (int r = 0; r < comm->size; r++) {
        to[comm->size + r] = (int)sum;
        sum += counts[r];
        if (!may_run(comm, sum, "parts")) return -1;
    }
    return sum;
}

static void all_gather_parts(Comm *comm, void *out, const void *in, const int64_t *counts,
                             Dtype dtype, BackendStream *stream) {
    (void)stream;
    MpiComm *mpi = (MpiComm *)comm;
    const int64_t all = parts_of(comm, counts);
    if (all < 0) return;
    count_call(comm, COMM_ALL_GATHER, (double)all * (double)dtype_bytes(dtype));
    int error = MPI_Allgatherv(in, mpi->counts[comm->rank], datatype(dtype), out, mpi->counts,
                               mpi->counts + comm->size, datatype(dtype), mpi->group);
    keep(comm, mpi_status(error, "all_gather_parts"));
}

static void reduce_scatter_parts(Comm *comm, void *out, const void *in, const int64_t *counts,
                                 Dtype dtype, BackendStream *stream) {
    (void)stream;
    MpiComm *mpi = (MpiComm *)comm;
    if (!may_reduce(comm, dtype)) return;
    const int64_t all = parts_of(comm, counts);
    if (all < 0) return;
    count_call(comm, COMM_REDUCE_SCATTER, (double)all * (double)dtype_bytes(dtype));
    int error = MPI_Reduce_scatter(in, out, mpi->counts, datatype(dtype), MPI_SUM, mpi->group);
    keep(comm, mpi_status(error, "reduce_scatter_parts"));
}

static void broadcast(Comm *comm, void *array, int64_t count, Dtype dtype, int root,
                      BackendStream *stream) {
    (void)stream;
    if (!may_run(comm, count, "broadcast")) return;
    count_call(comm, COMM_BROADCAST, (double)count * (double)dtype_bytes(dtype));
    int error = MPI_Bcast(array, (int)count, datatype(dtype), root, ((MpiComm *)comm)->group);
    keep(comm, mpi_status(error, "broadcast"));
}

// --- Messages

static int start_message(MpiComm *mpi, const Message *message, int tag, MPI_Request *request) {
    if (message->receive) {
        return MPI_Irecv(message->array, (int)message->count, datatype(message->dtype),
                         message->peer, tag, mpi->group, request);
    }
    return MPI_Isend(message->array, (int)message->count, datatype(message->dtype), message->peer,
                     tag, mpi->group, request);
}

// All have one tag: between two processes MPI keeps the order in which messages are started.
static void exchange(Comm *comm, const Message *messages, int num_messages, BackendStream *stream) {
    (void)stream;
    MpiComm *mpi = (MpiComm *)comm;
    double sent_bytes = 0;
    for (int i = 0; i < num_messages; i++) {
        if (!may_run(comm, messages[i].count, "exchange")) return;
        if (messages[i].receive) continue;
        sent_bytes += (double)messages[i].count * (double)dtype_bytes(messages[i].dtype);
    }
    if (num_messages == 0 || comm->backend->failure.code != STATUS_OK) return;
    MPI_Request *requests = scratch_of(mpi, (size_t)num_messages * sizeof(MPI_Request));
    if (requests == NULL) return;
    count_call(comm, COMM_MESSAGES, sent_bytes);
    int started = 0, error = MPI_SUCCESS;
    while (started < num_messages && error == MPI_SUCCESS) {
        error = start_message(mpi, &messages[started], MESSAGE_TAG, &requests[started]);
        if (error == MPI_SUCCESS) started++;
    }
    // After a failure the others are not waited for: they might never come.
    if (error == MPI_SUCCESS) error = MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    keep(comm, mpi_status(error, "exchange"));
}

struct CommRequest {
    MPI_Request request;
};

static CommRequest *start(Comm *comm, const Message *message, BackendStream *stream) {
    (void)stream;
    if (!may_run(comm, message->count, "message")) return NULL;
    CommRequest *request = malloc(sizeof *request);
    if (request == NULL) {
        keep(comm, status_error(STATUS_MACHINE, "no memory for a message"));
        return NULL;
    }
    if (!message->receive)
        count_call(comm, COMM_MESSAGES,
                   (double)message->count * (double)dtype_bytes(message->dtype));
    int tag = MESSAGE_TAG + 1 + message->tag % NUM_TAGS;
    int error = start_message((MpiComm *)comm, message, tag, &request->request);
    keep(comm, mpi_status(error, "message"));
    if (error == MPI_SUCCESS) return request;
    free(request);
    return NULL;
}

// After a failure nothing is waited for: it might never come.
static bool finish(Comm *comm, CommRequest *request, bool wait) {
    if (request == NULL) return true;
    int done = 1, error = MPI_SUCCESS;
    if (wait && comm->backend->failure.code == STATUS_OK)
        error = MPI_Wait(&request->request, MPI_STATUS_IGNORE);
    else
        error = MPI_Test(&request->request, &done, MPI_STATUS_IGNORE);
    keep(comm, mpi_status(error, "message"));
    if (!done && !wait) return false;
    free(request);
    return true;
}

// --- Groups

static void mpi_comm_free(Comm *comm) {
    if (comm == NULL) return;
    MpiComm *mpi = (MpiComm *)comm;
    if (mpi->group != MPI_COMM_NULL) MPI_Comm_free(&mpi->group);
    free(mpi->counts);
    free(mpi->scratch);
    free(mpi);
}

static const CommTable MPI_TABLE = {
    .free = mpi_comm_free,
    .all_reduce = all_reduce,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_gather_parts = all_gather_parts,
    .reduce_scatter_parts = reduce_scatter_parts,
    .all_to_all = all_to_all,
    .broadcast = broadcast,
    .exchange = exchange,
    .start = start,
    .finish = finish,
};

static Status make_group(MpiComm *mpi, const int *ranks, int num_ranks) {
    MPI_Group world, group;
    TRY(mpi_status(MPI_Comm_group(MPI_COMM_WORLD, &world), "reading all processes"));
    int error = MPI_Group_incl(world, num_ranks, ranks, &group);
    MPI_Group_free(&world);
    TRY(mpi_status(error, "listing a group"));
    error = MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &mpi->group);
    MPI_Group_free(&group);
    TRY(mpi_status(error, "making a group"));
    TRY(mpi_status(MPI_Comm_set_errhandler(mpi->group, MPI_ERRORS_RETURN), "making a group"));
    TRY(mpi_status(MPI_Comm_rank(mpi->group, &mpi->base.rank), "reading a rank"));
    return mpi_status(MPI_Comm_size(mpi->group, &mpi->base.size), "reading a size");
}

Status mpi_comm_create(Backend *backend, const int *ranks, int num_ranks, Comm **out) {
    bool among = false;
    for (int i = 0; i < num_ranks; i++) among = among || ranks[i] == mpi_rank();
    assert(among);
    (void)among;
    MpiComm *mpi = calloc(1, sizeof *mpi);
    if (mpi == NULL) return status_error(STATUS_MACHINE, "no memory for a group of processes");
    mpi->base.table = &MPI_TABLE;
    mpi->base.backend = backend;
    mpi->group = MPI_COMM_NULL;
    mpi->counts = calloc(4 * (size_t)num_ranks, sizeof(int));
    Status status = mpi->counts != NULL
                        ? make_group(mpi, ranks, num_ranks)
                        : status_error(STATUS_MACHINE, "no memory for a group of processes");
    if (status.code != STATUS_OK) {
        mpi_comm_free(&mpi->base);
        return status;
    }
    *out = &mpi->base;
    return status_ok();
}

// --- Start and end

Status mpi_start(int *argc, char ***argv) {
    int error = MPI_Init(argc, argv);
    if (error != MPI_SUCCESS) return status_error(STATUS_MACHINE, "MPI does not start");
    return mpi_status(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "starting");
}

void mpi_end(void) {
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (started && !ended) MPI_Finalize();
}

int mpi_rank(void) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int mpi_size(void) {
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

// The processes of this machine; to be freed.
static Status machine_split(MPI_Comm *near) {
    return mpi_status(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, near),
        "MPI_Comm_split_type");
}

Status mpi_local_rank(int *out) {
    MPI_Comm near;
    TRY(machine_split(&near));
    MPI_Comm_rank(near, out);
    MPI_Comm_free(&near);
    return status_ok();
}

Status mpi_machine_sum(double *number) {
    MPI_Comm near;
    const double own = *number;
    TRY(machine_split(&near));
    const int failed = MPI_Allreduce(&own, number, 1, MPI_DOUBLE, MPI_SUM, near);
    MPI_Comm_free(&near);
    return mpi_status(failed, "a sum over the processes of a machine");
}

Status mpi_gather(const double *own, int num, double *all) {
    return mpi_status(MPI_Gather(own, num, MPI_DOUBLE, all, num, MPI_DOUBLE, 0, MPI_COMM_WORLD),
                      "a gather");
}

_Noreturn void mpi_abort(int exit_code) {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    abort(); // MPI_Abort may return
}
