// planner/questions/rival.h - a plan that the user has in mind, beside the best.
#pragma once

#include "planner/planner.h"

// What became of the named plan. Where it is not legal or does not fit, that is the answer.
typedef struct {
    const char *refusal; // why no configuration with the named values is legal; NULL: some are
    PlannerResult found; // the best of them: one entry, none where they do not fit; not set where
                         // refused
    double loses_frac;   // value over the best plan's, minus 1; negative where it is better
    bool within_noise_of_best;
    const char *why;            // one sentence, term by term
    double term_s[NUM_TERMS];   // of the step: named minus best
    double part_bytes[5];       // of memory, in the order of RIVAL_PARTS: named minus best
    double memory_device_bytes; // named minus best
} Rival;

extern const char *const RIVAL_PARTS[6]; // ends with NULL

// Searches the best configuration with the named values and compares it with the best plan.
//   named    the scenario with the named values as further constraints
//   best     with entries; of the scenario itself, by the same options, its nodes placed where
//            these ask for it: so are the named plan's
//   returns  STATUS_OK, also where there is no such plan; else what failed
Status planner_rival(const Scenario *named, const PlannerOptions *options,
                     const PlannerResult *best, Arena *arena, Rival *out);

// The member "compare" of an answer. The caller owns the tree.
//   text  how the plan was named
cJSON *rival_to_json(const Rival *rival, const char *text);
