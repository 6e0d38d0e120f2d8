// sim/fold.h - which GPUs the simulator leaves out because others do the same beside them.
//
// The tensor-parallel ranks of a stage do the same at the same time. Where they share the network
// evenly, one of them, on links of the capacity that is left to it, shows what happens to all. They
// meet inside every computation (sim/meeting.h), so they do so with slow GPUs and jitter as well.
// Data-parallel replicas do the same at the same time only in lockstep, where nothing is disturbed;
// those that a rotation of the stages turns into one another (sim/rotation.h) are simulated once.
// Where none turns, or not enough are turned, those are that nothing tells apart (sim/likeness.h).
// Where even that leaves more than can be simulated in seconds, those that hardly differ are taken
// for alike: the fold is approximate, and its reason says so.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "plan/plan.h"
#include "sim/lanes.h"
#include "workload/step/program.h"

typedef enum {
    FOLD_AUTO,
    FOLD_NONE,
    FOLD_TP,
    FOLD_FULL,
    FOLD_APPROXIMATE,
    NUM_FOLD_MODES
} FoldMode;

struct LowerInput; // sim/lower.h

extern const char *const FOLD_NAMES[NUM_FOLD_MODES + 1]; // ends with NULL

typedef struct {
    int num_folded; // tensor-parallel ranks that one simulated GPU stands for
    int period; // replicas of a stage after which the others do the same: only the first so many
                // are played; the program's multiplicity where none are alike
    const struct Likeness *likeness; // in the place of the period; NULL: by that
    const char *name;                // "none", "tp", "full" or "approximate"
    const char *reason;              // a sentence
} Folding;

// What cannot be done is refused (STATUS_INVALID); FOLD_AUTO folds as much as it can.
//   stepwise  collectives are played step by step, which only a rotation folds
Status folding_choose(FoldMode mode, const Scenario *scenario, const struct LowerInput *input,
                      bool stepwise, Arena *arena, Folding *out);

// The replicas that it plays.
Lanes folding_lanes(const Folding *folding, const Program *program, Arena *arena);
