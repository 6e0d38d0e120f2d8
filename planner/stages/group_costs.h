// planner/stages/group_costs.h - what a search on groups of different machines knows of a plan's
// stages: the times of layers on each group's machines, and how many of them fit where.
#pragma once

#include "config/job/scenario.h"
#include "planner/stages/pieces.h"
#include "planner/stages/stage_split.h"

// The least load of a plan's busiest rank: planner/stages/split_bound.h.
typedef struct {
    int num_ranks, num_chunks, first_rank, last_rank, num_again; // 0 ranks: none is known
    double load_s;
} LeastLoad;

// Times of the layers on each group's machines, of a plan and those that share its blocks.
typedef struct {
    const StageMachine *machines; // [num_groups]
    int num_items; // of the chain that is cut: layers behind those of a tower, which stay with the
                   // embedding
    const double *first_dense, *first_expert;   // [num_items + 1] weights of a first stage's rank
    double message_bytes;                       // that a rank sends to the next stage
    const double *message_s, *behind_message_s; // [pp] as in StageProblem
    const double *speed;   // [num_groups] models a second of a rank: 1 / model on it
    LeastLoad *least_load; // of the plan asked for last
    double least_model;    // of a model that ranks do at least, each at its speed: 1 where
                           // no part of it is done best elsewhere than another
} GroupCosts;

// ZeRO levels 0 and 1, and each above; whole and split backwards; both ends of a pipeline on one
// rank or not; recomputation of all and of some layers.
enum { GROUP_PRICING_KINDS = 4 * 2 * 2 * NUM_RECOMPUTES * 2 };

// Of one search in one order of its groups, or on machines that are all alike.
typedef struct {
    const Scenario *scenario;
    Pieces pieces;
    struct {
        Plan plan; // that the costs were made for
        GroupCosts costs;
        Arena arena;
    } kinds[GROUP_PRICING_KINDS];
} GroupPricing;

GroupPricing group_pricing_start(const Scenario *scenario);
void group_pricing_free(GroupPricing *pricing);

// The costs stay until those of a plan with other blocks are asked for.
const GroupCosts *group_costs_of(GroupPricing *pricing, const Plan *plan);

// What the host does once a step.
double group_step_s(const Scenario *scenario);

// Seconds that no step of a plan is shorter than, whatever its split.
//
// Were layers divisible, stage r with work w_r a micro-batch and speed s_r, and n micro-batches:
//     n w_r + sum over i < r of w_i <= T   (the way there and back, where it is certain)
//     sum of s_r w_r >= the model
// and by linear programming duality T >= model / sum of y_r for any y >= 0 with
//     n y_r + sum over j > r of y_j >= s_r.
double group_costs_bound_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs);

// Whether the split of a plan's layers is a StageProblem: one chunk a rank, in a schedule by name.
bool group_plan_is_staged(const Plan *plan);

// Seconds of the messages between the stages of a plan with these costs; lies in the arena.
void group_messages_make(const Scenario *scenario, const Plan *plan, Arena *arena,
                         GroupCosts *costs);

// What follows the last gradient of a step with so many items of the chain on the first stage.
double group_tail_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                    int num_first_items);

// 1F1B, of ranks that begin a step together and are alike: how far one may be ahead is known.
bool group_runs_one_ahead(const Scenario *scenario, const Plan *plan);

// The problem of a plan's layers over its stages; what it points to lies in costs and the arena.
// Without memory: `most` is NULL.
StageProblem group_stage_problem(const Scenario *scenario, const Plan *plan,
                                 const GroupCosts *costs, Arena *arena);

// Which layers each stage's machines have room for: StageProblem.most, in the arena.
//   free  the bounds of the same problem where all fits: stages that can be no part of a split
//         below its limit are not asked for
const int *const *group_stage_room(GroupPricing *pricing, const Plan *plan, const StageBounds *free,
                                   Arena *arena);

// Whether any split fits: as many layers as there is room for on each stage in turn leave those
// behind least.
bool group_stages_fit(GroupPricing *pricing, const Plan *plan);

// Chunks with these layers, else as those of the plan.
//   layers  [plan->num_chunks] in pipeline order
const PlanChunk *group_chunks(const Plan *plan, const int *layers, Arena *arena);

// Chunk c with items [from, to) of the chain, else as that of the plan.
PlanChunk chain_chunk(const GroupPricing *pricing, const Plan *plan, int c, int from, int to);

// Chunks with so many items of the chain, else as those of the plan.
//   items  [plan->num_chunks] in pipeline order
const PlanChunk *chain_chunks(const GroupPricing *pricing, const Plan *plan, const int *items,
                              Arena *arena);
