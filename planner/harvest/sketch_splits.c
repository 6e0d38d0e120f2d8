#include "planner/harvest/sketch_splits.h"

#include "planner/harvest/sketch_held.h"
#include "planner/stages/last_fit.h"
#include "planner/stages/split_bound.h"
#include "workload/pass/block.h"

#include <math.h>

// Sums in another order: a bound counts as above a limit, a floor as a miss, only beyond their
// rounding.
static const double ROUNDING_FRAC = 1e-9;

// --- The chain

// Of a layer, what it takes and keeps where it is not of the first that are recomputed.
static double layer_sum(const SketchShape *shape, int kind, int sum) {
    const int i = SKETCH_FIRST_LAYER + kind;
    return fmin(shape->kept[i].sums[sum], shape->recomputed[i].sums[sum]);
}

static double *sums_make(const Scenario *scenario, const SketchShape *shape, int sum,
                         Arena *arena) {
    const Model *model = &scenario->model;
    const int num_items = model_own_layers(model);
    double *sums = ARENA_ARRAY(arena, num_items + 1, double);
    for (int l = 0; l < num_items; l++)
        sums[l + 1] =
            sums[l] + layer_sum(shape, model->layer_kind[model->num_front_layers + l], sum);
    return sums;
}

// What each item takes more where it is recomputed.
static double *again_make(const Scenario *scenario, const SketchShape *shape, int sum,
                          Arena *arena) {
    const Model *model = &scenario->model;
    const int num_items = model_own_layers(model);
    double *sums = ARENA_ARRAY(arena, num_items + 1, double);
    for (int l = 0; l < num_items; l++) {
        const int kind = model->layer_kind[model->num_front_layers + l];
        const double whole = shape->recomputed[SKETCH_FIRST_LAYER + kind].sums[sum];
        sums[l + 1] = sums[l] + whole - layer_sum(shape, kind, sum);
    }
    return sums;
}

// Items keep what they do where none are recomputed; of the first layers that are, no more.
static void saved_make(const Scenario *scenario, const SketchShape *shape, Arena *arena,
                       SketchChain *out) {
    const Model *model = &scenario->model;
    double *saved = ARENA_ARRAY(arena, out->costs.num_items + 1, double);
    double *again = ARENA_ARRAY(arena, out->costs.num_items + 1, double);
    for (int l = 0; l < out->costs.num_items; l++) {
        const int i = SKETCH_FIRST_LAYER + model->layer_kind[model->num_front_layers + l];
        const double kept = shape->kept[i].sums[SKETCH_SAVED_BYTES];
        saved[l + 1] = saved[l] + kept;
        again[l + 1] = again[l] + fmin(0, shape->recomputed[i].sums[SKETCH_SAVED_BYTES] - kept);
    }
    out->saved_bytes = saved;
    out->again_bytes = shape->recomputed != shape->kept ? again : NULL;
}

static void ends_make(const Scenario *scenario, const SketchShape *shape, Arena *arena,
                      SketchChain *out) {
    const Model *model = &scenario->model;
    double *first = ARENA_ARRAY(arena, NUM_SKETCH_SUMS, double);
    double *last = ARENA_ARRAY(arena, NUM_SKETCH_SUMS, double);
    for (int sum = 0; sum < NUM_SKETCH_SUMS; sum++) {
        first[sum] = shape->ends[SKETCH_EMBEDDING].sums[sum];
        for (int l = 0; l < model->num_front_layers; l++)
            first[sum] += layer_sum(shape, model->layer_kind[l], sum);
        last[sum] = shape->ends[SKETCH_HEAD].sums[sum];
        if (model->num_mtp_layers > 0)
            last[sum] += model->num_mtp_layers * shape->ends[SKETCH_MTP].sums[sum];
    }
    out->first = first;
    out->last = last;
}

// Layers of which some may be recomputed hold what falls with their number.
static void peaks_make(const Scenario *scenario, const SketchShape *shape, SketchChain *out) {
    const bool some = shape->recomputed != shape->kept;
    out->backward_peak_bytes = some ? 0 : INFINITY;
    for (int kind = 0; kind < scenario->model.num_kinds && !some; kind++)
        out->backward_peak_bytes = fmin(out->backward_peak_bytes,
                                        shape->kept[SKETCH_FIRST_LAYER + kind].backward_peak_bytes);
    out->head_peak_bytes = shape->ends[SKETCH_HEAD].backward_peak_bytes;
}

static void machine_make(const Scenario *scenario, const SketchShape *shape, Arena *arena,
                         SketchChain *out) {
    static const int DEVICE[] = {SKETCH_FORWARD_S, SKETCH_BACKWARD_S};
    static const int HOST[] = {SKETCH_FORWARD_HOST_S, SKETCH_BACKWARD_HOST_S};
    StageMachine *machine = ARENA_NEW(arena, StageMachine);
    machine->pass_host_s = pass_host_s(&scenario->execution, scenario->calibration);
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
        machine->device_s[pass] = sums_make(scenario, shape, DEVICE[pass], arena);
        machine->host_s[pass] = sums_make(scenario, shape, HOST[pass], arena);
        if (out->again_bytes) {
            machine->again_s[pass] = again_make(scenario, shape, DEVICE[pass], arena);
            machine->again_host_s[pass] = again_make(scenario, shape, HOST[pass], arena);
        }
        machine->first_s[pass] = out->first[DEVICE[pass]];
        machine->first_host_s[pass] = out->first[HOST[pass]];
        machine->last_s[pass] = out->last[DEVICE[pass]];
        machine->last_host_s[pass] = out->last[HOST[pass]];
    }
    out->costs.machines = machine;
}

// The weights of a first stage's rank, of which the optimizer is part of its step.
static const double *weights_behind(const double *parameters, double first, int num_items,
                                    Arena *arena) {
    double *sums = ARENA_ARRAY(arena, num_items + 1, double);
    for (int l = 0; l <= num_items; l++) sums[l] = first + parameters[l];
    return sums;
}

void sketch_chain(const Scenario *scenario, const Plan *plan, const SketchShape *shape,
                  Arena *arena, SketchChain *out) {
    const int num_items = model_own_layers(&scenario->model);
    *out = (SketchChain){.costs = {.num_items = num_items}};
    out->dense_parameters = sums_make(scenario, shape, SKETCH_DENSE_PARAMETERS, arena);
    out->expert_parameters = sums_make(scenario, shape, SKETCH_EXPERT_PARAMETERS, arena);
    saved_make(scenario, shape, arena, out);
    ends_make(scenario, shape, arena, out);
    peaks_make(scenario, shape, out);
    machine_make(scenario, shape, arena, out);
    out->costs.first_dense = weights_behind(
        out->dense_parameters, shape->ends[SKETCH_EMBEDDING].sums[SKETCH_DENSE_PARAMETERS],
        num_items, arena);
    out->costs.first_expert = out->expert_parameters;
    out->costs.message_bytes = workload_message_bytes(scenario, plan);
    out->costs.least_load = ARENA_NEW(arena, LeastLoad);
    group_messages_make(scenario, plan, arena, &out->costs);
}

// --- Time

// Forward and backward of a micro-batch through the whole model, and the largest part that the
// forward has of any block.
typedef struct {
    double there_s, back_s, forward_frac;
} Passes;

static void passes_add(Passes *p, int num, double there_s, double back_s) {
    if (num == 0 || there_s <= 0) return;
    p->there_s += num * there_s;
    p->back_s += num * back_s;
    p->forward_frac = fmax(p->forward_frac, there_s / (there_s + back_s));
}

static Passes passes_of(const Model *model, const SketchShape *shape) {
    static const int ENDS[] = {SKETCH_EMBEDDING, SKETCH_HEAD, SKETCH_MTP};
    const int num_ends[] = {1, 1, model->num_mtp_layers};
    int num_layers[MODEL_MAX_LAYER_KINDS] = {model->num_layers};
    Passes passes = {0, 0, 0};
    for (int l = 0; l < model->num_layers && model->num_kinds > 1; l++) {
        if (l == 0) num_layers[0] = 0;
        num_layers[model->layer_kind[l]]++;
    }
    for (int kind = 0; kind < model->num_kinds; kind++)
        passes_add(&passes, num_layers[kind], layer_sum(shape, kind, SKETCH_FORWARD_S),
                   layer_sum(shape, kind, SKETCH_BACKWARD_S));
    for (int i = 0; i < 3; i++)
        passes_add(&passes, num_ends[i], shape->ends[ENDS[i]].sums[SKETCH_FORWARD_S],
                   shape->ends[ENDS[i]].sums[SKETCH_BACKWARD_S]);
    return passes;
}

double sketch_splits_mean_s(const Scenario *scenario, const Plan *plan, const SketchShape *shape) {
    const Passes passes = passes_of(&scenario->model, shape);
    const bool one_ahead = group_plan_is_staged(plan) && group_runs_one_ahead(scenario, plan);
    return split_mean_bound_s(plan, passes.there_s + passes.back_s, passes.forward_frac,
                              one_ahead) +
           group_step_s(scenario);
}

bool sketch_splits_exceed(const Scenario *scenario, const Plan *plan, const SketchChain *chain,
                          double limit_s) {
    return split_bound_exceeds(scenario, plan, &chain->costs, limit_s * (1 + ROUNDING_FRAC));
}

// --- Memory

typedef struct {
    const Scenario *scenario;
    const Plan *plan;
    const SketchChain *chain;
    SketchHeld held;
    double limit_bytes;
    int first_rank, last_rank; // with the embedding, with the head
} Room;

typedef struct {
    int least, first, last; // of all its chunks, of the first, of the last
    bool known;
} Units;

static Units units_of(const Plan *plan, int rank) {
    int few[16], *units = few;
    Arena scratch = {0};
    if (plan->vpp > (int)(sizeof few / sizeof *few)) units = ARENA_ARRAY(&scratch, plan->vpp, int);
    Units out = {.known = sketch_units_held(plan, rank, units)};
    out.first = out.least = units[0];
    out.last = units[plan->vpp - 1];
    for (int k = 1; k < plan->vpp; k++)
        if (units[k] < out.least) out.least = units[k];
    arena_free(&scratch);
    return out;
}

// Whether a rank has room for items [from, to).
static bool has_room(const Room *room, int rank, const Units *units, int from, int to) {
    const SketchChain *c = room->chain;
    double dense = c->dense_parameters[to] - c->dense_parameters[from];
    double expert = c->expert_parameters[to] - c->expert_parameters[from];
    double saved = c->saved_bytes[to] - c->saved_bytes[from];
    if (c->again_bytes && room->plan->recompute_layers > 0) {
        const int num = room->plan->recompute_layers;
        saved += c->again_bytes[num < to - from ? from + num : to] - c->again_bytes[from];
    }
    double activations = units->least * saved;
    if (rank == room->first_rank) {
        dense += c->first[SKETCH_DENSE_PARAMETERS];
        expert += c->first[SKETCH_EXPERT_PARAMETERS];
        activations += units->first * c->first[SKETCH_SAVED_BYTES];
    }
    if (rank == room->last_rank) {
        dense += c->last[SKETCH_DENSE_PARAMETERS];
        expert += c->last[SKETCH_EXPERT_PARAMETERS];
        activations += units->last * c->last[SKETCH_SAVED_BYTES];
        if (units->known) activations += c->head_peak_bytes;
    } else if (units->known && room->plan->vpp == 1 && to > from) {
        activations += c->backward_peak_bytes;
    }
    return sketch_held_bytes(room->scenario, &room->held, dense, expert, activations) <=
           room->limit_bytes;
}

typedef struct {
    const Room *room;
    int rank, from;
    Units units;
} Stage;

static bool stage_fits(void *context, int end) {
    const Stage *s = context;
    return has_room(s->room, s->rank, &s->units, s->from, end);
}

bool sketch_splits_miss(const Scenario *scenario, const Plan *plan, const SketchChain *chain) {
    if (scenario->fit_deviates < 0) return false; // what is more uneven is then counted as less
    if (plan->vpp > 1 && scenario->model.num_kinds > 1) return false;
    const double available_bytes = cluster_most_memory_bytes(&scenario->cluster);
    Room room = {.scenario = scenario,
                 .plan = plan,
                 .chain = chain,
                 .held = sketch_held(scenario, plan),
                 .limit_bytes = available_bytes * (1 + ROUNDING_FRAC),
                 .first_rank = plan_chunk_rank(plan, 0),
                 .last_rank = plan_chunk_rank(plan, plan->num_chunks - 1)};
    const int num_items = chain->costs.num_items;
    int from = 0, guess = num_items / plan->pp;
    for (int r = 0; r < plan->pp; r++) {
        Stage stage = {&room, r, from, units_of(plan, r)};
        const int end = last_fit(from, num_items, from + guess, stage_fits, &stage);
        if (end < from) return true;
        if (end > from && end < num_items) guess = end - from;
        from = end;
    }
    return from < num_items;
}
