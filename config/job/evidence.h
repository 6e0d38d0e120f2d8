// config/job/evidence.h - how well a job is known: the spread of measured memories around predicted
// ones, and which of its ingredients no published step had together.
//
// Model:  a plan is made of ingredients: stack, architecture of the GPU, kind of link inside a
//         scale-up domain, kind of model, precision, ZeRO stage, and which ways to split it uses.
//         It is covered where each two of them were together in some published step; else its
//         figures are extrapolated, and their spreads larger.
// Files:  hw-profiles/memory.json (tools/figures/memory_spreads.py fits it): scales of a natural
// log, of
//         Student's law (base/student.h), by stack and kind of model; a stack that it does not name
//         has `other`. The file hw-profiles/coverage.json (tools/figures/coverage.py): what steps
//         were made of, and the standard deviation that the log of a step has beyond them.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/cluster/cluster.h"
#include "config/job/training.h"
#include "config/model/model.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    INGREDIENT_STACK,
    INGREDIENT_ARCHITECTURE,
    INGREDIENT_LINK,
    INGREDIENT_MODEL,
    INGREDIENT_PRECISION,
    INGREDIENT_ZERO_0,
    INGREDIENT_TP = INGREDIENT_ZERO_0 + 4,
    INGREDIENT_PP,
    INGREDIENT_CP,
    INGREDIENT_EP,
    NUM_INGREDIENTS
} Ingredient;

// A set of them: a bit each.
typedef uint16_t Ingredients;

// Of one group of machines.
typedef struct {
    Ingredients own;                    // whatever the plan
    Ingredients with[NUM_INGREDIENTS];  // what was together with each in some step, itself too
    const char *names[NUM_INGREDIENTS]; // "torchtitan", "hopper GPUs", "ZeRO-3"
} GroupEvidence;

typedef struct {
    double memory_spread;        // of what a GPU holds at its peak, over the account of it
    double other_memory_spread;  // the same of what is not covered, at least
    double other_step_spread;    // of steps of what is not covered, beside all else
    const GroupEvidence *groups; // [num_groups] of different machines
    int num_groups;
} Evidence;

// Reads what is bundled and finds what is of this job.
Status evidence_find(const Model *model, const Cluster *cluster, const Execution *execution,
                     Arena *arena, const Evidence **out);

// What a plan adds.
Ingredients evidence_ingredients(int zero_stage, int tp, int pp, int cp, int ep);

// Whether a plan that adds these is covered. True without evidence.
bool evidence_covers(const Evidence *evidence, Ingredients of_plan);

// Why not: "no published step of cdna3 GPUs", "no published step of ZeRO-3 with experts", each
// once.
//   returns  [*num] in the arena
const char *const *evidence_reasons(const Evidence *evidence, Ingredients of_plan, Arena *arena,
                                    int *num);
