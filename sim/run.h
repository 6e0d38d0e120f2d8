// sim/run.h - one question to the simulator: a scenario played, once or as often as its
// disturbances ask for. With disturbances each run is a child process (sim/children.h).
#pragma once

#include "base/json.h"
#include "costmodel/step/estimate.h"
#include "sim/critical_path.h"
#include "sim/difference.h"
#include "sim/fold.h"
#include "sim/lower_inner.h"
#include "sim/outcome.h"
#include "sim/player.h"
#include "sim/repetition.h"

typedef struct {
    FoldMode fold;
    bool stepwise;
    int num_repetitions; // >= 1
} RunOptions;

// All there is to tell about it. Playback, outcome and path are those of the first repetition, the
// difference is that of the undisturbed step.
typedef struct {
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    EstimateParts parts;
    Folding folding;
    Inner inner;
    Lowered lowered;
    Network disturbed; // its network with what happens to it
    Playback playback;
    Outcome outcome;
    CriticalPath path;
    Difference difference;
    bool repeated; // summary is set: something is disturbed, or several repetitions were asked for
    RunSummary summary;
    int num_repetitions;
} Run;

Status run_play(const RunOptions *options, const JsonNode *root, Arena *arena, Run *run);

// The answer, in sim/run_json.c. The caller owns the tree.
cJSON *run_to_json(const Run *run);
