// A collective across domains is played as the cost model prices it
// (costmodel/network/collective.c): the ring enters and leaves a domain once per channel, the
// channels spread over the NICs of all the group's members there, and what moves inside the domain
// moves at the same time.
#include "sim/lower_wires.h"

#include "costmodel/network/collective.h"
#include "costmodel/network/leaf_links.h"

#include <math.h>

// One direction of flows: member i sends to member next(i), steps times in turn.
typedef struct {
    int num_steps;
    double step_delay_s;
    double step_s;   // of the transfer, at the estimate's share of the network
    double slowdown; // of that share, by links between sites
} RingPass;

// The steps of a ring, as the cost model counts them.
static int ring_steps(CollectiveKind kind, int num_ranks) {
    if (kind == COLLECTIVE_ALL_TO_ALL) return 1;
    return kind == COLLECTIVE_ALL_REDUCE ? 2 * (num_ranks - 1) : num_ranks - 1;
}

int ring_next(int i, int num_ranks, int ranks_per_domain, bool across) {
    if (across) return (i + ranks_per_domain) % num_ranks;
    int first = i / ranks_per_domain * ranks_per_domain;
    int size = first + ranks_per_domain < num_ranks ? ranks_per_domain : num_ranks - first;
    return first + (i - first + 1) % size;
}

// The GPU at a place of the group of a member.
static int member_gpu_at(const Lowering *lowering, const Members *members, Group group, int i,
                         int place) {
    if (!members->replicas) return members->gpus[place];
    const Lanes *lanes = &lowering->out->lanes;
    const int replica = replica_at_place(lanes, group, members->replicas[i], place);
    const LowerInput *input = lowering->input;
    return (int)cluster_gpu_of_rank(
        input->cluster, program_gpu(input->program, members->rank, replica * lanes->num_folded));
}

// Adds the flows of one pass between begin and end: those of the members that are played. In what
// follows on a step, member i stands for all whose places differ by multiples of their number
// (sim/rotation.h; other folds are not played step by step).
//   next      [num] the places that they send to
//   next_gpu  [num] the same
static void ring_add(Lowering *lowering, const Members *members, const int *next,
                     const int *next_gpu, const RingPass *pass, int begin, int end) {
    DagBuilder *builder = &lowering->builder;
    const int num_played = members->num;
    // Nodes of a step are neighbours in the order of their senders.
    int first = builder->num_nodes;
    for (int step = 0; step < pass->num_steps; step++) {
        for (int i = 0; i < num_played; i++) {
            int route = step > 0 ? builder->nodes[first + i].route
                                 : dag_add_route(builder, &lowering->out->network, members->gpus[i],
                                                 next_gpu[i], pass->slowdown);
            double bytes = pass->step_s * builder->routes[route].share_bytes_per_s;
            dag_add_flow(builder, pass->step_delay_s, bytes, route);
        }
    }
    for (int step = 0; step < pass->num_steps; step++) {
        for (int i = 0; i < num_played; i++) {
            int node = first + step * num_played + i;
            if (step == 0) dag_add_wait(builder, begin, node);
            if (step == pass->num_steps - 1) {
                dag_add_wait(builder, node, end);
            } else {
                dag_add_wait(builder, node, node + num_played);
                dag_add_wait(builder, node, first + (step + 1) * num_played + next[i] % num_played);
            }
        }
    }
}

// How long the links inside a domain are busy with a collective that spans several: what the
// cost model's price of the part inside says without latency, for the bytes of the whole ring.
static double inside_s(Machines machines, CollectiveKind kind, Group group, RankSpan ranks,
                       int inside, double message_bytes) {
    Group part = {inside, group.stride};
    double busy_s = span_collective_s(machines, kind, part, ranks, message_bytes) -
                    span_collective_s(machines, kind, part, ranks, 1);
    double whole = 1.0 - 1.0 / group.size, of_part = 1.0 - 1.0 / inside;
    bool ring = kind != COLLECTIVE_ALL_TO_ALL && kind != COLLECTIVE_BROADCAST;
    return ring ? busy_s * whole / of_part : busy_s;
}

void collective_lower(Lowering *lowering, int collective, const Members *members, int32_t *begin,
                      int32_t *end) {
    const LowerInput *input = lowering->input;
    const ProgramCollective *what = &input->program->collectives[collective];
    const Machines machines = cluster_machines(input->cluster, what->pool);
    double price_s = input->prices->collective_s[collective];
    *begin = dag_add_timer(&lowering->builder, 0);
    *end = dag_add_timer(&lowering->builder, 0);
    Group group = plan_group(input->plan, what->group);
    GroupLayout layout = group_layout(machines.pool, group);
    double calls = what->num_calls;
    const RankSpan ranks = program_collective_ranks(input->plan, what, machines.pool);
    double delay_s =
        fmin(price_s, calls * span_collective_s(machines, what->kind, group, ranks, 1));
    double transfer_s = price_s - delay_s;
    double slowdown = network_slowdown(machines, what->kind, group, layout.ranks_per_domain, ranks);

    int inside = layout.ranks_per_domain;
    int *next = ARENA_ARRAY(lowering->arena, members->num, int);
    int *next_gpu = ARENA_ARRAY(lowering->arena, members->num, int);
    Group lane_group = group;
    if (members->replicas) lane_group = plan_lane_group(input->plan, what->group);
    for (int across = 0; across < 2; across++) {
        if (across ? layout.num_domains == 1 : inside == 1) continue;
        double busy_s = transfer_s;
        if (!across && layout.num_domains > 1) {
            busy_s = inside_s(machines, what->kind, group, ranks, inside, what->message_bytes);
            busy_s = fmin(calls * busy_s, transfer_s);
        }
        int num_steps = lowering->stepwise ? ring_steps(what->kind, group.size) : 1;
        if (!across && machines.pool->wires) {
            const WiresPass wires = {
                what->kind, {inside, group.stride}, members->gpus,      members->num,
                num_steps,  delay_s / num_steps,    busy_s / num_steps, ranks};
            wires_lower(lowering, machines.pool, &wires, *begin, *end);
            continue;
        }
        RingPass pass = {num_steps, delay_s / num_steps, busy_s / num_steps, slowdown};
        for (int i = 0; i < members->num; i++) {
            next[i] = ring_next(members->places[i], group.size, inside, across);
            next_gpu[i] = member_gpu_at(lowering, members, lane_group, i, next[i]);
        }
        ring_add(lowering, members, next, next_gpu, &pass, *begin, *end);
    }
}
