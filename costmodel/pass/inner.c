#include "costmodel/pass/inner.h"

#include "costmodel/network/collective.h"
#include "costmodel/network/exchange.h"
#include "costmodel/pass/list_price.h"
#include "plan/layer_plans.h"

#include <assert.h>
#include <math.h>

enum { MAX_INNER = 12 }; // of one block

// So many times as long, no collective is hidden behind anything for more than all there is.
static const double BEYOND_HIDING = 1e6;

// One list of a block, and what is found out about it.
typedef struct {
    OpList list;
    ListPrice price;
    OpRun runs[MAX_LIST_OPS];
    InnerCollective *inner[MAX_LIST_OPS]; // what each operator is part of; NULL: nothing
    double beside_s[MAX_INNER];           // of pass->list, what runs beside the whole list
    InnerPass *pass;
} ListInner;

static InnerQueue queue_of(const Op *op) {
    if (op->stream == STREAM_DP) return INNER_SHARDS;
    if (op_beside(op) == BESIDE_MICROBATCH) return INNER_HIDDEN;
    return op->stream == STREAM_EP ? INNER_EP : op->stream == STREAM_CP ? INNER_CP : INNER_TP;
}

static bool runs_beside(InnerQueue queue) {
    return queue == INNER_HIDDEN || queue == INNER_SHARDS;
}

static InnerPass pass_new(int capacity, Arena *arena) {
    return (InnerPass){.list = ARENA_ARRAY(arena, capacity, InnerCollective), .capacity = capacity};
}

// The collective of a pass that has what another has of group, queue and pattern; a new one where
// there is none.
static InnerCollective *pass_find(InnerPass *pass, const InnerCollective *what) {
    for (int i = 0; i < pass->num; i++) {
        InnerCollective *known = &pass->list[i];
        if (known->group == what->group && known->queue == what->queue &&
            known->all_to_all == what->all_to_all)
            return known;
    }
    assert(pass->num < pass->capacity);
    InnerCollective *added = &pass->list[pass->num++];
    *added = (InnerCollective){
        .group = what->group, .queue = what->queue, .all_to_all = what->all_to_all};
    return added;
}

static void collective_note(ListInner *l, int i, bool inside) {
    const Op *op = &l->list.ops[i];
    const PricingContext *context = l->list.context;
    if (op->kind != OP_COLLECTIVE || !(l->list.phases & 1 << op->phase)) return;
    const Group group = context_group(context, op->collective.group);
    if (group.size == 1 || op->collective.message_bytes <= 0) return;
    if (!inside && group_layout(context->machines.pool, group).num_domains == 1) return;
    const InnerCollective what = {
        .group = op->collective.group,
        .queue = queue_of(op),
        .all_to_all = op->collective.kind == COLLECTIVE_ALL_TO_ALL ||
                      op->collective.kind == COLLECTIVE_DISPATCH ||
                      op->collective.kind == COLLECTIVE_COMBINE,
    };
    InnerCollective *inner = l->inner[i] = pass_find(l->pass, &what);
    const WireTime wire = op_wire_time(context, op);
    const double factor =
        part_factor(context->calibration, group_part(context->machines.pool, group));
    inner->time_s += wire.time_s * factor;
    inner->latency_s += wire.latency_s * factor;
    inner->wire_s += wire.wire_s * factor;
    inner->inside_s += wire.inside_s * factor;
    if (op->stream == STREAM_DP && op->collective.beside == BESIDE_NOTHING)
        inner->exposed_s += wire.time_s * factor;
    else if (runs_beside(inner->queue))
        l->beside_s[inner - l->pass->list] += wire.time_s * factor;
}

// --- What is exposed

// What has no time of its own ends with the operator before it.
static int ran_before(const ListInner *l, int i) {
    for (; i >= 0; i--) {
        const Op *op = &l->list.ops[i];
        if (l->list.phases & 1 << op->phase && op->stream != STREAM_DP &&
            op_beside(op) != BESIDE_MICROBATCH)
            break;
    }
    return i;
}

// Charges the idle time [from_s, to_s) that an operator ended to it and to what it waited for.
static void idle_charge(ListInner *l, double from_s, double to_s, int i) {
    for (i = ran_before(l, i); i >= 0 && to_s > from_s; i = ran_before(l, l->runs[i].before)) {
        const double start_s = fmin(to_s, l->runs[i].start_s);
        if (l->inner[i]) l->inner[i]->exposed_s += to_s - fmax(from_s, start_s);
        to_s = start_s;
    }
}

static double end_s(const ListInner *l, Stream stream) {
    const int last = l->price.last[stream];
    return last >= 0 ? l->runs[last].end_s : 0;
}

static void exposed_find(ListInner *l) {
    for (int i = 0; i < l->list.num_ops; i++) {
        const OpRun *run = &l->runs[i];
        if (l->list.ops[i].stream == STREAM_COMPUTE && run->start_s > run->free_s)
            idle_charge(l, run->free_s, run->start_s, run->before);
    }
    double done_s = end_s(l, STREAM_COMPUTE);
    for (int stream = STREAM_TP; stream <= STREAM_EP; stream++) {
        const double stream_s = end_s(l, (Stream)stream);
        idle_charge(l, done_s, stream_s, l->price.last[stream]);
        done_s = fmax(done_s, stream_s);
    }
}

// What runs beside the whole list and outlasts it, by how long each takes.
static void beside_find(ListInner *l, InnerQueue queue) {
    double all_s = 0;
    for (int i = 0; i < l->pass->num; i++)
        if (l->pass->list[i].queue == queue) all_s += l->beside_s[i];
    if (all_s <= 0) return;
    const double out_frac = fmax(0, all_s - l->price.busy_s) / all_s;
    for (int i = 0; i < l->pass->num; i++)
        if (l->pass->list[i].queue == queue)
            l->pass->list[i].exposed_s += l->beside_s[i] * out_frac;
    l->pass->window_s[queue] = l->price.busy_s;
}

// --- What it can hide behind

static void window_find(ListInner *l, InnerQueue queue) {
    double all_s = 0, exposed_s = 0, factors[MAX_LIST_OPS];
    for (int i = 0; i < l->pass->num; i++) {
        if (l->pass->list[i].queue != queue) continue;
        all_s += l->pass->list[i].time_s;
        exposed_s += l->pass->list[i].exposed_s;
    }
    if (all_s - exposed_s <= 1e-9 * all_s) return;
    for (int i = 0; i < l->list.num_ops; i++)
        factors[i] = l->inner[i] && l->inner[i]->queue == queue ? BEYOND_HIDING : 1;
    OpList longer = l->list;
    longer.factors = factors;
    longer.runs = NULL;
    const double longer_s = list_price(&longer).serial_s - (l->price.serial_s - exposed_s);
    l->pass->window_s[queue] = fmax(all_s - exposed_s, BEYOND_HIDING * all_s - longer_s);
}

static void list_inner(const OpList *list, bool inside, InnerPass *out) {
    ListInner l = {.list = *list, .pass = out};
    for (int i = 0; i < list->num_ops; i++) collective_note(&l, i, inside);
    if (out->num == 0) return;
    l.list.runs = l.runs;
    l.price = list_price(&l.list);
    exposed_find(&l);
    beside_find(&l, INNER_HIDDEN);
    beside_find(&l, INNER_SHARDS);
    for (int queue = INNER_TP; queue <= INNER_EP; queue++) window_find(&l, (InnerQueue)queue);
    out->edge_s = l.price.edge_s;
}

// --- Chunks

static void pass_add(InnerPass *sum, const InnerPass *part, double times) {
    for (int i = 0; i < part->num; i++) {
        InnerCollective *into = pass_find(sum, &part->list[i]);
        into->time_s += times * part->list[i].time_s;
        into->latency_s += times * part->list[i].latency_s;
        into->wire_s += times * part->list[i].wire_s;
        into->inside_s += times * part->list[i].inside_s;
        into->exposed_s += times * part->list[i].exposed_s;
    }
    for (int queue = 0; queue < NUM_INNER_QUEUES; queue++)
        sum->window_s[queue] += times * part->window_s[queue];
}

// The first gather and the last scatter of a pass have nothing to hide behind.
static void edge_add(InnerPass *pass, double edge_s) {
    double shards_s = 0;
    for (int i = 0; i < pass->num; i++)
        if (pass->list[i].queue == INNER_SHARDS) shards_s += pass->list[i].time_s;
    for (int i = 0; i < pass->num; i++) {
        InnerCollective *one = &pass->list[i];
        if (one->queue == INNER_SHARDS) one->exposed_s += edge_s * one->time_s / shards_s;
        one->exposed_s = fmin(one->exposed_s, one->time_s);
    }
}

// Those of each sharding and, there and back, of each change of layout.
static int chunk_capacity(const Plan *plan) {
    const int *spans, num_spans = plan_layout_spans(plan, &spans);
    return MAX_INNER * plan_num_shardings(plan) + 4 * num_spans;
}

static InnerPass *phase_inner(const Scenario *scenario, const Plan *plan, const Workload *workload,
                              int phases, bool inside, Arena *arena) {
    const bool forward = phases == 1 << PHASE_FORWARD;
    Arena scratch = {0};
    const PricingContext context = pricing_context(scenario, plan, 0, &scratch);
    InnerPass *blocks = ARENA_ARRAY(&scratch, workload->num_blocks, InnerPass);
    for (int i = 0; i < workload->num_blocks; i++) {
        const Block *b = &workload->blocks[i];
        blocks[i] = pass_new(MAX_INNER, &scratch);
        const OpList list = {
            .context = &context,
            .ops = forward ? b->forward : b->backward,
            .num_ops = forward ? b->num_forward : b->num_backward,
            .num_forward = b->num_forward,
            .phases = phases,
        };
        list_inner(&list, inside, &blocks[i]);
    }
    InnerPass *chunks = ARENA_ARRAY(arena, workload->num_chunks, InnerPass);
    for (int c = 0; c < workload->num_chunks; c++) {
        double edge_s = 0;
        chunks[c] = pass_new(chunk_capacity(plan), arena);
        for (int i = 0; i < workload->num_blocks; i++) {
            const int count = workload->chunks[c].num_blocks[i];
            if (count == 0) continue;
            pass_add(&chunks[c], &blocks[i], count);
            edge_s = fmax(edge_s, blocks[i].edge_s);
        }
        edge_add(&chunks[c], edge_s);
    }
    arena_free(&scratch);
    return chunks;
}

InnerPasses inner_passes(const Scenario *scenario, const Plan *plan, const Workload *workload,
                         bool inside, Arena *arena) {
    const int input = 1 << PHASE_BACKWARD_INPUT, weight = 1 << PHASE_BACKWARD_WEIGHT;
    InnerPass *whole = phase_inner(scenario, plan, workload, input | weight, inside, arena);
    InnerPasses out = {
        .forward = phase_inner(scenario, plan, workload, 1 << PHASE_FORWARD, inside, arena),
        .backward = whole,
        .backward_input = phase_inner(scenario, plan, workload, input, inside, arena),
        .backward_weight = phase_inner(scenario, plan, workload, weight, inside, arena),
    };
    for (int c = 0; c < workload->num_chunks; c++) {
        if (!backward_is_parts(plan, c)) continue;
        whole[c] = pass_new(chunk_capacity(plan), arena);
        pass_add(&whole[c], &out.backward_input[c], 1);
        pass_add(&whole[c], &out.backward_weight[c], 1);
    }
    return out;
}

const InnerPass *instruction_inner(const InnerPasses *passes, const Instruction *instruction) {
    const InnerPass *chunks = NULL;
    switch (instruction->kind) {
    case INSTRUCTION_FORWARD:
        chunks = passes->forward;
        break;
    case INSTRUCTION_BACKWARD:
        chunks = passes->backward;
        break;
    case INSTRUCTION_BACKWARD_INPUT:
        chunks = passes->backward_input;
        break;
    case INSTRUCTION_BACKWARD_WEIGHT:
        chunks = passes->backward_weight;
        break;
    default:
        return NULL;
    }
    const InnerPass *pass = &chunks[instruction->chunk];
    return pass->num > 0 ? pass : NULL;
}
