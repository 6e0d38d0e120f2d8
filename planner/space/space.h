// planner/space/space.h - every legal configuration of a scenario, each once.
//
// The product of tp, pp, cp, dp, ep, etp, vpp, the split of layers over chunks, micro_batch,
// recompute (none, selective, full; of all layers or of the first of each stage), cp_method, ZeRO
// stage and group, reshard_after_forward and schedule, restricted to what the scenario's `parallel`
// leaves free and plan_check allows. Degrees are any divisors, powers of two or not. Where a value
// makes no difference it is not a dimension: no cp_method at cp 1, no sequence_parallel at tp 1, no
// ZeRO stage where nothing is replicated, no schedule at pp 1 or with a single micro-batch.
// Bounds of the space where the scenario does not say otherwise; a given value lifts its bound:
//   tp, etp      inside one scale-up domain
//   cp           at least SPACE_MIN_CP_TOKENS tokens of a sequence per rank
//   micro_batch  at most SPACE_MAX_MICRO_BATCH sequences
//   vpp          up to SPACE_MAX_UNEVEN_VPP any; above, those that split the layers evenly
//   splits       of dual pipelines the default one; any_split says which of others
//   sequence_parallel  as the stack has it where tp > 1
//   reshard_after_forward  both at ZeRO 3 of FSDP (stack_keeps_gathered); where that shards
//                parameter by parameter, ZeRO 2 is the one that keeps; else on
//   order        tp-cp-ep-pp-dp beside the default at cp 1 only
//   all          what the rules of the scenario's stack allow (plan/rule_check.h); zero_group of
//                ZeRO 1 to 3 only, one that shards, and that cuts no cp group where shards are over
//                cp;
//                recompute_layers where `recompute` is not stated either and machines are alike,
//                from 1 to one less than the fullest rank has, or to what it has where MTP layers,
//                which then are not recomputed, make a difference
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "plan/plan.h"
#include "plan/rule_check.h"

enum {
    SPACE_MIN_CP_TOKENS = 256,
    SPACE_MAX_MICRO_BATCH = 64,
    SPACE_MAX_UNEVEN_VPP = 4,
    SPACE_MAX_CHUNKINGS = 128,
    SPACE_MAX_ZERO_GROUPS = 256, // divisors of a number below 2^20: 240 at most
    SPACE_MAX_SERIES = NUM_RECOMPUTES * NUM_CP_METHODS * SPACE_MAX_CHUNKINGS,
};

// One way to lay the ranks out.
typedef struct {
    int tp, pp, cp, dp, ep, etp;
    PlanOrder order;
} SpaceSplit;

typedef struct {
    const Scenario *scenario;
    const RulesInForce *rules; // of its stack
    const SpaceSplit *splits;  // [num_splits]
    int num_splits;
    // A plan stands for all contiguous splits of its layers where the software can run them and
    // ranks hold one chunk each, or several of layers that are all alike; its chunks are then the
    // default ones. Else, and where this is false, the default split and a balanced one are
    // configurations of their own.
    bool any_split;
} Space;

// Whether every split of layers over so many chunks a rank can be in a space.
bool space_splits_any(const Model *model, int vpp);

// Lays out the ranks in all ways the cluster, the model and the constraints allow.
void space_build(const Scenario *scenario, Arena *arena, Space *out);

// The scenario with the order of ranks that it has where it states none, and with this
// reshard_after_forward, in the arena: for searches that have no such dimensions.
const Scenario *space_narrow(const Scenario *scenario, bool reshards, Arena *arena);

// The numbers of ranks that may share the shards of a ZeRO stage, the largest first: all of dp x
// cp, then its divisors. Left out are 1, which shards nothing, and where the software always shards
// over cp too what cuts a cp group, and dp, which there stands for all (plan_zero_group).
//   plan    its dp and cp
//   groups  [SPACE_MAX_ZERO_GROUPS]
//   returns how many, >= 1; one where the scenario states it, and of stage 0
int space_zero_groups(const Scenario *scenario, const Plan *plan, int zero_stage, int *groups);

// Plans that differ in ZeRO level, zero_group and schedule only: levels ascending, of each the
// largest group first, of each all schedules.
typedef struct {
    const Plan *plans; // [num_plans]; legal; their chunks lie in the arena given to space_visit
    int num_plans;     // >= 1
    bool any_split;    // each stands for all splits of its layers
    // >= 0, < SPACE_MAX_SERIES; families of one series differ in micro_batch only and come in its
    // ascending order
    int series;
    // Each plan with the first 1 to num_layers[its place] layers of each stage recomputed is a
    // configuration too; 0: none are. Legal like the plan itself, they are not walked one by one,
    // as there are many: space_first_layers.
    const int *num_layers; // [num_plans]
    // Of plans that stand for all splits up to twice as many as the default split's fullest rank
    // has.
    int most_layers; // the largest of them
} SpaceFamily;

// The plan of a family with the first layers recomputed.
Plan space_first_layers(const Plan *plan, int num_layers);

//   returns  false to end the walk
typedef bool (*SpaceVisit)(void *context, const SpaceFamily *family);

// Calls visit with all families of one split, always in the same order; those that differ in
// recomputation only come one after the other, in the order of Recompute.
//   arena    of the plans' chunks; visit must not reset it
//   returns  false where visit ended the walk
bool space_visit(const Space *space, int split, Arena *arena, SpaceVisit visit, void *context);

// Plans of one split that cut, recompute and exchange alike, and what is open to them.
typedef struct {
    const Plan *plan;     // its ZeRO stage, zero_group and schedule say nothing
    unsigned zero_levels; // bit l: plan_zero_level l
    unsigned schedules;   // bit k: ScheduleKind k, with chunks that it can have
    bool some_layers;     // the first layers of each stage may be recomputed alone
    bool any_split;       // they stand for all splits of their layers
} SpaceShape;

// What of a split is not visited.
typedef struct {
    // Whether no plan of a shape is wanted. Asked first without chunks (NULL, vpp 1), of all ways
    // to cut the layers, then of each. NULL: all are wanted.
    bool (*skips)(void *context, const SpaceShape *shape);
    void *context;
} SpaceFilter;

// space_visit without what the filter skips.
bool space_visit_wanted(const Space *space, int split, Arena *arena, const SpaceFilter *filter,
                        SpaceVisit visit, void *context);

// Calls visit with one legal plan for each micro_batch, recompute and cp_method of a split, and one
// for recomputation of some first layers; its vpp is 1 and its chunks are not set.
void space_visit_shapes(const Space *space, int split,
                        void (*visit)(void *context, const SpaceShape *), void *context);
