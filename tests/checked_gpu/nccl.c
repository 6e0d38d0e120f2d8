// tests/checked_gpu/nccl.c - libnccl.so.2 over MPI, for the checked GPU: calls are queued on
// streams and done when those run. Members must call the same with the same counts in the same
// order. As NCCL may, nothing is sent before its receiver is there, and what one communicator does
// it does one after the other, on whatever streams it is.
#include "tests/checked_gpu/checked_gpu.h"

#include <mpi.h>
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPED = 256, ID_TAG = 31000, LIST_TAG = 31001 };

typedef enum {
    OP_ALL_REDUCE,
    OP_ALL_GATHER,
    OP_REDUCE_SCATTER,
    OP_REDUCE,
    OP_BROADCAST,
    OP_SEND,
    OP_RECV
} OpKind;

struct ncclComm {
    MPI_Comm group;
    int rank, size;
    int64_t num_queued, num_done; // calls, and groups of calls
};

// One call of a group.
typedef struct {
    OpKind kind;
    const void *in;
    void *out;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t reduce;
    int peer; // or root
    ncclComm_t comm;
} Op;

typedef struct {
    int num, num_requests, num_alike;
    bool begun;
    int64_t turn; // among the calls of its communicator, on whatever stream they are
    Op ops[MOST_GROUPED];
    MPI_Request requests[MOST_GROUPED];
    MPI_Status statuses[MOST_GROUPED];
    int received[MOST_GROUPED];   // of each request: its op, from 1; 0: it sends
    int64_t own[MOST_GROUPED][8]; // of collectives: kind, count, type, root, and the negatives
    int64_t most[MOST_GROUPED][8];
} Group;

static int depth; // of ncclGroupStart
static Group *group;
static cudaStream_t group_stream;
static int num_ids;

static const char *const NAMES[] = {
    [OP_ALL_REDUCE] = "ncclAllReduce",
    [OP_ALL_GATHER] = "ncclAllGather",
    [OP_REDUCE_SCATTER] = "ncclReduceScatter",
    [OP_REDUCE] = "ncclReduce",
    [OP_BROADCAST] = "ncclBroadcast",
    [OP_SEND] = "ncclSend",
    [OP_RECV] = "ncclRecv",
};

static size_t type_bytes(ncclDataType_t type) {
    return type == ncclFloat64 ? 8 : 4;
}

static MPI_Datatype type_of(ncclDataType_t type) {
    if (type == ncclFloat64) return MPI_DOUBLE;
    if (type == ncclInt32) return MPI_INT32_T;
    if (type != ncclFloat32) checked_find("NCCL is given a type that the checked GPU has not");
    return MPI_FLOAT;
}

// --- Running

// Collectives: MPI's own, once every member has come to this one.
static void run_collective(const Op *op) {
    const MPI_Datatype type = type_of(op->type);
    const MPI_Op reduce = op->reduce == ncclMax ? MPI_MAX : MPI_SUM;
    const MPI_Comm mpi = op->comm->group;
    const int count = (int)op->count;
    const size_t bytes = op->count * type_bytes(op->type), at = (size_t)op->comm->rank * bytes;
    char *way;
    switch (op->kind) {
    case OP_ALL_REDUCE:
        MPI_Allreduce(op->in == op->out ? MPI_IN_PLACE : op->in, op->out, count, type, reduce, mpi);
        break;
    case OP_ALL_GATHER:
        MPI_Allgather((const char *)op->in == (char *)op->out + at ? MPI_IN_PLACE : op->in, count,
                      type, op->out, count, type, mpi);
        break;
    case OP_REDUCE_SCATTER:
        way = malloc(bytes + 1);
        MPI_Reduce_scatter_block(op->in, way, count, type, reduce, mpi);
        memcpy(op->out, way, bytes);
        free(way);
        break;
    case OP_REDUCE:
        MPI_Reduce(op->in, op->out, count, type, reduce, op->peer, mpi);
        break;
    default:
        if (op->comm->rank == op->peer && op->in != op->out) memcpy(op->out, op->in, bytes);
        MPI_Bcast(op->out, count, type, op->peer, mpi);
    }
}

// Begins to ask whether all members of a collective name the same kind, count, type and root.
static void alike_begin(Group *g, const Op *op) {
    const int64_t own[4] = {op->kind, (int64_t)op->count, op->type, op->peer};
    for (int i = 0; i < 4; i++) {
        g->own[g->num_alike][i] = own[i];
        g->own[g->num_alike][4 + i] = -own[i];
    }
    MPI_Iallreduce(g->own[g->num_alike], g->most[g->num_alike], 8, MPI_INT64_T, MPI_MAX,
                   op->comm->group, &g->requests[g->num_requests++]);
    g->num_alike++;
}

static void alike_check(const Group *g, int which, const Op *op) {
    for (int i = 0; i < 4; i++)
        if (g->most[which][i] != -g->most[which][4 + i])
            checked_find("rank %d of %d calls %s of %zu elements, another something else",
                         op->comm->rank, op->comm->size, NAMES[op->kind], op->count);
}

// All messages of a group are under way together.
static void group_begin(Group *g) {
    g->begun = true;
    for (int i = 0; i < g->num; i++) {
        const Op *op = &g->ops[i];
        const MPI_Datatype type = type_of(op->type);
        MPI_Request *request = &g->requests[g->num_requests];
        if (op->kind < OP_SEND) {
            alike_begin(g, op);
            continue;
        }
        g->received[g->num_requests++] = op->kind == OP_RECV ? i + 1 : 0;
        if (op->kind == OP_SEND)
            MPI_Issend(op->in, (int)op->count, type, op->peer, 0, op->comm->group, request);
        else
            MPI_Irecv(op->out, (int)op->count, type, op->peer, 0, op->comm->group, request);
    }
}

static void group_end(Group *g) {
    int which = 0;
    for (int i = 0; i < g->num; i++) {
        if (g->ops[i].kind >= OP_SEND) continue;
        alike_check(g, which++, &g->ops[i]);
        run_collective(&g->ops[i]);
    }
    for (int i = 0; i < g->num_requests; i++) {
        if (g->received[i] == 0) continue;
        const Op *op = &g->ops[g->received[i] - 1];
        int count;
        MPI_Get_count(&g->statuses[i], type_of(op->type), &count);
        if ((size_t)count != op->count)
            checked_find("%zu elements are to be received, %d were sent", op->count, count);
    }
    free(g);
}

static bool poll_group(void *arguments) {
    Group *g = *(Group **)arguments;
    ncclComm_t comm = g->ops[0].comm;
    if (comm->num_done < g->turn) return false;
    if (!g->begun) group_begin(g);
    int done;
    MPI_Testall(g->num_requests, g->requests, &done, g->statuses);
    if (!done) return false;
    group_end(g);
    comm->num_done++;
    return true;
}

// --- Queueing

static void op_arrays(const Op *op, Accesses *a) {
    const int64_t bytes = (int64_t)(op->count * type_bytes(op->type)), size = op->comm->size;
    const bool root = op->comm->rank == op->peer;
    if (op->kind == OP_BROADCAST ? root : op->kind != OP_RECV)
        reads(a, op->in, op->kind == OP_REDUCE_SCATTER ? size * bytes : bytes);
    if (op->kind == OP_REDUCE ? root : op->kind != OP_SEND)
        writes(a, op->out, op->kind == OP_ALL_GATHER ? size * bytes : bytes);
}

static ncclResult_t group_queue(void) {
    if (!group) return ncclSuccess;
    Group *whole = group;
    group = NULL;
    whole->turn = whole->ops[0].comm->num_queued++;
    Call call = {.what = whole->num == 1 ? NAMES[whole->ops[0].kind] : "a group of NCCL's calls",
                 .poll = poll_group,
                 .arguments = &whole,
                 .bytes = sizeof whole};
    for (int i = 0; i < whole->num; i++) op_arrays(&whole->ops[i], &call.accesses);
    return checked_queue(group_stream, &call) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

static ncclResult_t add(Op op, cudaStream_t stream) {
    static int64_t num_refusable;
    if (checked_option("nccl") == (int64_t)op.kind && num_refusable++ >= checked_option("after"))
        return ncclInternalError;
    if (!group) {
        group = calloc(1, sizeof *group);
        if (!group) abort();
        group_stream = stream;
    }
    if (group->num == MOST_GROUPED) abort();
    if (stream != group_stream) checked_find("calls of one group of NCCL's on several streams");
    if (op.peer >= op.comm->size)
        checked_find("%s with rank %d of %d", NAMES[op.kind], op.peer, op.comm->size);
    if (group->num > 0 && op.comm != group->ops[0].comm)
        checked_find("calls of one group of NCCL's on several communicators");
    group->ops[group->num++] = op;
    return depth > 0 ? ncclSuccess : group_queue();
}

// nccl.h declares both without `void`.
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void) {
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    if (depth == 0) checked_find("ncclGroupEnd without ncclGroupStart");
    return --depth == 0 ? group_queue() : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduce, ncclComm_t comm, cudaStream_t stream) {
    return add((Op){OP_ALL_REDUCE, in, out, count, type, reduce, 0, comm}, stream);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    return add((Op){OP_ALL_GATHER, in, out, count, type, ncclSum, 0, comm}, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduce, ncclComm_t comm, cudaStream_t stream) {
    return add((Op){OP_REDUCE_SCATTER, in, out, count, type, reduce, 0, comm}, stream);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                        ncclRedOp_t reduce, int root, ncclComm_t comm, cudaStream_t stream) {
    return add((Op){OP_REDUCE, in, out, count, type, reduce, root, comm}, stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    return add((Op){OP_BROADCAST, in, out, count, type, ncclSum, root, comm}, stream);
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return add((Op){OP_SEND, in, NULL, count, type, ncclSum, peer, comm}, stream);
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return add((Op){OP_RECV, NULL, out, count, type, ncclSum, peer, comm}, stream);
}

// --- Groups

ncclResult_t ncclGetUniqueId(ncclUniqueId *out) {
    memset(out, 0, sizeof *out);
    int maker;
    MPI_Comm_rank(MPI_COMM_WORLD, &maker);
    const int id[2] = {maker, ++num_ids};
    memcpy(out, id, sizeof id);
    return ncclSuccess;
}

// Whoever made the id learns which process has which rank, and tells all.
static void members_find(const int id[2], int rank, int size, int *members) {
    int own;
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    if (own != id[0]) {
        const int mine[3] = {id[1], rank, size};
        MPI_Send(mine, 3, MPI_INT, id[0], ID_TAG, MPI_COMM_WORLD);
        MPI_Recv(members, size, MPI_INT, id[0], LIST_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    members[rank] = own;
    for (int i = 1; i < size; i++) {
        int theirs[3];
        MPI_Status from;
        MPI_Recv(theirs, 3, MPI_INT, MPI_ANY_SOURCE, ID_TAG, MPI_COMM_WORLD, &from);
        if (theirs[0] != id[1] || theirs[2] != size)
            checked_find("a rank joins a group of NCCL by another id or with another size");
        members[theirs[1]] = from.MPI_SOURCE;
    }
    for (int i = 0; i < size; i++)
        if (i != rank) MPI_Send(members, size, MPI_INT, members[i], LIST_TAG, MPI_COMM_WORLD);
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId unique, int rank) {
    int id[2];
    memcpy(id, &unique, sizeof id);
    int *members = malloc((size_t)size * sizeof *members);
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!members || !comm) abort();
    members_find(id, rank, size, members);
    MPI_Group all, some;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, size, members, &some);
    MPI_Comm_create_group(MPI_COMM_WORLD, some, id[1], &comm->group);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    free(members);
    comm->rank = rank;
    comm->size = size;
    *out = comm;
    return ncclSuccess;
}

// Those without a color get no group.
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config) {
    (void)config;
    MPI_Comm part;
    MPI_Comm_split(comm->group, color == NCCL_SPLIT_NOCOLOR ? MPI_UNDEFINED : color, key, &part);
    *out = NULL;
    if (part == MPI_COMM_NULL) return ncclSuccess;
    *out = calloc(1, sizeof **out);
    if (!*out) abort();
    (*out)->group = part;
    MPI_Comm_rank(part, &(*out)->rank);
    MPI_Comm_size(part, &(*out)->size);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    checked_drain();
    MPI_Comm_free(&comm->group);
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *out) {
    *out = 1;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclInternalError ? "internal error" : "an error of NCCL";
}

const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm;
    return "it was asked to fail";
}
