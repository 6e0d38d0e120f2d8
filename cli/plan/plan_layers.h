// cli/plan/plan_layers.h - `plan --layerwise`: a strategy for each layer.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "cli/plan/plan_answer.h"
#include "cli/plan/plan_options.h"

// Refuses (STATUS_INVALID) a file of --write-lp that cannot be written, or that is an input.
Status plan_layers_check(const PlanOptions *options, const Scenario *scenario, Arena *arena);

// Sets answer->layers, and answer->result to the best of them where plan.json can hold it.
Status plan_layers_search(const PlanOptions *options, Arena *arena, PlanAnswer *answer);

// Writes the file of --write-lp, where something fits. Refuses --output for a plan that no other
// command takes.
Status plan_layers_finish(const PlanOptions *options, const PlanAnswer *answer);

// STATUS_NO where nothing fits.
Status plan_layers_refuse(const PlanAnswer *answer);
