// tests/laws/scenario_keys.h - all that a scenario and its plan say, key by key, with defaults
// filled in: two scenarios that mean the same have the same keys.
//
// A key is a path of the contract ("training.precision", "model.num_key_value_heads"), its value
// what would stand there; of models of a family what the family implies is there too. A key that
// has no effect beside the others (a method of context parallelism at cp 1) is left out.
#pragma once

#include "config/job/scenario.h"
#include "plan/plan.h"

#include <cjson/cJSON.h>

// One flat object. The tree is the caller's.
cJSON *scenario_keys(const Scenario *scenario, const Plan *plan);

// Calls at(key, context) for each key that only one of them has, or whose values differ; returns
// their number. A value may be NULL.
int keys_compare(const cJSON *a, const cJSON *b,
                 void (*at)(const char *key, const cJSON *a, const cJSON *b, void *context),
                 void *context);

// Sets the key of a document (or with NULL removes it). The value is copied.
void key_restore(cJSON *document, const char *key, const cJSON *value);
