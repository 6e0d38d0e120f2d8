// Passes over all instructions of all simulated GPUs: messages first, then all other activities,
// then what waits for what. So the ends of a message can be met in any order. The rules are those
// of workload/step/program.h, as costmodel/step/timeline.c applies them.
#include "sim/lower.h"

#include "costmodel/network/collective.h"
#include "costmodel/network/message.h"
#include "sim/likeness.h"
#include "sim/lower_inner.h"
#include "sim/lowering.h"
#include "sim/rotation.h"

static bool is_message(const Instruction *instruction) {
    return instruction->kind == INSTRUCTION_SEND || instruction->kind == INSTRUCTION_RECV;
}

static bool is_grouped(const Instruction *instruction) {
    return is_message(instruction) && instruction->p2p_group >= 0;
}

static const Instruction *instruction_at(const Lowering *lowering, int rank, int i) {
    return &lowering->input->program->ranks[rank].instructions[i];
}

// --- First pass: activities

static int route_make(Lowering *lowering, int rank, int peer, int lane, double share_frac) {
    const LowerInput *input = lowering->input;
    double slowdown = ranks_network_slowdown(input->cluster, input->plan, rank, peer) / share_frac;
    int route = dag_add_route(&lowering->builder, &lowering->out->network,
                              lowering_gpu(lowering, rank, lane),
                              lowering_gpu(lowering, peer, lane), slowdown);
    const Pool *pool = plan_rank_machines(input->cluster, input->plan, rank).pool;
    if (pool->wires && ranks_share_domain(input->cluster, input->plan, rank, peer))
        lowering->builder.routes[route].share_bytes_per_s =
            share_frac * ranks_near_bytes_per_s(input->cluster, input->plan, rank, peer);
    return route;
}

static int message_route(Lowering *lowering, int rank, int peer, int lane, double share_frac) {
    if (share_frac != 1) return route_make(lowering, rank, peer, lane, share_frac);
    int num_ranks = lowering->input->program->num_ranks;
    int32_t *route =
        &lowering->message_route[(rank * num_ranks + peer) * lowering->out->num_lanes + lane];
    if (*route == NO_ROUTE) *route = route_make(lowering, rank, peer, lane, 1);
    return *route;
}

// The flow of a SEND: its price is split into the latency, which delays it, and the transfer.
static int message_add(Lowering *lowering, int rank, int lane, const Instruction *send) {
    const LowerInput *input = lowering->input;
    const MessagePrice price = instruction_message_price(input->program, input->prices, rank, send);
    int route = message_route(lowering, rank, send->peer, lane, price.share_frac);
    double bytes = price.transfer_s * lowering->builder.routes[route].share_bytes_per_s;
    return dag_add_flow(&lowering->builder, price.alpha_s, bytes, route);
}

// All messages that a GPU sends, each noted at both its ends.
static void lane_add_messages(Lowering *lowering, int rank, int lane) {
    for (int i = 0; i < lowering->input->program->ranks[rank].num_instructions; i++) {
        const Instruction *send = instruction_at(lowering, rank, i);
        if (send->kind != INSTRUCTION_SEND) continue;
        int here = lowering_slot(lowering, rank, lane, i);
        int there = lowering_slot(lowering, send->peer, lane, send->match);
        int node = message_add(lowering, rank, lane, send);
        lowering->message_node[rank][here] = node;
        lowering->message_node[send->peer][there] = node;
    }
}

// The n-th collective of a queue among the pipeline ranks.
static void pipeline_collective_add(Lowering *lowering, int rank, int lane, int i, int queue,
                                    int n) {
    const LowerInput *input = lowering->input;
    const int num_ranks = input->program->num_ranks;
    const int slot = lowering_slot(lowering, rank, lane, i);
    int32_t *begin = &lowering->out->begin_node[rank][slot];
    int32_t *end = &lowering->out->end_node[rank][slot];
    const int place = (queue * lowering->max_meetings + n) * lowering->out->num_lanes + lane;
    if (rank == 0) {
        int *gpus = ARENA_ARRAY(lowering->arena, num_ranks, int);
        int *places = ARENA_ARRAY(lowering->arena, num_ranks, int);
        for (int r = 0; r < num_ranks; r++) {
            gpus[r] = lowering_gpu(lowering, r, lane);
            places[r] = r;
        }
        const int collective = instruction_at(lowering, rank, i)->collective;
        const Members members = {.num = num_ranks, .gpus = gpus, .places = places};
        collective_lower(lowering, collective, &members, begin, end);
        lowering->meeting[place][0] = *begin;
        lowering->meeting[place][1] = *end;
    }
    *begin = lowering->meeting[place][0];
    *end = lowering->meeting[place][1];
}

bool collective_is_timer(const LowerInput *input, const ProgramCollective *what) {
    if (group_base_kind(what->group) != GROUP_TP) return false;
    if (input->inner && input->inner->is_disturbed) return false;
    const Pool *pool = &input->cluster->pools[what->pool];
    return group_layout(pool, plan_group(input->plan, what->group)).num_domains == 1;
}

static const int *group_firsts(Lowering *lowering, GroupKind kind) {
    const int **firsts = &lowering->group_first[kind];
    const Group group = plan_lane_group(lowering->input->plan, kind);
    if (!*firsts) *firsts = lanes_group_firsts(&lowering->out->lanes, group, lowering->arena);
    return *firsts;
}

// The lanes that share a collective with `first`, the first of them.
static Members members_find(Lowering *lowering, GroupKind kind, int rank, int first) {
    const Lanes *lanes = &lowering->out->lanes;
    const int *firsts = group_firsts(lowering, kind);
    const Group group = plan_lane_group(lowering->input->plan, kind);
    int num = 0;
    for (int lane = first; lane < lanes->num_lanes; lane++) num += firsts[lane] == first;
    int *gpus = ARENA_ARRAY(lowering->arena, num, int);
    int *places = ARENA_ARRAY(lowering->arena, num, int);
    int *replicas = ARENA_ARRAY(lowering->arena, num, int);
    for (int lane = first, k = 0; k < num; lane++) {
        if (firsts[lane] != first) continue;
        gpus[k] = lowering_gpu(lowering, rank, lane);
        replicas[k] = lanes->replica[lane];
        places[k] = replica_place(lanes, group, replicas[k]);
        k++;
    }
    return (Members){num, gpus, places, replicas, rank};
}

// The activities of a collective are made once, when its first member comes by. Of those that a
// GPU stands for there is but one.
static void collective_add(Lowering *lowering, int rank, int lane, int i) {
    int collective = instruction_at(lowering, rank, i)->collective;
    GroupKind kind = lowering->input->program->collectives[collective].group;
    int32_t *begin = lowering->out->begin_node[rank], *end = lowering->out->end_node[rank];
    int slot = lowering_slot(lowering, rank, lane, i);
    int first = group_firsts(lowering, kind)[lane];
    if (first != lane) {
        begin[slot] = begin[lowering_slot(lowering, rank, first, i)];
        end[slot] = end[lowering_slot(lowering, rank, first, i)];
        return;
    }
    if (collective_is_timer(lowering->input, &lowering->input->program->collectives[collective])) {
        const double price_s = lowering->input->prices->collective_s[collective];
        begin[slot] = end[slot] = dag_add_timer(&lowering->builder, price_s);
        return;
    }
    const Members members = members_find(lowering, kind, rank, lane);
    collective_lower(lowering, collective, &members, &begin[slot], &end[slot]);
}

// A group of messages begins at one meeting point and ends at another.
static void message_group_add(Lowering *lowering, int rank, int lane, int i, int *open_group) {
    const Instruction *instruction = instruction_at(lowering, rank, i);
    int slot = lowering_slot(lowering, rank, lane, i);
    int32_t *begin = lowering->out->begin_node[rank], *end = lowering->out->end_node[rank];
    if (instruction->p2p_group == *open_group) {
        begin[slot] = begin[slot - 1];
        end[slot] = end[slot - 1];
        return;
    }
    *open_group = instruction->p2p_group;
    begin[slot] = dag_add_timer(&lowering->builder, 0);
    end[slot] = dag_add_timer(&lowering->builder, 0);
}

// Its activities are those of all that meet inside it.
static void computation_add(Lowering *lowering, int rank, int lane, int i) {
    int32_t *begin = lowering->out->begin_node[rank], *end = lowering->out->end_node[rank];
    int first = lowering_first_lane(lowering, lane), slot = lowering_slot(lowering, rank, lane, i);
    if (first == lane) {
        inner_lower(lowering, rank, lane, instruction_at(lowering, rank, i), &begin[slot],
                    &end[slot]);
        return;
    }
    begin[slot] = begin[lowering_slot(lowering, rank, first, i)];
    end[slot] = end[lowering_slot(lowering, rank, first, i)];
}

static void lane_add_activities(Lowering *lowering, int rank, int lane) {
    int32_t *begin = lowering->out->begin_node[rank], *end = lowering->out->end_node[rank];
    int open_group = -1, num_joined[NUM_PIPELINE_QUEUES] = {0};
    for (int i = 0; i < lowering->input->program->ranks[rank].num_instructions; i++) {
        const Instruction *instruction = instruction_at(lowering, rank, i);
        int slot = lowering_slot(lowering, rank, lane, i);
        int queue = program_pipeline_queue(lowering->input->program, instruction);
        if (queue > 0) {
            pipeline_collective_add(lowering, rank, lane, i, queue, num_joined[queue]++);
        } else if (is_grouped(instruction)) {
            message_group_add(lowering, rank, lane, i, &open_group);
        } else if (is_message(instruction)) {
            begin[slot] = end[slot] = lowering->message_node[rank][slot];
        } else if (instruction->kind == INSTRUCTION_COLLECTIVE) {
            collective_add(lowering, rank, lane, i);
        } else {
            computation_add(lowering, rank, lane, i);
        }
    }
}

// --- Second pass: who waits for whom

// Instructions of one queue begin in their order: the streams, then asynchronous sends in either
// direction, then collectives among the pipeline ranks. An asynchronous receive waits for nothing
// but its message.
enum {
    QUEUE_SEND_FORWARD = NUM_STREAMS,
    QUEUE_SEND_BACKWARD,
    QUEUE_PIPELINE,
    NUM_QUEUES = QUEUE_PIPELINE + NUM_PIPELINE_QUEUES,
    NO_QUEUE = -1
};

static int queue_of(const Program *program, const Instruction *instruction) {
    int queue = program_pipeline_queue(program, instruction);
    if (queue > 0) return QUEUE_PIPELINE + queue;
    if (!is_message(instruction)) return instruction->stream;
    if (is_grouped(instruction)) return STREAM_PP;
    if (instruction->kind == INSTRUCTION_RECV) return NO_QUEUE;
    return instruction->phase == PHASE_FORWARD ? QUEUE_SEND_FORWARD : QUEUE_SEND_BACKWARD;
}

static void lane_add_waits(Lowering *lowering, int rank, int lane) {
    const int32_t *begin = lowering->out->begin_node[rank], *end = lowering->out->end_node[rank];
    DagBuilder *builder = &lowering->builder;
    int base = lowering_slot(lowering, rank, lane, 0);
    int first = lowering_slot(lowering, rank, lowering_first_lane(lowering, lane), 0);
    int last[NUM_QUEUES]; // instruction before on each queue
    for (int queue = 0; queue < NUM_QUEUES; queue++) last[queue] = -1;
    for (int i = 0; i < lowering->input->program->ranks[rank].num_instructions; i++) {
        const Instruction *instruction = instruction_at(lowering, rank, i);
        int slot = base + i, queue = queue_of(lowering->input->program, instruction);
        if (queue == NO_QUEUE) continue;
        int before[3] = {last[queue], instruction->waits[0], instruction->waits[1]};
        for (int k = 0; k < 3; k++) {
            if (before[k] < 0 || begin[base + before[k]] == begin[slot]) continue;
            // What another lane said of both is not said again.
            if (first != base && begin[first + i] == begin[slot] &&
                end[first + before[k]] == end[base + before[k]]) {
                continue;
            }
            dag_add_wait(builder, end[base + before[k]], begin[slot]);
        }
        last[queue] = i;
        if (!is_grouped(instruction)) continue;
        // A message moves when both ends have begun its group, and both groups end after it.
        dag_add_wait(builder, begin[slot], lowering->message_node[rank][slot]);
        dag_add_wait(builder, lowering->message_node[rank][slot], end[slot]);
    }
}

// For who looks at the times, a message of a group begins when it moves.
static void lane_show_messages(Lowering *lowering, int rank, int lane) {
    for (int i = 0; i < lowering->input->program->ranks[rank].num_instructions; i++) {
        if (!is_grouped(instruction_at(lowering, rank, i))) continue;
        int slot = lowering_slot(lowering, rank, lane, i);
        lowering->out->begin_node[rank][slot] = lowering->message_node[rank][slot];
    }
}

// --- The whole

static Status lowering_start(Lowering *lowering) {
    const Program *program = lowering->input->program;
    Lowered *out = lowering->out;
    Arena *arena = lowering->builder.arena;
    out->begin_node = ARENA_ARRAY(arena, program->num_ranks, int32_t *);
    out->end_node = ARENA_ARRAY(arena, program->num_ranks, int32_t *);
    lowering->message_node = ARENA_ARRAY(lowering->arena, program->num_ranks, int32_t *);
    double num_slots = 0;
    for (int rank = 0; rank < program->num_ranks; rank++) {
        num_slots += (double)out->num_lanes * program->ranks[rank].num_instructions;
    }
    if (num_slots > MAX_ACTIVITIES) {
        return status_error(STATUS_INVALID,
                            "%.0f instructions on %d simulated GPUs are too many to simulate; at "
                            "most %d are possible",
                            num_slots, program->num_ranks * out->num_lanes, MAX_ACTIVITIES);
    }
    for (int rank = 0; rank < program->num_ranks; rank++) {
        size_t slots = (size_t)out->num_lanes * (size_t)program->ranks[rank].num_instructions;
        out->begin_node[rank] = ARENA_ARRAY(arena, slots, int32_t);
        out->end_node[rank] = ARENA_ARRAY(arena, slots, int32_t);
        lowering->message_node[rank] = ARENA_ARRAY(lowering->arena, slots, int32_t);
    }
    for (int queue = 1; queue < NUM_PIPELINE_QUEUES; queue++) {
        int num = program_num_meetings(program, queue);
        if (num > lowering->max_meetings) lowering->max_meetings = num;
    }
    size_t num_places =
        NUM_PIPELINE_QUEUES * (size_t)lowering->max_meetings * (size_t)out->num_lanes;
    lowering->meeting = arena_array(lowering->arena, num_places, sizeof *lowering->meeting);
    size_t num_pairs =
        (size_t)program->num_ranks * (size_t)program->num_ranks * (size_t)out->num_lanes;
    lowering->message_route = ARENA_ARRAY(lowering->arena, num_pairs, int32_t);
    for (size_t i = 0; i < num_pairs; i++) lowering->message_route[i] = NO_ROUTE;
    return status_ok();
}

// Everything but the network, which is there.
static Status lowering_run(Lowering *lowering) {
    TRY(lowering_start(lowering));
    inner_start(lowering);
    void (*const passes[])(Lowering *, int, int) = {lane_add_messages, lane_add_activities,
                                                    lane_add_waits, lane_show_messages};
    for (size_t pass = 0; pass < sizeof passes / sizeof *passes; pass++) {
        for (int rank = 0; rank < lowering->input->program->num_ranks; rank++) {
            for (int lane = 0; lane < lowering->out->num_lanes; lane++)
                passes[pass](lowering, rank, lane);
        }
    }
    lowering->out->dag = dag_finish(&lowering->builder);
    return status_ok();
}

Status program_lower(const LowerInput *input, const Folding *folding, bool stepwise, Arena *arena,
                     Lowered *out) {
    const Program *program = input->program;
    *out = (Lowered){
        .network = network_build(input->cluster, folding->num_folded, arena),
        .lanes = folding_lanes(folding, program, arena),
    };
    out->num_lanes = out->lanes.num_lanes;
    Rotation rotation = {program->num_ranks, program->multiplicity, program->block_gpus,
                         folding->period};
    if (folding->likeness) {
        network_merge(&out->network, input, folding->likeness, arena);
    } else if (folding->period < program->multiplicity) {
        network_rotate(&out->network, &rotation, arena);
    }
    Arena scratch = {0};
    Lowering lowering = {
        .input = input,
        .arena = &scratch,
        .stepwise = stepwise,
        .first_lane = lanes_meeting_firsts(&out->lanes, input->plan, &scratch),
        .group_first = ARENA_ARRAY(&scratch, plan_num_group_kinds(input->plan), const int *),
        .out = out,
        .builder = {.arena = arena},
    };
    Status status = lowering_run(&lowering);
    arena_free(&scratch);
    return status;
}
