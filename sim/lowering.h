// sim/lowering.h - what lower.c and lower_collective.c share while they build one Dag.
#pragma once

#include "sim/lower.h"

typedef struct {
    const LowerInput *input;
    Arena *arena;
    int num_folded;
    bool stepwise;
    const int *first_replica; // [period] of those that meet inside a computation
    Lowered *out;
    DagBuilder builder;
    int32_t **message_node; // [num_ranks][l x num_instructions + i] flow of each SEND and RECV
    int max_meetings;       // most in a queue of collectives among the pipeline ranks
    int32_t (*meeting)[2];  // [queue][max_meetings][num_lanes] begin, end
    int32_t *message_route; // [num_ranks][num_ranks][num_lanes] from, to; NO_ROUTE until asked for
} Lowering;

// The place of an instruction in begin_node[rank].
static inline int lowering_slot(const Lowering *lowering, int rank, int lane, int instruction) {
    return lane * lowering->input->program->ranks[rank].num_instructions + instruction;
}

static inline int lowering_gpu(const Lowering *lowering, int rank, int lane) {
    return program_gpu(lowering->input->program, rank, lane * lowering->num_folded);
}

// The first simulated GPU of a pipeline rank among those that a lane meets inside a computation.
static inline int lowering_first_lane(const Lowering *lowering, int lane) {
    return lowering->first_replica[lane * lowering->num_folded] / lowering->num_folded;
}

// Makes the activities of one collective among the given GPUs, which are all of its group:
// everything between *begin, which every member reaches, and *end.
//   num_played  the first so many send; the others do what these do (sim/rotation.h)
void collective_lower(Lowering *lowering, int collective, const int *gpus, int num_played,
                      int32_t *begin, int32_t *end);
