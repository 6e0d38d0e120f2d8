// sim/repetition.h - which runs tell what disturbances cost, and what their steps say together.
//
// Causes take effect one after the other: nothing, then also stragglers, then also jitter, then
// also what happens to the network. Each is played as often as chance asks for, with the same
// draws, so that the difference of two means is what the cause in between costs.
#pragma once

#include "base/arena.h"
#include "config/job/disturb.h"

#include <stdbool.h>

typedef enum { CAUSE_NONE, CAUSE_STRAGGLERS, CAUSE_JITTER, CAUSE_NETWORK, NUM_CAUSES } DisturbCause;

extern const char *const CAUSE_NAMES[NUM_CAUSES];

typedef struct {
    int num_repetitions;
    unsigned kinds[NUM_CAUSES];   // DisturbKinds that take effect up to this cause, as bits
    int num_runs_of[NUM_CAUSES];  // 0 where it adds nothing, 1 where nothing is random
    int first_run_of[NUM_CAUSES]; // or of the last cause before it that is played
    int num_runs;
    int shown_run; // the first repetition of all causes together
} RunPlan;

RunPlan runs_plan(const Disturb *disturb, int num_disturb, int num_repetitions);

// Up to which cause a run plays; *repetition is its number.
DisturbCause run_cause(const RunPlan *plan, int run, int *repetition);

typedef struct {
    double undisturbed_s;
    const double *step_s; // [num_repetitions] with all causes
    double mean_s;
    double p95_s;               // 95th percentile, between the two nearest repetitions
    double cause_s[NUM_CAUSES]; // adds up to mean_s - undisturbed_s; 0 of CAUSE_NONE
} RunSummary;

// step_s: [num_runs] of every run.
RunSummary runs_summarize(const RunPlan *plan, const double *step_s, Arena *arena);

// The value below which a fraction of the numbers lies, interpolated between the two nearest.
double percentile(const double *numbers, int count, double frac, Arena *arena);
