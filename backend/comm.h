// backend/comm.h - what the processes of a run do together, by MPI among CPUs or NCCL among GPUs.
//
// A Comm is a group of processes; rank i of it is the i-th of the list it was made from. Every
// member calls the same function with the same counts in the same order. Work is queued on a stream
// as in backend/backend.h (of a CPU: done at once), and failures are kept in the same way.
// Counts are elements of dtype. What was sent is counted, so that it can be set beside the Program.
#pragma once

#include "backend/backend.h"

typedef struct CommTable CommTable;

typedef enum { REDUCE_SUM, REDUCE_MAX } ReduceOp;

// What bytes are sent by, of equal parts or not; COMM_MESSAGES: exchange and start.
typedef enum {
    COMM_ALL_REDUCE,
    COMM_ALL_GATHER,
    COMM_REDUCE_SCATTER,
    COMM_ALL_TO_ALL,
    COMM_BROADCAST,
    COMM_MESSAGES,
    NUM_COMM_KINDS
} CommKind;

typedef struct {
    const CommTable *table;
    Backend *backend;
    int rank, size;
    int64_t num_calls;
    // By the convention of workload/pass/operator.h: a collective's message_bytes.
    double sent_bytes[NUM_COMM_KINDS];
} Comm;

// One message of a group; those of one call are under way together.
typedef struct {
    int peer; // rank in the Comm
    bool receive;
    void *array; // const where it is sent
    int64_t count;
    Dtype dtype;
    int32_t tag; // of `start`: both ends name the same, >= 0
    int way;     // of `start`: its index in what `open_ways` was told
} Message;

// Where messages of `start` go; those of one way arrive in the order in which they were sent.
typedef struct {
    int from, to; // ranks in the Comm
} Way;

typedef struct CommRequest CommRequest;

struct CommTable {
    void (*free)(Comm *comm);
    // In place.
    void (*all_reduce)(Comm *, void *array, int64_t count, Dtype dtype, ReduceOp op,
                       BackendStream *);
    // `count` of each rank; in may lie at its place in out.
    void (*all_gather)(Comm *, void *out, const void *in, int64_t count, Dtype dtype,
                       BackendStream *);
    // `count` for each rank, size x count in; out may lie at its place in `in`.
    void (*reduce_scatter)(Comm *, void *out, const void *in, int64_t count, Dtype dtype,
                           BackendStream *);
    // With `counts` of each rank, one part behind the other; in and out lie apart.
    void (*all_gather_parts)(Comm *, void *out, const void *in, const int64_t *counts, Dtype dtype,
                             BackendStream *);
    void (*reduce_scatter_parts)(Comm *, void *out, const void *in, const int64_t *counts,
                                 Dtype dtype, BackendStream *);
    // Counts and offsets of each rank, in elements.
    void (*all_to_all)(Comm *, void *out, const int64_t *out_counts, const int64_t *out_offsets,
                       const void *in, const int64_t *in_counts, const int64_t *in_offsets,
                       Dtype dtype, BackendStream *);
    void (*broadcast)(Comm *, void *array, int64_t count, Dtype dtype, int root, BackendStream *);
    void (*exchange)(Comm *, const Message *messages, int num_messages, BackendStream *);
    // Before the first `start`, the same list on every member; NULL where `start` needs none.
    Status (*open_ways)(Comm *, const Way *ways, int num_ways);
    // One message that is under way while other work goes on, for schedules whose ranks would wait
    // for each other in a circle. The array is in use until finish says that it is done. NULL after
    // a failure.
    CommRequest *(*start)(Comm *, const Message *message, BackendStream *);
    // Whether it is done, which is waited for if `wait`, by what is queued next on backend->stream;
    // what is done (and NULL) is forgotten.
    bool (*finish)(Comm *, CommRequest *request, bool wait);
};
