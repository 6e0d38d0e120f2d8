#include "planner/group_costs.h"

#include "costmodel/memory.h"
#include "costmodel/message.h"
#include "workload/program_sync.h"

#include <math.h>

GroupPricing group_pricing_start(const Scenario *scenario) {
    return (GroupPricing){.scenario = scenario, .pieces = {.scenario = scenario}};
}

void group_pricing_free(GroupPricing *pricing) {
    pieces_free(&pricing->pieces);
    for (int i = 0; i < GROUP_PRICING_KINDS; i++) arena_free(&pricing->kinds[i].arena);
}

static bool splits_backward(const Plan *plan) {
    return plan_schedule_traits(plan).splits_backward;
}

bool group_plan_is_staged(const Plan *plan) {
    return plan->vpp == 1 && !plan->schedule_file && !plan_schedule_traits(plan).mixes_backwards;
}

// --- Times of layers

double group_step_s(const Scenario *scenario) {
    return scenario->training.stack.host_step_s * part_factor(scenario, PART_HOST);
}

static const WorkKind PASS_WORK[2][NUM_PASSES] = {
    {WORK_FORWARD, WORK_BACKWARD, NUM_WORK_KINDS},
    {WORK_FORWARD, WORK_BACKWARD_INPUT, WORK_BACKWARD_WEIGHT},
};

// A group by itself, and what its blocks are priced from.
typedef struct {
    Scenario own;
    const Plan *plan;
    const Workload *workload;
    BlockPrices *prices;
} GroupBlocks;

static int block_number(const Workload *workload, const Block *block) {
    return (int)(block - workload->blocks);
}

static PassPrice layer_price(const GroupBlocks *g, WorkKind work, int layer) {
    const Workload *w = g->workload;
    const int kind = g->own.model.layer_kind[layer];
    const bool whole = g->plan->recompute_layers == ABSENT;
    const bool recomputed = whole && g->plan->recompute != RECOMPUTE_NONE;
    const Block *block = workload_layer_block(w, kind, recomputed);
    PassPrice price =
        block_pass_price(&g->own, g->plan, w, g->prices, work, block_number(w, block));
    if (whole || g->plan->recompute == RECOMPUTE_NONE) return price;
    // Only some of a rank's layers are recomputed: none takes less than the other kind.
    block = workload_layer_block(w, kind, true);
    const PassPrice other =
        block_pass_price(&g->own, g->plan, w, g->prices, work, block_number(w, block));
    return (PassPrice){fmin(price.device_s, other.device_s), fmin(price.host_s, other.host_s)};
}

static void ends_price(const GroupBlocks *g, WorkKind work, StagePass pass, StageMachine *machine) {
    const PassPrice first =
        block_pass_price(&g->own, g->plan, g->workload, g->prices, work, BLOCK_EMBEDDING);
    const PassPrice head =
        block_pass_price(&g->own, g->plan, g->workload, g->prices, work, BLOCK_HEAD);
    const PassPrice mtp =
        block_pass_price(&g->own, g->plan, g->workload, g->prices, work, BLOCK_MTP);
    const int num_mtp = g->own.model.num_mtp_layers;
    machine->first_s[pass] = first.device_s;
    machine->first_host_s[pass] = first.host_s;
    machine->last_s[pass] = head.device_s + num_mtp * mtp.device_s;
    machine->last_host_s[pass] = head.host_s + num_mtp * mtp.host_s;
}

static void machine_price(const GroupBlocks *g, bool split, Arena *arena, StageMachine *machine) {
    const int num_layers = g->own.model.num_layers;
    machine->pass_host_s = pass_host_s(&g->own);
    for (int pass = 0; pass < NUM_PASSES; pass++) {
        const WorkKind work = PASS_WORK[split][pass];
        if (work == NUM_WORK_KINDS) continue;
        double *device_s = ARENA_ARRAY(arena, num_layers + 1, double);
        double *host_s = ARENA_ARRAY(arena, num_layers + 1, double);
        for (int l = 0; l < num_layers; l++) {
            const PassPrice price = layer_price(g, work, l);
            device_s[l + 1] = device_s[l] + price.device_s;
            host_s[l + 1] = host_s[l] + price.host_s;
        }
        machine->device_s[pass] = device_s;
        machine->host_s[pass] = host_s;
        ends_price(g, work, (StagePass)pass, machine);
    }
}

// One micro-batch of the whole model on one rank of these machines.
static double whole_s(const StageMachine *machine, int num_layers) {
    double sum_s = 0;
    for (int pass = 0; pass < NUM_PASSES; pass++)
        if (machine->device_s[pass])
            sum_s += machine->device_s[pass][num_layers] + machine->first_s[pass] +
                     machine->last_s[pass];
    return sum_s;
}

static double part_s(const StageMachine *m, bool split, int part, int num_layers) {
    double sum_s = 0;
    for (int pass = 0; pass < (split ? 3 : 2); pass++)
        sum_s += part < 0             ? m->first_s[pass]
                 : part == num_layers ? m->last_s[pass]
                                      : m->device_s[pass][part + 1] - m->device_s[pass][part];
    return sum_s;
}

// Each part of the model - embedding, layers, head - is done on some group.
static void speeds_set(const Scenario *scenario, bool split, Arena *arena, GroupCosts *costs) {
    const int num_layers = scenario->model.num_layers;
    const int num_groups = cluster_num_groups(&scenario->cluster);
    double *speed = ARENA_ARRAY(arena, num_groups, double);
    for (int g = 0; g < num_groups; g++) speed[g] = 1 / whole_s(&costs->machines[g], num_layers);
    for (int part = -1; part <= num_layers; part++) {
        double least = INFINITY;
        for (int g = 0; g < num_groups; g++)
            least = fmin(least, speed[g] * part_s(&costs->machines[g], split, part, num_layers));
        costs->least_model += least;
    }
    costs->speed = speed;
}

double group_costs_bound_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs) {
    const double n = (double)plan_chunk_microbatches(plan);
    const bool way_back = group_plan_is_staged(plan) && !splits_backward(plan) &&
                          !scenario->training.optimizer_post_validation;
    double sum = 0; // of y_j, j > r
    for (int r = plan->pp - 1; r >= 0; r--) {
        const double speed = costs->speed[plan_rank_group(&scenario->cluster, plan, r)];
        sum += fmax(0, speed - (way_back ? sum : 0)) / n;
    }
    return costs->least_model / sum + group_step_s(scenario);
}

static void first_weights(const Scenario *scenario, const Plan *plan, const Workload *workload,
                          Arena *arena, GroupCosts *costs) {
    const int num_layers = scenario->model.num_layers;
    double *dense = ARENA_ARRAY(arena, num_layers + 1, double);
    double *expert = ARENA_ARRAY(arena, num_layers + 1, double);
    dense[0] = workload->blocks[BLOCK_EMBEDDING].dense_parameters;
    for (int l = 0; l < num_layers; l++) {
        const bool recomputed =
            plan->recompute_layers == ABSENT && plan->recompute != RECOMPUTE_NONE;
        const Block *b = workload_layer_block(workload, scenario->model.layer_kind[l], recomputed);
        dense[l + 1] = dense[l] + b->dense_parameters;
        expert[l + 1] = expert[l] + b->expert_parameters;
    }
    costs->first_dense = dense;
    costs->first_expert = expert;
}

static GroupCosts costs_make(GroupPricing *pricing, const Plan *plan, bool split, Arena *arena) {
    const Scenario *scenario = pricing->scenario;
    const int num_groups = cluster_num_groups(&scenario->cluster);
    const Workload workload = pieces_workload(&pricing->pieces, plan, arena);
    StageMachine *machines = ARENA_ARRAY(arena, num_groups, StageMachine);
    for (int i = 0; i < num_groups; i++) {
        GroupBlocks g = {.own = *scenario, .plan = plan, .workload = &workload};
        g.own.cluster = *cluster_group(&scenario->cluster, i);
        g.prices = block_prices_new(&g.own.cluster, arena);
        machine_price(&g, split, arena, &machines[i]);
    }
    GroupCosts costs = {.machines = machines, .message_bytes = workload.message_bytes};
    speeds_set(scenario, split, arena, &costs);
    first_weights(scenario, plan, &workload, arena, &costs);
    return costs;
}

const GroupCosts *group_costs_of(GroupPricing *pricing, const Plan *plan) {
    const int zero = plan->zero_stage < 2 ? 0 : plan->zero_stage - 1;
    const int kind = zero + 3 * (splits_backward(plan) + 2 * plan_joins_ends(plan));
    Plan *known = &pricing->kinds[kind].plan;
    if (!pricing->kinds[kind].costs.machines || !plans_share_blocks(known, plan)) {
        arena_reset(&pricing->kinds[kind].arena);
        *known = *plan;
        pricing->kinds[kind].costs =
            costs_make(pricing, plan, splits_backward(plan), &pricing->kinds[kind].arena);
    }
    return &pricing->kinds[kind].costs;
}

// --- The problem

// Seconds of a message between two stages, of its latency and of `times` as many bytes.
static double stages_message_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                               int from, int to, double times) {
    const Cluster *cluster = &scenario->cluster;
    const bool near = ranks_share_domain(cluster, plan, from, to);
    double alpha_s;
    const double time_s = ranks_message_s(cluster, plan, from, to, costs->message_bytes, &alpha_s);
    return (alpha_s + (time_s - alpha_s) * times) *
           part_factor(scenario, near ? PART_INSIDE : PART_ACROSS);
}

// What the host does once a step. Where the last gradient of all is the first stage's, then also
// what follows it: gradients of tied embeddings are exchanged with the last stage, and the
// optimizer runs.
static const double *tail_make(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                               Arena *arena) {
    double *tail_s = ARENA_ARRAY(arena, scenario->model.num_layers + 1, double);
    const Gpu *gpu = &cluster_group(&scenario->cluster, 0)->gpu;
    const double tied_bytes = sync_embedding_bytes(scenario, plan);
    const bool ends = !scenario->training.optimizer_post_validation && !splits_backward(plan);
    double once_s = group_step_s(scenario);
    if (ends && tied_bytes > 0)
        once_s += stages_message_s(scenario, plan, costs, plan->pp - 1, 0,
                                   tied_bytes / costs->message_bytes);
    for (int l = 0; l <= scenario->model.num_layers; l++)
        tail_s[l] = once_s + (ends ? optimizer_update_s(scenario, plan, gpu, costs->first_dense[l],
                                                        costs->first_expert[l])
                                   : 0);
    return tail_s;
}

StageProblem group_stage_problem(const Scenario *scenario, const Plan *plan,
                                 const GroupCosts *costs, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const StageMachine **machines = ARENA_ARRAY(arena, plan->pp, const StageMachine *);
    double *message_s = ARENA_ARRAY(arena, plan->pp, double);
    for (int r = 0; r < plan->pp; r++) {
        machines[r] = &costs->machines[plan_rank_group(cluster, plan, r)];
        if (r < plan->pp - 1) message_s[r] = stages_message_s(scenario, plan, costs, r, r + 1, 1);
    }
    return (StageProblem){
        .num_layers = scenario->model.num_layers,
        .num_stages = plan->pp,
        .num_microbatches = (double)plan->num_microbatches,
        .blocking = !program_hides_messages(scenario, plan),
        .together = !scenario->training.optimizer_post_validation,
        .machines = machines,
        .message_s = message_s,
        .tail_s = tail_make(scenario, plan, costs, arena),
    };
}

// --- Memory

typedef struct {
    GroupPricing *pricing;
    const Plan *plan;
    PlanChunk *chunks; // [pp]
    Arena scratch;
} Room;

// Whether the GPUs of a stage have room for layers [from, to).
static bool has_room(Room *room, int stage, int from, int to) {
    const Scenario *scenario = room->pricing->scenario;
    Plan probe = *room->plan;
    probe.chunks = room->chunks;
    room->chunks[stage].first_layer = from < to ? from : 0;
    room->chunks[stage].num_layers = to - from;
    arena_reset(&room->scratch);
    const Workload workload = pieces_workload(&room->pricing->pieces, &probe, &room->scratch);
    return memory_closed_form(scenario, &probe, &workload, stage).counted_bytes <=
           rank_memory_available_bytes(scenario, &probe, stage);
}

// The last end up to which layers from `from` on fit: more never need less.
static int most_from(Room *room, int stage, int from, int num_layers) {
    if (!has_room(room, stage, from, from)) return from - 1;
    int fits = from, misses = num_layers + 1;
    while (misses - fits > 1) {
        const int middle = fits + (misses - fits) / 2;
        if (has_room(room, stage, from, middle))
            fits = middle;
        else
            misses = middle;
    }
    return fits;
}

static const int *stage_room(Room *room, int stage, Arena *arena) {
    const Model *model = &room->pricing->scenario->model;
    int *most = ARENA_ARRAY(arena, model->num_layers + 1, int);
    most[0] = most_from(room, stage, 0, model->num_layers);
    for (int from = 1; from <= model->num_layers; from++) {
        int end = most[from - 1];
        if (model->num_kinds == 1 && most[0] >= 0) {
            end = from + most[0] < model->num_layers ? from + most[0] : model->num_layers;
        } else if (most[0] >= 0) {
            if (end < from) end = from;
            while (end < model->num_layers && has_room(room, stage, from, end + 1)) end++;
        }
        most[from] = end;
    }
    return most;
}

const int *const *group_stage_room(GroupPricing *pricing, const Plan *plan, Arena *arena) {
    const int **most = ARENA_ARRAY(arena, plan->pp, const int *);
    Room room = {.pricing = pricing, .plan = plan};
    room.chunks = ARENA_ARRAY(arena, plan->pp, PlanChunk);
    for (int r = 0; r < plan->pp; r++) {
        room.chunks[r] = plan->chunks[r];
        room.chunks[r].num_layers = 0; // of the others nothing matters
    }
    for (int r = 0; r < plan->pp; r++) {
        most[r] = stage_room(&room, r, arena);
        room.chunks[r].num_layers = 0;
    }
    arena_free(&room.scratch);
    return most;
}

const PlanChunk *group_chunks(const Plan *plan, const int *layers, Arena *arena) {
    PlanChunk *chunks = ARENA_ARRAY(arena, plan->num_chunks, PlanChunk);
    for (int c = 0, layer = 0; c < plan->num_chunks; c++) {
        chunks[c] = plan->chunks[c];
        chunks[c].first_layer = layer;
        chunks[c].num_layers = layers[c];
        layer += layers[c];
    }
    return chunks;
}
