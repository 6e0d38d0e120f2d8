// whatif/change.h - sets values at dotted paths of a scenario's document.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/job/scenario.h"

// A copy of the scenario's document that can be changed at the given paths: what they go into and
// is only named there (a preset, a model file) is written out. Owned by the arena.
//   replan  the parallel of a plan.json is an answer, not a constraint: it is left out
Status change_base(const Scenario *scenario, const char *const *paths, int num_paths, bool replan,
                   Arena *arena, const cJSON **out);

// Sets a copy of value at a path ("training.seq_len", "parallel.stages[0].layers"); objects on the
// way are created. Fails where the way leads through something else.
Status change_set(const Scenario *scenario, cJSON *document, const char *path, const cJSON *value);

// The scenario to plan anew: without the `parallel` of a plan.json, else itself.
Status change_replan(const Scenario *scenario, Arena *arena, Scenario *out);

// Removes what follows from the varied paths and is not itself varied (whatif/whatif.h).
void change_derive(cJSON *document, const char *const *paths, int num_paths);

// Refuses a path whose last key is not known there, with the nearest that is.
Status change_check_path(const Scenario *scenario, const cJSON *base, const char *path,
                         const cJSON *value);
