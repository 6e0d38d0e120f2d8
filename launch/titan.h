// launch/titan.h - a plan as a configuration of torchtitan.
//
// Version: pytorch/torchtitan as of TITAN_VERSION. Source of every key, its type and its values:
//          torchtitan/config/job_config.py; of what they do: torchtitan/distributed/
//          (parallel_dims.py, pipeline_parallel.py, activation_checkpoint.py).
// The rows of TITAN_KEYS are all that is ever written; docs/launch/torchtitan.md prints them.
#pragma once

#include "base/status.h"
#include "config/job/scenario.h"
#include "launch/keys.h"
#include "launch/task.h"
#include "plan/plan.h"

#define TITAN_VERSION "commit 6404b932421f5ce382e7dac5ad381b2c17b1373c (after v0.1.0)"

extern const KeyRow TITAN_KEYS[];

// A model that torchtitan knows by name, and ours of the same sizes.
typedef struct {
    const char *name, *flavor; // model.name, model.flavor
    const char *preset;        // models/PRESET.json, without multi-token prediction
} TitanModel;

extern const TitanModel TITAN_MODELS[]; // ends with a zero row

// Fills the configuration, or refuses what breaks a rule of torchtitan (stacks/rules), and sizes of
// which it has no flavor.
Status titan_config(const Scenario *scenario, const Plan *plan, KeyList *keys, LaunchTask *notes);

// Its parts.
Status titan_model_keys(const Scenario *scenario, KeyList *keys);
void titan_parallel_keys(const Scenario *scenario, const Plan *plan, KeyList *keys);
void titan_pipeline_keys(const Plan *plan, KeyList *keys);

// Whether one of its flavors has the model's sizes.
bool titan_has_model(const Scenario *scenario, Arena *arena);

// Refuses: "FILE: PATH: SENTENCE: torchtitan cannot run this plan as priced; nearest: NEAREST".
Status titan_refuse(const Scenario *scenario, const char *path, const char *nearest,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
