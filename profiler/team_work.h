// profiler/team_work.h - what the ranks of a team do together as it is measured: the call of
// backend/comm.h, and the room that it needs. Touches no CUDA.
#pragma once

#include "backend/comm.h"

// In the order of the names; the first four are those of config/kernels/kernel_nccl.h.
typedef enum {
    TEAM_ALL_GATHER,
    TEAM_ALL_REDUCE,
    TEAM_ALL_TO_ALL,
    TEAM_REDUCE_SCATTER,
    TEAM_EXCHANGE,  // every rank sends to the next and receives from the one before
    TEAM_SEND_RECV, // rank 0 sends to rank 1
    NUM_TEAM_OPS
} TeamOp;

extern const char *const TEAM_OP_NAMES[NUM_TEAM_OPS + 1]; // of op_name; ends with NULL

enum { TEAM_MOST_RANKS = 64 };

typedef struct {
    TeamOp op;
    int num_gpus;         // 2 to TEAM_MOST_RANKS
    int64_t num_elements; // bf16; of a rank's buffer in an all-reduce, of the whole in other
                          // collectives, of one message in the rest; a multiple of num_gpus
                          // where it is shared out
} TeamRequest;

// Elements of the two arrays that team_call wants.
typedef struct {
    int64_t in, out;
} TeamRoom;

TeamRoom team_room(const TeamRequest *request);

// One call of this rank. all_reduce works in place, on `out`.
void team_call(Comm *comm, const TeamRequest *request, void *out, void *in, BackendStream *stream);
