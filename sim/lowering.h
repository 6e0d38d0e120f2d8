// sim/lowering.h - what lower.c and lower_collective.c share while they build one Dag.
#pragma once

#include "config/cluster/node_order.h"
#include "sim/lower.h"

typedef struct {
    const LowerInput *input;
    Arena *arena; // of what is only needed until the Dag is whole; builder.arena has the rest
    bool stepwise;
    const int *first_lane;   // [num_lanes] of those that meet inside a computation
    const int **group_first; // [plan_num_group_kinds] of those in groups of a kind (sim/lanes.h);
                             // NULL until asked for
    Lowered *out;
    struct InnerFlows *flows; // of sim/lower_inner.c
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

// The number of a simulated rank, and of the GPU that runs it.
static inline int lowering_rank(const Lowering *lowering, int rank, int lane) {
    const Lanes *lanes = &lowering->out->lanes;
    return program_gpu(lowering->input->program, rank, lanes->replica[lane] * lanes->num_folded);
}

static inline int lowering_gpu(const Lowering *lowering, int rank, int lane) {
    return (int)cluster_gpu_of_rank(lowering->input->cluster, lowering_rank(lowering, rank, lane));
}

// The first simulated GPU of a pipeline rank among those that a lane meets inside a computation.
static inline int lowering_first_lane(const Lowering *lowering, int lane) {
    return lowering->first_lane[lane];
}

// The member after i in its ring: beside it in its domain, or at its place in the next domain.
int ring_next(int i, int num_ranks, int ranks_per_domain, bool across);

// What inner_lower needs, once the lanes are known.
void inner_start(Lowering *lowering);

// Makes the activities of one computation on all lanes that meet `lane`, their first, inside it.
void inner_lower(Lowering *lowering, int rank, int lane, const Instruction *instruction,
                 int32_t *begin, int32_t *end);

// Whether a collective of tp ranks is a timer, as what they exchange inside computations is: inside
// a domain, unless a port is disturbed.
bool collective_is_timer(const LowerInput *input, const ProgramCollective *what);

// Those of a collective's members that are played, by lane; the others do what these do.
typedef struct {
    int num;
    const int *gpus;   // [num]
    const int *places; // [num] in the group of each
    // Among replicas of a stage: which, so that others of their groups can be found. NULL: among
    // the pipeline ranks of one lane, which are all there.
    const int *replicas;
    int rank;
} Members;

// Makes the activities of one collective: everything between *begin, which every member reaches,
// and *end.
void collective_lower(Lowering *lowering, int collective, const Members *members, int32_t *begin,
                      int32_t *end);
