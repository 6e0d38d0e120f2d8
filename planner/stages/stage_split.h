// planner/stages/stage_split.h - layers over pipeline stages of different machines, one chunk each:
// the least that a step of any split takes, and all splits that may take less than a limit.
//
// Model:  a pass over a stage takes the sum of its layers on the stage's machines, or what their
//         host needs to launch them. A stage cannot begin before the first micro-batch has come
//         through those before it, nor end before its last gradient has gone back through them
//         (where backwards are split only the way there is certain); between, it works off all
//         micro-batches and, where messages block, waits for each:
//           step >= max over stages r of
//                   sum over i < r of (way_i + 2 message_i) + n work_r + n message_r
//                   + (n - 1) message_(r-1),  and what follows the last gradient
//         the stages before r as its own layers leave it: the bound of the best way to cut the
//         layers from l on over stages r, r + 1, .. is one number, whatever was done before, so
//         that a dynamic program over (r, l) finds the least bound exactly.
//         With 1F1B on machines that are alike a stage has run at most as many forwards as there
//         are stages from it on before the first gradient comes to it, which has been through all
//         those behind:
//           step >= sum of all way_i but what r itself takes
//                   + (the first forward, all backwards, and the forwards not yet run) of r
// Memory: a stage holds layers [from, to) where to <= most[from]; more never need less.
// Source: Bokhari 1988, as in planner/stages/partition.h; with stages that are not alike, and the
// way to a
//         stage, which adds up.
#pragma once

#include "base/arena.h"

#include <stdbool.h>

typedef enum { PASS_FORWARD, PASS_BACKWARD, PASS_WEIGHT, NUM_PASSES } StagePass;

// Seconds of each pass on one kind of machines.
typedef struct {
    const double *device_s[NUM_PASSES]; // [num_layers + 1] of the layers before; NULL: no such pass
    const double *host_s[NUM_PASSES];   // [num_layers + 1] to launch them
    double first_s[NUM_PASSES], first_host_s[NUM_PASSES]; // beside the layers of the first stage
    double last_s[NUM_PASSES], last_host_s[NUM_PASSES];   // beside those of the last
    // What each layer before takes more where it is recomputed, as above; NULL: none is
    const double *again_s[NUM_PASSES], *again_host_s[NUM_PASSES];
    double pass_host_s; // of the host in each pass but PASS_WEIGHT
} StageMachine;

// Where PASS_WEIGHT has times, PASS_BACKWARD is the part of a backward that the stage before waits
// for.
typedef struct {
    int num_layers, num_stages;
    double num_microbatches;             // >= 1
    bool blocking;                       // a stage waits while its messages move
    bool together;                       // all stages begin a step together
    bool one_forward_ahead;              // 1F1B, `together`, and all machines alike
    int num_again;                       // first layers of each stage that are recomputed
    double limit_s;                      // bounds above it are of no interest; 0: all are
    const StageMachine *const *machines; // [num_stages]
    const double *message_s;             // [num_stages] from a stage to the next
    const double *behind_message_s; // [num_stages] twice those from it on; of one_forward_ahead
    const double *tail_s;           // [num_layers + 1] of the step's end, after all of that,
                                    // with so many layers on the first stage; NULL: nothing
    const int *const *most; // [num_stages][num_layers + 1] of where a stage may begin at all; below
                            // `from`: not even no layer fits. NULL: all fits
} StageProblem;             // a layer may stand for several that stay together

// Seconds of one pass over a stage with layers [from, to), and of all of them.
double stage_pass_s(const StageProblem *problem, int stage, StagePass pass, int from, int to);
double stage_work_s(const StageProblem *problem, int stage, int from, int to);

// No step of this split is shorter.
//   layers  [num_stages]
double stage_split_bound_s(const StageProblem *problem, const int *layers);

// Bounds of what is left: solved once, then asked for splits.
typedef struct {
    const StageProblem *problem;
    double *rest_s; // [num_stages + 1][num_layers + 1] the least bound of the layers from l on
                    // over the stages from r on; INFINITY where they do not fit
    double bound_s; // of all splits; INFINITY where none fits
    double even_s;  // work of a stage where all had the same, were layers divisible
    const int *first,
        *last; // [num_stages] where a stage may begin, if any split is below the limit
} StageBounds;

StageBounds stage_bounds_solve(const StageProblem *problem, Arena *arena);

// Only where stages may begin: `first` and `last`.
StageBounds stage_starts(const StageProblem *problem, Arena *arena);

// Called for each split in turn.
//   layers   [num_stages]
//   bound_s  of it
//   returns  false to end the walk
typedef bool (*StageVisit)(void *context, const int *layers, double bound_s);

// Visits every split whose bound is not above *limit_s, which may fall meanwhile; at each stage
// those with the lowest bounds first, of equal ones those nearest to the same work for all.
//   returns  the least bound of those that were not visited because visit ended the walk; INFINITY
//            where it did not
double stage_splits_visit(const StageBounds *bounds, const double *limit_s, StageVisit visit,
                          void *context, Arena *arena);
