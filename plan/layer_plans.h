// plan/layer_plans.h - what each layer of a plan does: the one place that says it.
//
// A strategy is what some layers do: how they are split over the ranks of a stage (a sharding), and
// what of them is recomputed. Layers with the same strategy are built, priced and held alike. Every
// plan has at least one strategy, its own (PLAN_OWN), and
//   - one where all layers do the same,
//   - two where the first k layers of each rank are recomputed (Plan.recompute_layers, the
//     contract's key, which the search varies and nothing but this file turns into strategies): the
//     plan's own for these, PLAN_KEPT for the others,
//   - up to three where layers differ in how they are recomputed and in nothing else,
//   - as many as there are different layers otherwise.
//
// A sharding is written as the plan that has it throughout. All shardings of a plan share its
// pipeline (pp, chunks, schedule), its experts (ep, etp), the GPUs of a stage and the sequences of
// a micro-batch over these: with tp 2 in place of 4 a layer has twice the replicas, each with half
// of them. Embedding, head, MTP layers and the messages between stages have the plan's own, number
// PLAN_OWN.
//
// A layer's collectives run in the groups of its sharding (workload/pass/group.h).
#pragma once

#include "plan/plan.h"

enum { PLAN_OWN = 0, PLAN_KEPT = 1 };

typedef struct {
    int sharding; // < plan_num_shardings
    Recompute recompute;
    int recompute_modules; // of RECOMPUTE_SELECTIVE: MODULE_* bits
} Strategy;

// Of layers that differ in other ways than "the first k of each rank are recomputed".
struct LayerPlans {
    int num_strategies;         // >= 2, the plan's own among them
    const Strategy *strategies; // [num_strategies - 1] of all but the plan's own
    const short *strategy;      // [num_layers]
    int num_layers;
    bool recompute_alone;  // plan_mixes_recompute
    int num_shardings;     // >= 1, the plan's own among them
    const Plan *shardings; // [num_shardings - 1] of all but the plan's own
    int num_layouts;       // of activations
    const short *layout;   // [num_shardings] 0 is the plan's own
    int num_spans;         // different numbers of ranks among which layouts change
    const int *spans;      // [num_spans] ascending
};

int plan_num_strategies(const Plan *plan);
Strategy plan_strategy(const Plan *plan, int strategy);

// The strategy of a chunk's layer, counted from the chunk's first; of how many layers from that one
// on the chunk's have the same: a run.
int plan_layer_strategy(const Plan *plan, int chunk, int layer);
int plan_layer_run(const Plan *plan, int chunk, int layer);

// 1 where layers differ in nothing but recomputation.
int plan_num_shardings(const Plan *plan);

// A sharding, as the plan that has it throughout: its degrees, groups and ZeRO stage are what
// counts. And that of a chunk's layer.
const Plan *plan_sharding(const Plan *plan, int sharding);
int plan_layer_sharding(const Plan *plan, int chunk, int layer);

// Different layouts of activations, and that of a sharding; 0 is the plan's own.
int plan_num_layouts(const Plan *plan);
int plan_layout(const Plan *plan, int sharding);

// Different numbers of ranks among which layouts change, ascending; returns how many.
int plan_layout_spans(const Plan *plan, const int **spans);

// Whether some layers are recomputed and some are not, as "the first k of each rank" says.
bool plan_recomputes_first(const Plan *plan);

// Whether layers differ, in other ways than the first k of each rank, but only in which of
// RECOMPUTE_NAMES they are.
bool plan_mixes_recompute(const Plan *plan);

// How MTP layers are recomputed: as the plan's own layers where it says so of all of them, else not
// at all.
Recompute plan_mtp_recompute(const Plan *plan);

// What each layer does, as the plan that does so throughout: sets plan->layers, to NULL where all
// do what the plan itself does.
//   own  [num_layers]
void plan_set_layers(Plan *plan, const Plan *own, int num_layers, Arena *arena);

// The `layers` of a scenario put into a plan that is complete but for them. Refusals name the
// entry.
Status plan_resolve_layers(const Scenario *scenario, Arena *arena, Plan *plan);

LayerPlans *layer_plans_copy(const LayerPlans *layers, const PlanChunk *chunks, Arena *arena);

// Whether two shardings lay the activations between layers out alike.
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

// The contract's `layers`: what differs from the rest of `parallel`. The caller owns it; NULL where
// nothing does.
cJSON *plan_layers_to_json(const Plan *plan);

// " [12 layers tp 2 dp 8 zero3 full]" for each strategy but the plan's own, of many the first four;
// "" where layers differ in nothing but recomputation.
const char *plan_layers_describe(const Plan *plan, Arena *arena);
