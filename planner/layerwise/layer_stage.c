#include "planner/layerwise/layer_stage.h"

#include "costmodel/memory/memory.h"
#include "costmodel/memory/memory_interval.h"
#include "plan/layer_plans.h"
#include "workload/pass/bytes.h"
#include "workload/pass/layout.h"
#include "workload/step/program_vocab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- The menu

enum { MAX_SHAPES = 128 };

// Placeholders for the gradients of layers, one for each shape (costmodel/memory/memory_static.c).
static double placeholder_bytes(const Scenario *scenario, const Workload *workload) {
    if (scenario->execution.stack.training.weight_gradient != WEIGHT_GRADIENT_PLACEHOLDER) return 0;
    double m[MAX_SHAPES], n[MAX_SHAPES], bytes = 0;
    int num = 0;
    for (int k = 0; k < scenario->model.num_kinds; k++) {
        const Block *b = workload_layer_block(workload, k, PLAN_OWN);
        for (int i = 0; i < b->num_backward && num < MAX_SHAPES; i++) {
            const Op *op = &b->backward[i];
            int same = 0;
            if (op->placeholder_bytes <= 0) continue;
            while (same < num && (m[same] != op->gemm.m || n[same] != op->gemm.n)) same++;
            if (same < num) continue;
            m[num] = op->gemm.m;
            n[num++] = op->gemm.n;
            bytes += op->placeholder_bytes;
        }
    }
    return bytes;
}

static double gather_buffer_bytes(const Scenario *scenario, const Workload *workload) {
    double most = 0;
    for (int k = 0; k < scenario->model.num_kinds; k++) {
        const Block *b = workload_layer_block(workload, k, PLAN_OWN);
        for (int i = 0; i < b->num_forward; i++) most = fmax(most, b->forward[i].lasting_bytes);
    }
    return most;
}

// What the allocator has to hold that much less of, for the communicators of a layout.
static double communicator_bytes(const Scenario *scenario, const Plan *plan) {
    const GroupKind kinds[] = {GROUP_TP, GROUP_CP, GROUP_DP};
    const Stack *stack = &scenario->execution.stack;
    double bytes = 0;
    for (int i = 0; i < 3; i++)
        if (plan_group(plan, kinds[i]).size > 1) bytes += stack->residency.comm_bytes_per_group;
    return bytes / (1 + stack->residency.allocator_slack_frac * CACHED_NEEDED_FRAC);
}

// Numbers the layouts; *first is the first strategy of each.
static int layouts_number(const Plan *plans, int num_plans, int *layout, int *first) {
    int num = 0;
    for (int s = 0; s < num_plans; s++) {
        int c = 0;
        while (c < num && !plans_layouts_are_alike(&plans[first[c]], &plans[s])) c++;
        if (c == num) first[num++] = s;
        layout[s] = c;
    }
    return num;
}

// Seconds per micro-batch of the change from one layout to another and of its gradient back, of a
// plan in which the ranks that it is among are tp's.
static double change_s(const Scenario *scenario, const Plan *from, const Plan *to, Arena *scratch) {
    if (plans_layouts_are_alike(from, to)) return 0;
    Plan among = *from;
    among.tp = plans_layout_span(from, to);
    among.cp = 1;
    const Block block = layout_change_block(scenario, from, to, GROUP_TP, scratch);
    const PricingContext context = pricing_context(scenario, &among, 0, scratch);
    return layer_pass_price(&context, &block, true, &(double){0}).time_s +
           layer_pass_price(&context, &block, false, &(double){0}).time_s;
}

static void layouts_price(LayerMenu *menu, const int *first, Arena *arena) {
    const int num = menu->num_layouts;
    double *bytes = ARENA_ARRAY(arena, num, double);
    double *changes = ARENA_ARRAY(arena, num * num, double);
    for (int a = 0; a < num; a++) {
        const Plan *plan = &menu->plans[first[a]];
        const Workload *workload = &menu->workloads[first[a]];
        bytes[a] = placeholder_bytes(&menu->scenario, workload) +
                   gather_buffer_bytes(&menu->scenario, workload) +
                   communicator_bytes(&menu->scenario, plan);
        for (int b = 0; b < num; b++)
            changes[a * num + b] = change_s(&menu->scenario, plan, &menu->plans[first[b]], arena);
    }
    menu->layout_bytes = bytes;
    menu->change_s = changes;
}

LayerMenu layer_menu(const Scenario *scenario, const Plan *plans, int num_plans, Arena *arena) {
    const int num_kinds = scenario->model.num_kinds;
    LayerMenu menu = {.scenario = *scenario, .plans = plans, .num_strategies = num_plans};
    menu.scenario.execution.stack.training.keeps_gradients = true;
    Workload *workloads = ARENA_ARRAY(arena, num_plans, Workload);
    LayerCost *costs = ARENA_ARRAY(arena, num_plans * num_kinds, LayerCost);
    for (int s = 0; s < num_plans; s++) {
        workloads[s] = workload_build(scenario, &plans[s], arena);
        for (int k = 0; k < num_kinds; k++)
            costs[s * num_kinds + k] =
                layer_cost(scenario, &plans[s], workload_layer_block(&workloads[s], k, PLAN_OWN));
    }
    menu.workloads = workloads;
    menu.costs = costs;
    int *layout = ARENA_ARRAY(arena, num_plans, int), *first = ARENA_ARRAY(arena, num_plans, int);
    menu.num_layouts = layouts_number(plans, num_plans, layout, first);
    menu.layout = layout;
    layouts_price(&menu, first, arena);
    return menu;
}

// --- The problem of a stage

typedef struct {
    const LayerMenu *menu;
    const Plan *base;
    const Workload *workload; // of the base
    int base_index, num_kinds;
    double in_flight, num_microbatches;
    LayerCost edges[3]; // embedding, MTP layer, head under the base; one that is not there is zero
    double *time_s, *lasts, *saved, *peak, *gathered, *edge_s; // [num_layers][num_strategies]
    int num_layers;
    LayerStage stage;
} StageBuilder;

enum { EDGE_EMBEDDING, EDGE_MTP, EDGE_HEAD };

static void cell_set(StageBuilder *b, int row, int strategy, const LayerCost *cost) {
    const int i = row * b->menu->num_strategies + strategy;
    b->time_s[i] = layer_step_s(cost, b->num_microbatches);
    b->lasts[i] = cost->state_bytes + (b->in_flight - 1) * cost->saved_bytes;
    b->saved[i] = cost->saved_bytes;
    b->peak[i] = cost->peak_bytes;
    b->gathered[i] = cost->gathered;
    b->edge_s[i] = cost->edge_s;
    // What ZeRO 3 does not give back after the forward stays gathered.
    if (cost->gathered > 0 && !b->base->reshard_after_forward)
        b->lasts[i] += cost->gathered * gathered_weight_bytes(&b->menu->scenario.execution);
}

// A row that runs under the base only. What ZeRO 3 gathers of an embedding or head is no level.
static void edge_row(StageBuilder *b, int edge) {
    const int first = b->num_layers * b->menu->num_strategies;
    for (int s = 0; s < b->menu->num_strategies; s++) b->time_s[first + s] = INFINITY;
    cell_set(b, b->num_layers++, b->base_index, &b->edges[edge]);
    if (edge != EDGE_MTP) b->gathered[first + b->base_index] = 0;
}

static void rows_build(StageBuilder *b, const PlanChunk *chunk) {
    const Model *model = &b->menu->scenario.model;
    edge_row(b, EDGE_EMBEDDING);
    b->stage.first_row = b->num_layers;
    b->stage.first_layer = chunk->first_layer;
    b->stage.num_rows = chunk->num_layers;
    for (int l = 0; l < chunk->num_layers; l++, b->num_layers++)
        for (int s = 0; s < b->menu->num_strategies; s++)
            cell_set(b, b->num_layers, s,
                     &b->menu->costs[s * b->num_kinds + model->layer_kind[chunk->first_layer + l]]);
    for (int i = 0; i < chunk->num_mtp; i++) edge_row(b, EDGE_MTP);
    edge_row(b, EDGE_HEAD);
}

static void edges_price(StageBuilder *b, const PlanChunk *chunk) {
    const Scenario *scenario = &b->menu->scenario;
    const Block *blocks = b->workload->blocks;
    if (chunk->embedding)
        b->edges[EDGE_EMBEDDING] = layer_cost(scenario, b->base, &blocks[BLOCK_EMBEDDING]);
    if (chunk->num_mtp) b->edges[EDGE_MTP] = layer_cost(scenario, b->base, &blocks[BLOCK_MTP]);
    if (chunk->loss) b->edges[EDGE_HEAD] = layer_cost(scenario, b->base, &blocks[BLOCK_HEAD]);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Levels are the sizes of layers that ZeRO 3 gathers. Two such layers are held, or one and the
// embedding or head, and the gradients of one (costmodel/memory/memory_static.c).
static void levels_build(StageBuilder *b, Arena *arena) {
    const Scenario *scenario = &b->menu->scenario;
    LayerwiseProblem *p = &b->stage.problem;
    const int cells = b->num_layers * b->menu->num_strategies;
    double *sizes = ARENA_ARRAY(arena, cells + 1, double);
    int num = 1; // nothing is gathered
    memcpy(sizes + 1, b->gathered, (size_t)cells * sizeof *sizes);
    qsort(sizes, (size_t)cells + 1, sizeof *sizes, compare_doubles);
    for (int i = 1; i <= cells; i++)
        if (sizes[i] > sizes[num - 1]) sizes[num++] = sizes[i];
    const double edge = fmax(b->edges[EDGE_EMBEDDING].gathered, b->edges[EDGE_HEAD].gathered);
    const double weight = gathered_weight_bytes(&scenario->execution);
    const double gradient = reduced_gradient_bytes(&scenario->execution);
    double *bytes = ARENA_ARRAY(arena, num, double), *level_s = ARENA_ARRAY(arena, num, double);
    int *level = ARENA_ARRAY(arena, cells, int);
    for (int k = 0; k < num; k++) {
        const double held =
            b->base->reshard_after_forward ? fmax(2 * sizes[k], sizes[k] + edge) : 0;
        bytes[k] = held * weight + fmax(sizes[k], edge) * gradient;
        for (int i = 0; i < cells; i++) {
            if (b->gathered[i] == sizes[k]) level[i] = k;
            if (b->gathered[i] <= sizes[k] && isfinite(b->time_s[i]))
                level_s[k] = fmax(level_s[k], b->edge_s[i] * b->num_microbatches);
        }
    }
    p->num_levels = num;
    p->level = level;
    p->level_s = level_s;
    p->level_bytes = bytes;
}

static void changes_build(StageBuilder *b, Arena *arena) {
    const LayerMenu *menu = b->menu;
    LayerwiseProblem *p = &b->stage.problem;
    const int num = menu->num_layouts;
    double *time_s = ARENA_ARRAY(arena, num * num, double);
    double *bytes = ARENA_ARRAY(arena, num * num, double);
    for (int from = 0; from < num; from++)
        for (int to = 0; to < num; to++) {
            time_s[from * num + to] = menu->change_s[from * num + to] * b->num_microbatches;
            if (from != to && to != menu->layout[b->base_index])
                bytes[from * num + to] = menu->layout_bytes[to];
        }
    p->num_layouts = num;
    p->layout = menu->layout;
    p->reshard_s = time_s;
    p->reshard_bytes = bytes;
}

// The limit, from the account of the base throughout.
static void limit_set(StageBuilder *b, int rank, Arena *arena) {
    const Scenario *scenario = &b->menu->scenario;
    LayerStage *stage = &b->stage;
    int *strategy = ARENA_ARRAY(arena, b->num_layers, int);
    for (int l = 0; l < b->num_layers; l++) strategy[l] = b->base_index;
    const RankMemory account = memory_closed_form(scenario, b->base, b->workload, rank);
    stage->slack_frac =
        scenario->execution.stack.residency.allocator_slack_frac * CACHED_NEEDED_FRAC;
    stage->counted_factor = account.counted_bytes / account.needs_bytes;
    stage->outside_bytes = account.device_bytes - account.reserved_bytes;
    stage->available_bytes = rank_memory_available_bytes(scenario, b->base, rank);
    stage->beside_bytes = (account.needs_bytes - stage->outside_bytes) / (1 + stage->slack_frac) -
                          layerwise_memory_bytes(&stage->problem, strategy);
    stage->problem.limit_bytes =
        (stage->available_bytes / stage->counted_factor - stage->outside_bytes) /
            (1 + stage->slack_frac) -
        stage->beside_bytes;
}

LayerStage layer_stage(const LayerMenu *menu, int base, int rank, Arena *arena) {
    const PlanChunk *chunk = &menu->plans[base].chunks[rank];
    StageBuilder b = {.menu = menu,
                      .base = &menu->plans[base],
                      .workload = &menu->workloads[base],
                      .base_index = base,
                      .num_kinds = menu->scenario.model.num_kinds};
    const ScheduleShape shape = program_shape(&menu->scenario, b.base, b.workload);
    b.in_flight = schedule_find(b.base->schedule)->in_flight(&shape, rank);
    b.num_microbatches = (double)b.base->num_microbatches;
    const int cells = (chunk->num_layers + chunk->num_mtp + 2) * menu->num_strategies;
    double **const tables[] = {&b.time_s, &b.lasts, &b.saved, &b.peak, &b.gathered, &b.edge_s};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i] = ARENA_ARRAY(arena, cells, double);
    edges_price(&b, chunk);
    rows_build(&b, chunk);
    b.stage.problem = (LayerwiseProblem){.num_layers = b.num_layers,
                                         .num_strategies = menu->num_strategies,
                                         .time_s = b.time_s,
                                         .lasts_bytes = b.lasts,
                                         .saved_bytes = b.saved,
                                         .peak_bytes = b.peak};
    levels_build(&b, arena);
    changes_build(&b, arena);
    limit_set(&b, rank, arena);
    return b.stage;
}

double layer_stage_counted_bytes(const LayerStage *stage, double memory_bytes) {
    return ((memory_bytes + stage->beside_bytes) * (1 + stage->slack_frac) + stage->outside_bytes) *
           stage->counted_factor;
}
