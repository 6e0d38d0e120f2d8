// planner/groups/group_answer.h - what a search on groups of different machines is set beside: the
// best plan with even stages, the best on fewer of the groups, and replicas in each of them.
#pragma once

#include "costmodel/step/estimate.h"
#include "planner/groups/group_replicas.h"

// Where stages of a plan lie. Groups are numbered as the scenario has them.
typedef struct GroupShare {
    int group;
    const char *gpu;
    int num_gpus;
    int first_stage, num_stages; // pipeline ranks
    const int *layers;           // [num_stages] of each rank
    double busy_frac;            // share of the step that its busiest rank computes
    double memory_frac;          // of its fullest rank, of what that has
} GroupShare;

// Of a plan in the order of the pipeline: [num_pools] in the arena.
//   scenario  with its groups in the plan's order
const GroupShare *group_shares_make(const Scenario *scenario, const Plan *plan,
                                    const EstimateParts *parts, Arena *arena);

// Some of the groups, without the others.
typedef struct {
    const char *name;  // "group 0 (64 x h100-sxm-80g)"
    const int *groups; // [num_groups]
    int num_groups;
    int num_gpus;
    bool legal; // some configuration is
    bool fits;  // and some has room; then the rest is set
    Plan plan;  // the best
    Estimate estimate;
} GroupAlternative;

typedef struct GroupsAnswer {
    bool stopped_early; // the budget ended a search of these
    bool even_fits;     // a plan with even stages is legal and has room
    Plan even_plan;     // the best of them
    Estimate even_estimate;
    const GroupAlternative *fewer; // [num_fewer] each group alone; of three and more also all but
                                   // each
    int num_fewer;
    int best_fewer; // the fastest of them that fits; -1: none
    ReplicasAnswer replicas;
} GroupsAnswer;

// Sets result->groups of a search that found something. dp, zero_group, stages and placement are
// not kept as constraints on fewer groups. A budget is shared by all these searches once more.
Status planner_compare_groups(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                              PlannerResult *result);

// One sentence of what the slower groups add, and what sizing the stages does.
const char *groups_answer_text(const PlannerResult *result, Arena *arena);

// "group 0 (64 x h100-sxm-80g): stages 0-3, layers 11 11 11 10, busy 93 %, memory 71 %".
const char *group_share_text(const GroupShare *share, Arena *arena);

// The members "groups" of an answer, and of one of its plans. The caller owns the trees.
cJSON *groups_answer_to_json(const PlannerResult *result);
cJSON *group_shares_to_json(const PlannedEntry *entry);
