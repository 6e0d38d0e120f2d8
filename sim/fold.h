// sim/fold.h - which GPUs the simulator leaves out because others do the same beside them.
//
// The tensor-parallel ranks of a stage do the same at the same time. Where they share the network
// evenly, one of them, on links of the capacity that is left to it, shows what happens to all. They
// meet inside every computation (sim/meeting.h), so they do so with slow GPUs and jitter as well.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/scenario.h"
#include "plan/plan.h"
#include "workload/program.h"

typedef enum { FOLD_AUTO, FOLD_NONE, FOLD_TP, NUM_FOLD_MODES } FoldMode;

extern const char *const FOLD_NAMES[NUM_FOLD_MODES + 1]; // ends with NULL

typedef struct {
    int num_folded;     // GPUs that one simulated GPU stands for
    const char *name;   // "none" or "tp"
    const char *reason; // a sentence
} Folding;

// FOLD_TP that cannot be done is refused (STATUS_INVALID); FOLD_AUTO then does not fold.
Status folding_choose(FoldMode mode, const Scenario *scenario, const Plan *plan,
                      const Program *program, Arena *arena, Folding *out);
