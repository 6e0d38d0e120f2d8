#include "planner/stages/group_costs.h"

#include "costmodel/network/message.h"
#include "plan/layer_plans.h"
#include "workload/step/program_sync.h"
#include "workload/technique/technique.h"

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
    return scenario->execution.stack.launch.host_step_s *
           part_factor(scenario->calibration, PART_HOST);
}

static const WorkKind PASS_WORK[2][NUM_PASSES] = {
    {WORK_FORWARD, WORK_BACKWARD, NUM_WORK_KINDS},
    {WORK_FORWARD, WORK_BACKWARD_INPUT, WORK_BACKWARD_WEIGHT},
};

// A group by itself, and what its blocks are priced from.
typedef struct {
    const Model *model;
    const Plan *plan;
    const Workload *workload;
    BlockPrices *prices;
    PricingContext context;
} GroupBlocks;

static int block_number(const Workload *workload, const Block *block) {
    return (int)(block - workload->blocks);
}

static PassPrice price_of(const GroupBlocks *g, WorkKind work, const Block *block) {
    return block_pass_price(&g->context, g->workload, g->prices, work,
                            block_number(g->workload, block));
}

// Of an item of the chain, where a stage does not recompute it.
//   again  what it takes more where it is one of the first layers of a stage, which are
static PassPrice item_price(const GroupBlocks *g, WorkKind work, int item, PassPrice *again) {
    const Workload *w = g->workload;
    const Model *model = g->model;
    *again = (PassPrice){0, 0};
    const int kind = model->layer_kind[model->num_front_layers + item];
    const PassPrice other = price_of(g, work, workload_layer_block(w, kind, PLAN_OWN));
    if (!plan_recomputes_first(g->plan)) return other;
    const PassPrice price = price_of(g, work, workload_layer_block(w, kind, PLAN_KEPT));
    *again =
        (PassPrice){fmax(0, other.device_s - price.device_s), fmax(0, other.host_s - price.host_s)};
    return (PassPrice){fmin(price.device_s, other.device_s), fmin(price.host_s, other.host_s)};
}

static void ends_price(const GroupBlocks *g, WorkKind work, StagePass pass, StageMachine *machine) {
    const PassPrice first =
        block_pass_price(&g->context, g->workload, g->prices, work, BLOCK_EMBEDDING);
    const PassPrice head = block_pass_price(&g->context, g->workload, g->prices, work, BLOCK_HEAD);
    const PassPrice mtp = block_pass_price(&g->context, g->workload, g->prices, work, BLOCK_MTP);
    machine->first_s[pass] = first.device_s;
    machine->first_host_s[pass] = first.host_s;
    const int num_mtp = g->model->num_mtp_layers;
    PassPrice again;
    for (int l = 0; l < g->model->num_front_layers; l++) {
        const PassPrice layer = item_price(g, work, l - g->model->num_front_layers, &again);
        machine->first_s[pass] += layer.device_s;
        machine->first_host_s[pass] += layer.host_s;
    }
    machine->last_s[pass] = head.device_s + num_mtp * mtp.device_s;
    machine->last_host_s[pass] = head.host_s + num_mtp * mtp.host_s;
}

static void machine_price(const GroupBlocks *g, bool split, int num_items, Arena *arena,
                          StageMachine *machine) {
    const bool some = plan_recomputes_first(g->plan);
    machine->pass_host_s = pass_host_s(g->context.execution, g->context.calibration);
    for (int pass = 0; pass < NUM_PASSES; pass++) {
        const WorkKind work = PASS_WORK[split][pass];
        if (work == NUM_WORK_KINDS) continue;
        double *sums[4];
        for (int i = 0; i < 4; i++) sums[i] = ARENA_ARRAY(arena, num_items + 1, double);
        for (int l = 0; l < num_items; l++) {
            PassPrice again;
            const PassPrice price = item_price(g, work, l, &again);
            sums[0][l + 1] = sums[0][l] + price.device_s;
            sums[1][l + 1] = sums[1][l] + price.host_s;
            sums[2][l + 1] = sums[2][l] + again.device_s;
            sums[3][l + 1] = sums[3][l] + again.host_s;
        }
        machine->device_s[pass] = sums[0];
        machine->host_s[pass] = sums[1];
        if (some) machine->again_s[pass] = sums[2];
        if (some) machine->again_host_s[pass] = sums[3];
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
    const int num_layers = costs->num_items;
    const int num_groups = scenario->cluster.num_pools;
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
                          step_traits(&scenario->execution).begins_together;
    double sum = 0; // of y_j, j > r
    for (int r = plan->pp - 1; r >= 0; r--) {
        const double speed = costs->speed[plan_rank_pool(&scenario->cluster, plan, r)];
        sum += fmax(0, speed - (way_back ? sum : 0)) / n;
    }
    return costs->least_model / sum + group_step_s(scenario);
}

static void first_weights(const Scenario *scenario, const Workload *workload, Arena *arena,
                          GroupCosts *costs) {
    const int num_items = costs->num_items, num_front = scenario->model.num_front_layers;
    double *dense = ARENA_ARRAY(arena, num_items + 1, double);
    double *expert = ARENA_ARRAY(arena, num_items + 1, double);
    dense[0] = workload->blocks[BLOCK_EMBEDDING].dense_parameters;
    for (int l = 0; l < num_items; l++) {
        const Block *b =
            workload_layer_block(workload, scenario->model.layer_kind[num_front + l], PLAN_OWN);
        dense[l + 1] = dense[l] + b->dense_parameters;
        expert[l + 1] = expert[l] + b->expert_parameters;
    }
    costs->first_dense = dense;
    costs->first_expert = expert;
}

static int num_items_of(const GroupPricing *pricing) {
    return model_own_layers(&pricing->scenario->model);
}

static GroupCosts costs_make(GroupPricing *pricing, const Plan *plan, bool split, Arena *arena) {
    const Scenario *scenario = pricing->scenario;
    const int num_groups = scenario->cluster.num_pools;
    const Workload workload = pieces_workload(&pricing->pieces, plan, arena);
    StageMachine *machines = ARENA_ARRAY(arena, num_groups, StageMachine);
    for (int i = 0; i < num_groups; i++) {
        GroupBlocks g = {.model = &scenario->model, .plan = plan, .workload = &workload};
        g.context = pricing_context(scenario, plan, i, arena);
        g.prices = block_prices_of_pool(pieces_block_prices(&pricing->pieces, plan), i);
        machine_price(&g, split, num_items_of(pricing), arena, &machines[i]);
    }
    GroupCosts costs = {.machines = machines,
                        .num_items = num_items_of(pricing),
                        .least_load = ARENA_NEW(arena, LeastLoad),
                        .message_bytes = workload.message_bytes};
    speeds_set(scenario, split, arena, &costs);
    first_weights(scenario, &workload, arena, &costs);
    group_messages_make(scenario, plan, arena, &costs);
    return costs;
}

const GroupCosts *group_costs_of(GroupPricing *pricing, const Plan *plan) {
    const int zero = plan->zero_stage < 2 ? 0 : plan_zero_level(plan) - 1;
    const int recompute = 2 * (int)plan->recompute + (plan->recompute_layers >= 0);
    const int kind =
        zero + 4 * (splits_backward(plan) + 2 * (plan_joins_ends(plan) + 2 * recompute));
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
           part_factor(scenario->calibration, near ? PART_INSIDE : PART_ACROSS);
}

void group_messages_make(const Scenario *scenario, const Plan *plan, Arena *arena,
                         GroupCosts *costs) {
    double *message_s = ARENA_ARRAY(arena, plan->pp, double);
    double *behind_s = ARENA_ARRAY(arena, plan->pp, double);
    for (int r = plan->pp - 2; r >= 0; r--) {
        message_s[r] = stages_message_s(scenario, plan, costs, r, r + 1, 1);
        behind_s[r] = behind_s[r + 1] + 2 * message_s[r];
    }
    costs->message_s = message_s;
    costs->behind_message_s = behind_s;
}

// Whether the last gradient of all is the first stage's.
static bool first_stage_ends(const Scenario *scenario, const Plan *plan) {
    return step_traits(&scenario->execution).begins_together && !splits_backward(plan);
}

// What the host does once a step. Where the last gradient is the first stage's, then also what
// follows it: gradients of tied embeddings are exchanged with the last stage, and the optimizer
// runs.
static double tail_once_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs) {
    const double once_s = group_step_s(scenario);
    const double tied_bytes = sync_embedding_bytes(scenario, plan);
    if (!first_stage_ends(scenario, plan) || tied_bytes <= 0) return once_s;
    return once_s + stages_message_s(scenario, plan, costs, plan->pp - 1, 0,
                                     tied_bytes / costs->message_bytes);
}

static double first_update_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                             int num_first_items) {
    if (!first_stage_ends(scenario, plan)) return 0;
    return optimizer_update_s(
        scenario, plan, &plan_rank_machines(&scenario->cluster, plan, 0).pool->gpu,
        costs->first_dense[num_first_items], costs->first_expert[num_first_items]);
}

double group_tail_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                    int num_first_items) {
    return tail_once_s(scenario, plan, costs) +
           first_update_s(scenario, plan, costs, num_first_items);
}

static const double *tail_make(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                               Arena *arena) {
    double *tail_s = ARENA_ARRAY(arena, costs->num_items + 1, double);
    const double once_s = tail_once_s(scenario, plan, costs);
    for (int l = 0; l <= costs->num_items; l++)
        tail_s[l] = once_s + first_update_s(scenario, plan, costs, l);
    return tail_s;
}

bool group_runs_one_ahead(const Scenario *scenario, const Plan *plan) {
    const Schedule *schedule = schedule_find(plan->schedule);
    return step_traits(&scenario->execution).begins_together && schedule &&
           schedule->runs_one_ahead && !plan->vocab_barriers && scenario->cluster.num_pools == 1;
}

StageProblem group_stage_problem(const Scenario *scenario, const Plan *plan,
                                 const GroupCosts *costs, Arena *arena) {
    const Cluster *cluster = &scenario->cluster;
    const StageMachine **machines = ARENA_ARRAY(arena, plan->pp, const StageMachine *);
    for (int r = 0; r < plan->pp; r++)
        machines[r] = &costs->machines[plan_rank_pool(cluster, plan, r)];
    const bool together = step_traits(&scenario->execution).begins_together;
    return (StageProblem){
        .num_layers = costs->num_items,
        .num_stages = plan->pp,
        .num_microbatches = (double)plan->num_microbatches,
        .blocking = !program_hides_messages(scenario, plan),
        .together = together,
        .one_forward_ahead = group_runs_one_ahead(scenario, plan),
        .num_again = plan_recomputes_first(plan) ? plan->recompute_layers : 0,
        .machines = machines,
        .message_s = costs->message_s,
        .behind_message_s = costs->behind_message_s,
        .tail_s = tail_make(scenario, plan, costs, arena),
    };
}

// --- Chunks of a chain

PlanChunk chain_chunk(const GroupPricing *pricing, const Plan *plan, int c, int from, int to) {
    const int num_front = pricing->scenario->model.num_front_layers;
    PlanChunk chunk = plan->chunks[c];
    chunk.first_layer = c == 0 ? 0 : num_front + from;
    chunk.num_layers = to - from + (c == 0 ? num_front : 0);
    return chunk;
}

const PlanChunk *chain_chunks(const GroupPricing *pricing, const Plan *plan, const int *items,
                              Arena *arena) {
    PlanChunk *chunks = ARENA_ARRAY(arena, plan->num_chunks, PlanChunk);
    for (int c = 0, from = 0; c < plan->num_chunks; from += items[c++])
        chunks[c] = chain_chunk(pricing, plan, c, from, from + items[c]);
    return chunks;
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
