// cli/plan/plan_answer.h - what `plan` answers, whatever was asked, as text and as a document.
#pragma once

#include "cli/stack_choice.h"
#include "planner/layerwise/layer_search.h"
#include "planner/lengths/lengths.h"
#include "planner/planner.h"
#include "planner/questions/rival.h"
#include "planner/questions/sizing.h"
#include "planner/questions/tune.h"

#include <stdio.h>

typedef struct {
    const Scenario *scenario; // of the plans: with --min-gpus-for that of the number found
    StackChoice stack;        // where the model decided it
    PlannerResult result;
    const Rival *rival;     // of --compare; NULL
    const char *rival_text; // how it was named
    const Sizing *sizing;   // of --min-gpus-for and --deadline; NULL
    double run_tokens;      // of --deadline; 0
    const Tuning *tuning;   // of --tune; NULL
    const char *tuning_text;
    const LayerResult *layers;    // of --layerwise; NULL
    const LengthsResult *lengths; // of training.sequence_lengths; NULL
} PlanAnswer;

void plan_answer_print(const PlanAnswer *answer, FILE *stream);

// The caller owns the tree.
cJSON *plan_answer_to_json(const PlanAnswer *answer);
