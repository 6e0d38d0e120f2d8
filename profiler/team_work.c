#include "profiler/team_work.h"

const char *const TEAM_OP_NAMES[NUM_TEAM_OPS + 1] = {
    "all_gather", "all_reduce", "alltoall", "reduce_scatter", "exchange", "send_recv", NULL};

TeamRoom team_room(const TeamRequest *request) {
    int64_t all = request->num_elements, part = all / request->num_gpus;
    switch (request->op) {
    case TEAM_ALL_GATHER:
        return (TeamRoom){.in = part, .out = all};
    case TEAM_ALL_REDUCE:
        return (TeamRoom){.out = all};
    case TEAM_REDUCE_SCATTER:
        return (TeamRoom){.in = all, .out = part};
    default:
        return (TeamRoom){.in = all, .out = all};
    }
}

static void all_to_all(Comm *comm, int64_t part, void *out, void *in, BackendStream *stream) {
    int64_t counts[TEAM_MOST_RANKS], offsets[TEAM_MOST_RANKS];
    for (int i = 0; i < comm->size && i < TEAM_MOST_RANKS; i++) {
        counts[i] = part;
        offsets[i] = i * part;
    }
    comm->table->all_to_all(comm, out, counts, offsets, in, counts, offsets, DTYPE_BF16, stream);
}

// around: each rank sends and receives; else rank 0 sends to rank 1 and the others do nothing.
static void messages(Comm *comm, int64_t count, bool around, void *out, void *in,
                     BackendStream *stream) {
    int next = (comm->rank + 1) % comm->size, before = (comm->rank + comm->size - 1) % comm->size;
    Message list[2];
    int num_messages = 0;
    if (around || comm->rank == 0)
        list[num_messages++] =
            (Message){.peer = next, .array = in, .count = count, .dtype = DTYPE_BF16};
    if (around || comm->rank == 1)
        list[num_messages++] = (Message){
            .peer = before, .receive = true, .array = out, .count = count, .dtype = DTYPE_BF16};
    comm->table->exchange(comm, list, num_messages, stream);
}

void team_call(Comm *comm, const TeamRequest *request, void *out, void *in, BackendStream *stream) {
    int64_t all = request->num_elements, part = all / comm->size;
    switch (request->op) {
    case TEAM_ALL_GATHER:
        comm->table->all_gather(comm, out, in, part, DTYPE_BF16, stream);
        return;
    case TEAM_ALL_REDUCE:
        comm->table->all_reduce(comm, out, all, DTYPE_BF16, REDUCE_SUM, stream);
        return;
    case TEAM_ALL_TO_ALL:
        all_to_all(comm, part, out, in, stream);
        return;
    case TEAM_REDUCE_SCATTER:
        comm->table->reduce_scatter(comm, out, in, part, DTYPE_BF16, stream);
        return;
    default:
        messages(comm, all, request->op == TEAM_EXCHANGE, out, in, stream);
        return;
    }
}
