// planner/layerwise/layerwise.h - a strategy for each layer of a pipeline stage: the fastest under
// the memory that there is.
//
// Problem: a chain of layers, one of several strategies for each; between neighbours whose
//          strategies lay the activations out differently, the time (and the memory) of the change.
//          What a plan needs of memory:
//            sum of lasts_bytes + sum of reshard_bytes
//            + max over layers i of (saved_bytes of the layers before i + peak_bytes of i)
//            + level_bytes of the highest level among its layers
//          The least sum of times, with level_s of that level, within limit_bytes.
// Method:  exact. A dynamic program along the chain keeps, for each layout of a layer's result, the
//          prefixes that no other beats in time and in both figures of memory (all that is held;
//          the most that was needed so far). No bins: bytes are whole, and times are rounded to
//          2^-50 of their sum, so that equal sums are equal in every order. A prefix is dropped
//          where Lagrangian relaxation of the limit proves that nothing within a threshold comes of
//          it; the threshold rises from the relaxation's bound until a plan lies below it.
// Source:  the question: Miao et al., "Galvatron: efficient transformer training over multiple GPUs
//          using automatic parallelism", VLDB 2022 (PVLDB 16(3)), section 4, with memory in steps
//          of a granule there; the method: Handler and Zang, "A dual algorithm for the constrained
//          shortest path problem", Networks 10(4), 1980; Dumitrescu and Boland, Networks 42(3),
//          2003 (labels with bounds of both resources).
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    int num_layers, num_strategies; // >= 1
    const double *time_s;           // [num_layers][num_strategies] >= 0; INFINITY: it cannot run so
    const double *lasts_bytes;      // [num_layers][num_strategies] held whatever runs
    const double *saved_bytes;      // [num_layers][num_strategies] held from then on
    const double *peak_bytes; // [num_layers][num_strategies] while it runs, what it saves included
    int num_layouts;
    const int *layout;           // [num_strategies] of activations, < num_layouts
    const double *reshard_s;     // [num_layouts][num_layouts] from, to
    const double *reshard_bytes; // the same; lasts
    int num_levels;              // >= 1
    const int *level;            // [num_layers][num_strategies] < num_levels
    const double *level_s;       // [num_levels] ascending
    const double *level_bytes;   // the same
    double limit_bytes;
} LayerwiseProblem;

typedef struct {
    bool feasible;
    bool optimal;  // false: it gave up before the proof; no plan is faster than bound_s
    double time_s; // of the plan
    double bound_s;
    double memory_bytes;
    const int *strategy; // [num_layers]
    int64_t num_states;  // prefixes that were kept, in all
} LayerwiseAnswer;

// The fastest plan, in arena.
//   max_states  prefixes of one pass after which it gives up; 0: LAYERWISE_MAX_STATES
LayerwiseAnswer layerwise_solve(const LayerwiseProblem *problem, int64_t max_states, Arena *arena);

enum { LAYERWISE_MAX_STATES = 40000000 };

// What a plan takes and needs.
double layerwise_time_s(const LayerwiseProblem *problem, const int *strategy);
double layerwise_memory_bytes(const LayerwiseProblem *problem, const int *strategy);

// Orders strategies of one layout within each run of layers that are alike so that equal ones stand
// together, those that save less first, where the plan still fits and is no slower.
void layerwise_tidy(const LayerwiseProblem *problem, int *strategy);

// The problem as an integer program in CPLEX LP format, for any solver: milliseconds and gigabytes.
//   x_L_S  layer L runs strategy S          y_L_A_B  layout A of layer L to B of L + 1
//   z_K    K is the highest level
// Memory has a row for each layer that may be the peak.
//   comment  lines that begin with "\"; NULL for none
void layerwise_write_lp(const LayerwiseProblem *problem, const char *comment, FILE *stream);
