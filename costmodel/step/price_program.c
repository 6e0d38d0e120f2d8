// The collectives of a Program, and what they take from the computation beside them.
#include "costmodel/network/collective.h"
#include "costmodel/pass/price.h"

#include <math.h>

// The backward, or the part of it, that a reduction of gradients runs beside: it waits for a piece
// of it.
static const Price *backward_beside(const Prices *prices, const RankProgram *rank,
                                    const Instruction *reduction) {
    const Instruction *piece = &rank->instructions[reduction->waits[0]];
    return piece->kind == INSTRUCTION_BACKWARD_WEIGHT ? prices->backward_weight : prices->backward;
}

// What collectives beside the pieces of a computation take from it: gathers of weights from the
// first forward of a chunk, reductions of gradients from its last backward. One of n pieces has
// none beside it; a piece has them beside it no longer than it runs.
static void pieces_stretch(const Scenario *scenario, const Plan *plan, const Program *program,
                           Arena *arena, Prices *prices) {
    const double slowdown = scenario->execution.stack.communication.overlap_slowdown_frac;
    double *stretch_s[2];
    for (int b = 0; b < 2; b++)
        prices->stretch_s[b] = stretch_s[b] = ARENA_ARRAY(arena, plan_all_chunks(plan), double);
    for (int r = 0; r < program->num_ranks; r++) {
        const RankProgram *rank = &program->ranks[r];
        for (int i = 0; i < rank->num_instructions; i++) {
            const Instruction *one = &rank->instructions[i];
            if (one->kind != INSTRUCTION_COLLECTIVE || one->num_parts < 2) continue;
            const double n = one->num_parts, time_s = prices->collective_s[one->collective];
            const int b = one->phase != PHASE_FORWARD;
            const Price *whole = b ? backward_beside(prices, rank, one) : prices->forward;
            double *piece_s = &stretch_s[b][one->chunk];
            *piece_s = fmin(*piece_s + slowdown * time_s * (n - 1) / n / n,
                            slowdown * whole[one->chunk].time_s / n);
        }
    }
}

double piece_stretch_s(const Prices *prices, const Instruction *instruction) {
    if (instruction->num_parts < 2 || !prices->stretch_s[0]) return 0;
    if (instruction->kind == INSTRUCTION_BACKWARD_INPUT) return 0;
    return prices->stretch_s[instruction->kind != INSTRUCTION_FORWARD][instruction->chunk];
}

const double *collectives_price(const Scenario *scenario, const Plan *plan,
                                const ProgramCollective *collectives, int num_collectives,
                                Arena *arena, const StepPart **parts) {
    double *time_s = ARENA_ARRAY(arena, num_collectives, double);
    StepPart *part = ARENA_ARRAY(arena, num_collectives, StepPart);
    for (int i = 0; i < num_collectives; i++) {
        const ProgramCollective *c = &collectives[i];
        const Machines machines = cluster_machines(&scenario->cluster, c->pool);
        const Group group = plan_group(plan, c->group);
        const RankSpan ranks = program_collective_ranks(plan, c, machines.pool);
        part[i] = group_part(machines.pool, group);
        time_s[i] = span_collective_s(machines, c->kind, group, ranks, c->message_bytes) *
                    c->num_calls * part_factor(scenario->calibration, part[i]);
    }
    *parts = part;
    return time_s;
}

void program_price(const Scenario *scenario, const Plan *plan, const Program *program, Arena *arena,
                   Prices *prices) {
    prices->collective_s =
        collectives_price(scenario, plan, program->collectives, program->num_collectives, arena,
                          &prices->collective_part);
    pieces_stretch(scenario, plan, program, arena, prices);
}

int message_boundary(int rank, int peer) {
    const int low = rank < peer ? rank : peer, high = rank < peer ? peer : rank;
    return high - low == 1 ? low : high; // else first and last rank: the ring closes behind `high`
}

// What a rank sends to the holder of its copies at once, of which this message is a part.
static double copies_bytes(const Program *program, int rank, const Instruction *message) {
    const RankProgram *list = &program->ranks[rank];
    double bytes = 0;
    for (int i = 0; i < list->num_instructions; i++) {
        const Instruction *other = &list->instructions[i];
        if (other->p2p_group == message->p2p_group && other->kind == message->kind)
            bytes += program_message_bytes(program, other);
    }
    return bytes;
}

MessagePrice instruction_message_price(const Program *program, const Prices *prices, int rank,
                                       const Instruction *message) {
    const int boundary = message_boundary(rank, message->peer);
    MessagePrice price = {prices->message_s[boundary], prices->message_alpha_s[boundary], 0, 1};
    if (message->copies)
        price = (MessagePrice){prices->copies_s[rank], prices->copies_alpha_s[rank], 0, 1};
    price.transfer_s = price.time_s - price.alpha_s;
    if (message->copies || message->embedding) {
        const double own_bytes = program_message_bytes(program, message);
        const double bytes = message->copies ? copies_bytes(program, rank, message) : own_bytes;
        price.transfer_s *= bytes / program->message_bytes;
        price.time_s = price.alpha_s + price.transfer_s;
        if (bytes > 0) price.share_frac = own_bytes / bytes;
    }
    return price;
}

const Price *instruction_price(const Prices *prices, const Instruction *instruction) {
    switch (instruction->kind) {
    case INSTRUCTION_FORWARD:
        return &prices->forward[instruction->chunk];
    case INSTRUCTION_BACKWARD:
        return &prices->backward[instruction->chunk];
    case INSTRUCTION_BACKWARD_INPUT:
        return &prices->backward_input[instruction->chunk];
    case INSTRUCTION_BACKWARD_WEIGHT:
        return &prices->backward_weight[instruction->chunk];
    default:
        return NULL;
    }
}

double instruction_compute_s(const Prices *prices, const Instruction *instruction, int rank) {
    if (instruction->kind == INSTRUCTION_OPTIMIZER) return prices->optimizer_s[rank];
    const Price *price = instruction_price(prices, instruction);
    if (!price) return 0;
    const int parts = instruction->num_parts > 0 ? instruction->num_parts : 1;
    return price->time_s / parts + piece_stretch_s(prices, instruction);
}
