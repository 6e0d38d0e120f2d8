#include "runtime/traffic.h"

#include <math.h>
#include <stdio.h>

static const char *const KIND_NAMES[NUM_COMM_KINDS] = {"all_reduce", "all_gather", "reduce_scatter",
                                                       "all_to_all", "broadcast",  "messages"};

// What carries out a collective; the runtime has no kernels of its own for experts' exchanges.
static CommKind comm_kind(CollectiveKind collective) {
    switch (collective) {
    case COLLECTIVE_ALL_REDUCE:
        return COMM_ALL_REDUCE;
    case COLLECTIVE_ALL_GATHER:
        return COMM_ALL_GATHER;
    case COLLECTIVE_REDUCE_SCATTER:
        return COMM_REDUCE_SCATTER;
    case COLLECTIVE_BROADCAST:
        return COMM_BROADCAST;
    case COLLECTIVE_RING_EXCHANGE:
        return COMM_MESSAGES;
    default:
        return COMM_ALL_TO_ALL;
    }
}

static void op_add(const Plan *plan, const Op *op, Traffic *traffic) {
    if (op->kind != OP_COLLECTIVE || op->collective.kind == NUM_COLLECTIVES) return;
    const int size = plan_group(plan, op->collective.group).size;
    if (size < 2) return;
    const bool ring = op->collective.kind == COLLECTIVE_RING_EXCHANGE;
    traffic->bytes[op->collective.group][comm_kind(op->collective.kind)] +=
        op->collective.message_bytes * (ring ? size - 1 : 1);
}

// Operators of all blocks of a chunk; kind: InstructionKind of a computation.
static void chunk_add(const Plan *plan, const Workload *workload, const Instruction *i,
                      Traffic *traffic) {
    const Chunk *chunk = &workload->chunks[i->chunk];
    const bool forward = i->kind == INSTRUCTION_FORWARD;
    for (int block = 0; block < workload->num_blocks; block++) {
        const Block *b = &workload->blocks[block];
        const Op *ops = forward ? b->forward : b->backward;
        const int num_ops = forward ? b->num_forward : b->num_backward;
        for (int k = 0; k < num_ops && chunk->num_blocks[block] > 0; k++) {
            const bool weight = ops[k].phase == PHASE_BACKWARD_WEIGHT;
            if (i->kind == INSTRUCTION_BACKWARD_INPUT && weight) continue;
            if (i->kind == INSTRUCTION_BACKWARD_WEIGHT && !weight) continue;
            for (int n = 0; n < chunk->num_blocks[block]; n++) op_add(plan, &ops[k], traffic);
        }
    }
}

Traffic traffic_of_program(const Plan *plan, const Workload *workload, const Program *program,
                           int stage) {
    Traffic traffic = {{{0}}};
    const RankProgram *rank = &program->ranks[stage];
    for (int n = 0; n < rank->num_instructions; n++) {
        const Instruction *i = &rank->instructions[n];
        if (i->kind <= INSTRUCTION_BACKWARD_WEIGHT) {
            chunk_add(plan, workload, i, &traffic);
        } else if (i->kind == INSTRUCTION_SEND) {
            traffic.bytes[GROUP_PP][COMM_MESSAGES] += program_message_bytes(program, i);
        } else if (i->kind == INSTRUCTION_COLLECTIVE) {
            const ProgramCollective *c = &program->collectives[i->collective];
            traffic.bytes[c->group][comm_kind(c->kind)] += c->message_bytes * c->num_calls;
        }
    }
    return traffic;
}

Traffic traffic_of_comms(const Rank *rank, int64_t num_steps) {
    Traffic traffic = {{{0}}};
    for (int group = 0; group < NUM_GROUPS; group++) {
        const Comm *comm = rank->world->comms[group];
        for (int kind = 0; kind < NUM_COMM_KINDS && comm; kind++)
            traffic.bytes[group][kind] =
                (comm->sent_bytes[kind] - rank->beside_bytes[group][kind]) / (double)num_steps;
    }
    return traffic;
}

// Over ep each pass sends rows to experts and as many back as arrived; over etp all of a group's
// rows are gathered, and scattered.
void traffic_feed(Traffic *program, const Rank *rank) {
    const RowsMoved *rows = &rank->rows_moved;
    const double imbalance = rank->scenario->training.moe_imbalance;
    if (rows->sent == 0) return;
    for (int kind = 0; kind < NUM_COMM_KINDS; kind++) {
        program->bytes[GROUP_EP][kind] *= rows->sent + rows->arrived;
        program->bytes[GROUP_EP][kind] /= 2 * rows->sent * imbalance;
        program->bytes[GROUP_ETP][kind] *= rows->gathered;
        program->bytes[GROUP_ETP][kind] /= rows->sent * rank->plan->etp * imbalance;
    }
}

double traffic_difference(const Traffic *program, const Traffic *counted) {
    double most = 0;
    for (int group = 0; group < NUM_GROUPS; group++)
        for (int kind = 0; kind < NUM_COMM_KINDS; kind++)
            most = fmax(most, fabs(program->bytes[group][kind] - counted->bytes[group][kind]));
    return most;
}

void traffic_print(const Traffic *program, const Traffic *counted, double off_bytes) {
    const char *before = "sent in a step:";
    for (int i = 0; i < NUM_GROUPS * NUM_COMM_KINDS; i++) {
        const int group = i / NUM_COMM_KINDS, kind = i % NUM_COMM_KINDS;
        const double says = program->bytes[group][kind], sent = counted->bytes[group][kind];
        if (says == 0 && sent == 0) continue;
        printf("%s %s %s %.0f bytes (the Program: %.0f)", before, GROUP_NAMES[group],
               KIND_NAMES[kind], sent, says);
        before = ",";
    }
    if (*before != ',') return;
    printf("\nthe most that a collective of any process is off: %.0f bytes\n", off_bytes);
}
