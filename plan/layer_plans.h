// plan/layer_plans.h - layers of one plan that differ in more than how they are recomputed.
//
// A strategy is what some layers do, as the plan that does so throughout. All strategies of a plan
// share its pipeline (pp, chunks, schedule), its experts (ep, etp), the GPUs of a stage and the
// sequences of a micro-batch over these. With tp 2 in place of 4 a layer has twice the replicas,
// each with half of them. Embedding, head, MTP layers and the messages between stages keep to the
// plan itself, which is strategy 0, PLAN_OWN.
//
// A layer's collectives run in its strategy's groups (workload/pass/group.h).
#pragma once

#include "plan/plan.h"

enum { PLAN_OWN = 0 };

struct LayerPlans {
    int num_strategies;    // >= 2, the plan's own among them
    const Plan *plans;     // [num_strategies - 1] of all but the plan's own, each throughout
    const short *strategy; // [num_layers]
    int num_layers;
    int num_layouts;     // of activations
    const short *layout; // [num_strategies] 0 is the plan's own
    int num_spans;       // different numbers of ranks among which layouts change
    const int *spans;    // [num_spans] ascending
};

// 1 where all layers keep to the plan's own.
int plan_num_strategies(const Plan *plan);

// A strategy of a plan; and that of a layer.
const Plan *plan_strategy(const Plan *plan, int strategy);
int plan_layer_strategy(const Plan *plan, int layer);

// What each layer does, as the plan that does so throughout: sets plan->layers, or where layers
// differ in nothing but recomputation plan->layer_recompute, or neither.
//   own  [num_layers]
void plan_set_layers(Plan *plan, const Plan *own, int num_layers, Arena *arena);

// The `layers` of a scenario put into a plan that is complete but for them. Refusals name the
// entry.
Status plan_resolve_layers(const Scenario *scenario, Arena *arena, Plan *plan);

LayerPlans *layer_plans_copy(const LayerPlans *layers, const PlanChunk *chunks, Arena *arena);

// Whether two strategies lay the activations between layers out alike.
bool plans_layouts_are_alike(const Plan *a, const Plan *b);

// Whether a layer does the same under both: how it is split, sharded and recomputed.
bool plans_layers_are_alike(const Plan *a, const Plan *b);

// Neighbouring ranks that hold the same sequences under either of two layouts, so that a change
// from one to the other stays among them. They are lcm of both replicas' ranks, or the tp ranks
// where nothing but sequence_parallel differs.
int plans_layout_span(const Plan *a, const Plan *b);

// Refuses layers that differ in more than recomputation, in one sentence that names the first of
// them and what it does: no software runs them.
//   what  that was asked to: "launch --for megatron"
Status plan_refuse_layers(const Scenario *scenario, const Plan *plan, const char *what);

// The first layer after `from` that does something else than that; num_layers where none does.
int plan_layers_run_end(const Plan *plan, int from);

// The contract's `layers`: what differs from the rest of `parallel`. The caller owns it; NULL where
// nothing does.
cJSON *plan_layers_to_json(const Plan *plan);

// " [12 layers tp 2 dp 8 zero3 full]" for each strategy, of many the first four; "" without.
const char *plan_layers_describe(const Plan *plan, Arena *arena);
