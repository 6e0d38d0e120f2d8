#include "costmodel/memory/held_messages.h"

#include "workload/step/program.h"

static MessageWay way_between(const Plan *plan, int chunk, int other) {
    return plan_chunk_rank(plan, chunk) == plan_chunk_rank(plan, other) ? WAY_LOCAL : WAY_MESSAGE;
}

// The first chunk of a model needs no other's output, the last one no other's gradient.
static void ways_find(const Plan *plan, int chunk, ItemWays *ways) {
    const int num_stages = plan_num_stages(plan), stage = chunk % num_stages;
    const MessageWay before = stage > 0 ? way_between(plan, chunk, chunk - 1) : WAY_NONE;
    const MessageWay behind =
        stage < num_stages - 1 ? way_between(plan, chunk, chunk + 1) : WAY_NONE;
    ways[WORK_FORWARD] = (ItemWays){.in = before, .out = behind};
    ways[WORK_BACKWARD] = (ItemWays){.in = behind, .out = before};
    ways[WORK_BACKWARD_INPUT] = ways[WORK_BACKWARD];
    ways[WORK_BACKWARD_WEIGHT] = (ItemWays){WAY_NONE, WAY_NONE};
}

HeldMessages *held_messages(const Scenario *scenario, const Plan *plan, const Workload *workload,
                            int rank, Arena *arena, HeldMessages *start) {
    if (plan->vocab_barriers) return NULL;
    ItemWays(*ways)[NUM_WORK_KINDS] = arena_alloc(arena, (size_t)plan->num_chunks * sizeof *ways);
    for (int k = 0; k < plan->vpp; k++) {
        const int chunk = plan_rank_chunk(plan, rank, k);
        ways_find(plan, chunk, ways[chunk]);
    }
    *start = (HeldMessages){.ways = (const ItemWays(*)[NUM_WORK_KINDS])ways,
                            .beside = program_hides_messages(scenario, plan),
                            .each_bytes = workload->boundary_bytes};
    return start;
}

void message_receive(HeldMessages *m, int chunk, WorkKind kind) {
    m->num_held += m->ways[chunk][kind].in == WAY_MESSAGE;
}

void message_take(HeldMessages *m, int chunk, WorkKind kind) {
    m->num_held -= m->ways[chunk][kind].in != WAY_NONE;
    m->sent_just_now = false;
}

void message_make(HeldMessages *m, int chunk, WorkKind kind) {
    m->num_held += m->ways[chunk][kind].out != WAY_NONE;
}

void message_send(HeldMessages *m, int chunk, WorkKind kind) {
    if (m->ways[chunk][kind].out != WAY_MESSAGE) return;
    if (!m->beside) { // it has left when the step ends
        m->num_held--;
        return;
    }
    if (!m->sent_just_now) {
        m->num_held -= m->num_sent;
        m->num_sent = 0;
    }
    m->num_sent++;
    m->sent_just_now = true;
}
