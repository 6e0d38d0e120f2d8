#include "sim/lower_inner.h"

#include "costmodel/network/collective.h"
#include "sim/inner_pattern.h"
#include "sim/lowering.h"

#include <math.h>

// Seconds below this share of a pass are rounding.
static const double ROUNDING = 1e-9;

Inner inner_prepare(const Scenario *scenario, const Plan *plan, const Workload *workload,
                    Arena *arena) {
    Inner inner = {.across = inner_passes(scenario, plan, workload, false, arena)};
    bool *is_disturbed = ARENA_ARRAY(arena, scenario->cluster.num_gpus, bool);
    for (int i = 0; i < scenario->num_disturb; i++) {
        const Disturb *entry = &scenario->disturb[i];
        if (entry->kind != DISTURB_LINK && entry->kind != DISTURB_FLAP) continue;
        if (entry->link.kind != LINK_NVLINK) continue;
        is_disturbed[entry->link.index] = true;
        inner.is_disturbed = is_disturbed;
    }
    if (inner.is_disturbed) inner.all = inner_passes(scenario, plan, workload, true, arena);
    return inner;
}

// Whether those that meet on a lane also play what stays inside domains.
static bool plays_all(const Lowered *lowered, int rank, int lane) {
    return lowered->plays_all && lowered->plays_all[rank * lowered->num_lanes + lane];
}

// What they play of an instruction; NULL where it is a mere timer.
static const InnerPass *pass_of(const LowerInput *input, const Lowered *lowered, int rank, int lane,
                                const Instruction *instruction) {
    if (!input->inner) return NULL;
    bool all = plays_all(lowered, rank, lane);
    return instruction_inner(all ? &input->inner->all : &input->inner->across, instruction);
}

// --- Seconds of a pass, or of one of its pieces

typedef struct {
    double whole_s;
    double device_s; // without what the host takes longer than the device
    double timer_s;  // of that, what is no flow
    double frac;     // of the pass that this piece is
} PassTime;

static PassTime pass_time(const Prices *prices, const InnerPass *pass,
                          const Instruction *instruction, int rank) {
    PassTime out = {.frac = 1.0 / (instruction->num_parts > 0 ? instruction->num_parts : 1)};
    out.whole_s = instruction_compute_s(prices, instruction, rank);
    out.device_s =
        out.whole_s - instruction_price(prices, instruction)->term_s[TERM_OTHER] * out.frac;
    out.timer_s = out.device_s;
    for (int i = 0; i < pass->num; i++) out.timer_s -= pass->list[i].exposed_s * out.frac;
    out.timer_s = fmax(0, out.timer_s);
    return out;
}

double computation_timer_s(const LowerInput *input, const Lowered *lowered, int rank, int lane,
                           const Instruction *instruction) {
    const InnerPass *pass = pass_of(input, lowered, rank, lane, instruction);
    if (!pass) return instruction_compute_s(input->prices, instruction, rank);
    return pass_time(input->prices, pass, instruction, rank).timer_s;
}

int computation_timer(int begin, int end) {
    return begin == end ? begin : begin + 1;
}

// --- Where flows go

struct InnerFlows {
    int *next_lane;         // [num_lanes] that meets this one; -1: none
    int num_patterns;       // 4 of each kind of group
    InnerPattern *patterns; // [num_patterns] of a group of 0: not looked at yet
    int32_t *routes; // [num_ranks][num_patterns][num_lanes] the first of the flow's; NO_ROUTE
};

static int gpu_of(const Lowering *lowering, int rank) {
    return (int)cluster_gpu_of_rank(lowering->input->cluster, rank);
}

static const InnerPattern *pattern_find(Lowering *lowering, const InnerCollective *inner,
                                        bool across) {
    InnerPattern *pattern = &lowering->flows->patterns[inner_pattern_key(inner, across)];
    if (pattern->group.size == 0) {
        *pattern =
            inner_pattern(lowering->input, &lowering->out->network, inner, across, lowering->arena);
    }
    return pattern;
}

// The first of the routes of a lane's flows, which stand one after the other.
static int routes_find(Lowering *lowering, int rank, int lane, const InnerCollective *inner,
                       bool across) {
    const InnerPattern *pattern = pattern_find(lowering, inner, across);
    const int place = rank * lowering->flows->num_patterns + inner_pattern_key(inner, across);
    int32_t *route = &lowering->flows->routes[place * lowering->out->num_lanes + lane];
    if (*route != NO_ROUTE) return *route;
    DagBuilder *builder = &lowering->builder;
    const int from = lowering_rank(lowering, rank, lane);
    *route = builder->num_routes;
    for (int step = pattern->first_step; step <= pattern->last_step; step++) {
        const int to = inner_target(pattern, from, step);
        int added = dag_add_route(builder, &lowering->out->network, gpu_of(lowering, from),
                                  gpu_of(lowering, to), pattern->slowdown);
        builder->routes[added].inner = 1 + (int)inner->group;
        builder->routes[added].share_bytes_per_s /= pattern->last_step - pattern->first_step + 1;
    }
    return *route;
}

// --- Activities of a pass

typedef struct {
    Lowering *lowering;
    int rank, first; // lane of those that meet
    bool plays_all;
    const InnerPass *pass;
    PassTime time;
} PassLowering;

static int after(Lowering *lowering, double delay_s, int before) {
    int node = dag_add_timer(&lowering->builder, delay_s);
    dag_add_wait(&lowering->builder, before, node);
    return node;
}

// The flows of all that meet, each of wire_s.
static void flows_add(const PassLowering *p, const InnerCollective *inner, bool across,
                      double wire_s, int before, int end) {
    Lowering *lowering = p->lowering;
    DagBuilder *builder = &lowering->builder;
    const InnerPattern *pattern = pattern_find(lowering, inner, across);
    for (int lane = p->first; lane >= 0; lane = lowering->flows->next_lane[lane]) {
        int route = routes_find(lowering, p->rank, lane, inner, across);
        for (int step = pattern->first_step; step <= pattern->last_step; step++, route++) {
            double bytes = wire_s * builder->routes[route].share_bytes_per_s;
            int flow = dag_add_flow(builder, 0, bytes, route);
            dag_add_wait(builder, before, flow);
            dag_add_wait(builder, flow, end);
        }
    }
}

// A part of all that a pass moves of one kind.
//   returns the activity that it ends with
static int phase_add(const PassLowering *p, const InnerCollective *inner, double part, int before) {
    DagBuilder *builder = &p->lowering->builder;
    const LowerInput *input = p->lowering->input;
    const GroupLayout layout =
        group_layout(cluster_only_pool(input->cluster), plan_group(input->plan, inner->group));
    // Timers that are on the way of the flows tell whose they are: latency is one for all, and SMs
    // may copy beside the flows.
    const bool across = layout.num_domains > 1;
    const int route = routes_find(p->lowering, p->rank, p->first, inner, across);
    const int end = dag_add_timer(builder, 0);
    const int ready = dag_add_flow(builder, part * inner->latency_s, 0, route);
    dag_add_wait(builder, before, ready);
    if (inner->latency_s + inner->wire_s < inner->time_s * (1 - ROUNDING)) {
        int copy = dag_add_flow(builder, part * inner->time_s, 0, route);
        dag_add_wait(builder, before, copy);
        dag_add_wait(builder, copy, end);
    }
    flows_add(p, inner, across, part * inner->wire_s, ready, end);
    if (p->plays_all && across && layout.ranks_per_domain > 1)
        flows_add(p, inner, false, part * inner->inside_s, ready, end);
    return end;
}

// What runs in a queue beside the computation (or all of the pass, within_s), from its begin on.
// `end` is reached so long after it as it could have been longer.
static void hidden_add(const PassLowering *p, InnerQueue queue, double within_s, int begin,
                       int end) {
    const InnerPass *pass = p->pass;
    double hidden_s = 0;
    for (int i = 0; i < pass->num; i++)
        if (pass->list[i].queue == queue)
            hidden_s += (pass->list[i].time_s - pass->list[i].exposed_s) * p->time.frac;
    if (hidden_s <= ROUNDING * within_s) return;
    // Where it hides behind flows of others as well.
    const double fits = fmin(1, within_s / hidden_s);
    int last = begin;
    for (int i = 0; i < pass->num; i++) {
        const InnerCollective *inner = &pass->list[i];
        double part = (1 - inner->exposed_s / inner->time_s) * p->time.frac * fits;
        if (inner->queue == queue && part > 0) last = phase_add(p, inner, part, last);
    }
    double spare_s = fmax(0, within_s - fmax(pass->window_s[queue] * p->time.frac, hidden_s));
    dag_add_wait(&p->lowering->builder, after(p->lowering, spare_s, last), end);
}

static bool is_hidden(const InnerPass *pass, InnerQueue queue) {
    for (int i = 0; i < pass->num; i++)
        if (pass->list[i].queue == queue &&
            pass->list[i].exposed_s < pass->list[i].time_s * (1 - ROUNDING))
            return true;
    return false;
}

void inner_lower(Lowering *lowering, int rank, int lane, const Instruction *instruction,
                 int32_t *begin, int32_t *end) {
    const Prices *prices = lowering->input->prices;
    PassLowering p = {.lowering = lowering, .rank = rank, .first = lane};
    p.plays_all = plays_all(lowering->out, rank, lane);
    p.pass = pass_of(lowering->input, lowering->out, rank, lane, instruction);
    if (!p.pass) {
        double time_s = instruction_compute_s(prices, instruction, rank);
        *begin = *end = dag_add_timer(&lowering->builder, time_s);
        return;
    }
    p.time = pass_time(prices, p.pass, instruction, rank);
    *begin = dag_add_timer(&lowering->builder, 0);
    int last = after(lowering, p.time.timer_s, *begin);
    *end = dag_add_timer(&lowering->builder, 0);
    int computed = -1;
    for (int queue = INNER_TP; queue <= INNER_EP; queue++) {
        if (!is_hidden(p.pass, (InnerQueue)queue)) continue;
        if (computed < 0) computed = after(lowering, 0, last);
        hidden_add(&p, (InnerQueue)queue, p.time.timer_s, *begin, computed);
    }
    if (computed >= 0) last = computed;
    for (int queue = INNER_HIDDEN; queue < NUM_INNER_QUEUES; queue++)
        hidden_add(&p, (InnerQueue)queue, p.time.device_s, *begin, *end);
    for (int i = 0; i < p.pass->num; i++) {
        const InnerCollective *inner = &p.pass->list[i];
        double part = inner->exposed_s / inner->time_s * p.time.frac;
        if (part > 0) last = phase_add(&p, inner, part, last);
    }
    dag_add_wait(&lowering->builder, last, *end);
    if (p.time.device_s < p.time.whole_s * (1 - ROUNDING))
        dag_add_wait(&lowering->builder, after(lowering, p.time.whole_s, *begin), *end);
}

// --- Before the first of them

static int *meetings_link(const Lowering *lowering) {
    const int num_lanes = lowering->out->num_lanes;
    int *next = ARENA_ARRAY(lowering->arena, num_lanes, int);
    int *last = ARENA_ARRAY(lowering->arena, num_lanes, int);
    for (int lane = 0; lane < num_lanes; lane++) {
        int first = lowering_first_lane(lowering, lane);
        next[lane] = -1;
        if (first != lane) next[last[first]] = lane;
        last[first] = lane;
    }
    return next;
}

// Of which meetings a GPU's port is disturbed, by their first lane.
static const bool *plays_all_find(const Lowering *lowering) {
    const bool *is_disturbed = lowering->input->inner->is_disturbed;
    if (!is_disturbed) return NULL;
    const int num_ranks = lowering->input->program->num_ranks, lanes = lowering->out->num_lanes;
    bool *out = ARENA_ARRAY(lowering->builder.arena, (size_t)num_ranks * (size_t)lanes, bool);
    for (int rank = 0; rank < num_ranks; rank++)
        for (int lane = 0; lane < lanes; lane++)
            out[rank * lanes + lowering_first_lane(lowering, lane)] |=
                is_disturbed[lowering_gpu(lowering, rank, lane)];
    return out;
}

void inner_start(Lowering *lowering) {
    if (!lowering->input->inner) return;
    struct InnerFlows *flows = lowering->flows = ARENA_NEW(lowering->arena, struct InnerFlows);
    flows->num_patterns = 4 * plan_num_group_kinds(lowering->input->plan);
    flows->patterns = ARENA_ARRAY(lowering->arena, flows->num_patterns, InnerPattern);
    const size_t num_routes = (size_t)lowering->input->program->num_ranks *
                              (size_t)flows->num_patterns * (size_t)lowering->out->num_lanes;
    flows->next_lane = meetings_link(lowering);
    flows->routes = ARENA_ARRAY(lowering->arena, num_routes, int32_t);
    for (size_t i = 0; i < num_routes; i++) flows->routes[i] = NO_ROUTE;
    lowering->out->plays_all = plays_all_find(lowering);
}
