// launch/megatron.h - a plan as arguments of Megatron-LM's pretrain_gpt.py.
//
// Version: NVIDIA/Megatron-LM as of MEGATRON_VERSION. Source of every flag and of the rules between
//          flags: its megatron/training/arguments.py and, for the layout string,
//          megatron/core/transformer/pipeline_parallel_layer_layout.py.
// The rows of MEGATRON_FLAGS are all that is ever written; docs/launch/megatron.md prints them.
#pragma once

#include "base/status.h"
#include "config/job/scenario.h"
#include "launch/flags.h"
#include "launch/task.h"
#include "plan/plan.h"

#define MEGATRON_VERSION "commit 000c4ac24f61159c138b0975def722c65245983c (after core_v0.14.0)"

extern const FlagRow MEGATRON_FLAGS[];

enum { MEGATRON_MAX_VARIABLES = 4, MEGATRON_MAX_NOTES = 24 };

typedef struct {
    FlagList flags;
    LaunchVariable variables[MEGATRON_MAX_VARIABLES];
    int num_variables;
    const char *notes[MEGATRON_MAX_NOTES]; // sentences: what of the model the flags leave out
    int num_notes;
} MegatronCommand;

// Fills the command, or refuses what breaks a rule of megatron-core (stacks/rules).
Status megatron_command(const Scenario *scenario, const Plan *plan, Arena *arena,
                        MegatronCommand *out);

// Its parts, in the order of the command line, of a plan that obeys the rules.
void megatron_model_flags(const Scenario *scenario, FlagList *flags);
void megatron_position_flags(const Scenario *scenario, FlagList *flags); // part of the model's
void megatron_moe_flags(const Scenario *scenario, const Plan *plan, FlagList *flags);
void megatron_parallel_flags(const Scenario *scenario, const Plan *plan, FlagList *flags);
void megatron_pipeline_flags(const Scenario *scenario, const Plan *plan, FlagList *flags);
void megatron_recompute_flags(const Plan *plan, FlagList *flags);
void megatron_training_flags(const Scenario *scenario, const Plan *plan, FlagList *flags);

// "E tttt | tttt L": the chunks of a plan as a --pipeline-model-parallel-layout.
const char *megatron_layout(const Plan *plan, Arena *arena);

// Adds what of the model the script leaves out or assumes. None of it changes the speed.
void megatron_notes(const Scenario *scenario, MegatronCommand *command);

// A key of the model's own file that the planner has no use for ("rope_theta"); NULL where absent.
const cJSON *megatron_model_key(const Scenario *scenario, const char *key, Arena *arena);

// Such a key as a number; absent where it is none.
double megatron_model_number(const Scenario *scenario, const char *key, Arena *arena,
                             double absent);

// The epsilon of the norms, by any of its names; 0 where the model states none.
double megatron_norm_epsilon(const Scenario *scenario, Arena *arena);

// The model's rope_scaling; type is NULL where positions are not scaled.
typedef struct {
    const cJSON *keys; // NULL: none
    const char *type;  // "llama3", "yarn", ...
} RopeScaling;

RopeScaling megatron_rope_scaling(const Scenario *scenario, Arena *arena);
double megatron_rope_number(const RopeScaling *scaling, const char *key, double absent);
