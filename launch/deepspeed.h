// launch/deepspeed.h - a plan for DeepSpeed: arguments of Megatron-DeepSpeed's pretrain_gpt.py and
// the configuration that it hands to DeepSpeed.
//
// Version: deepspeedai/Megatron-DeepSpeed as of DEEPSPEED_VERSION, with DeepSpeed 0.16.1 or later.
//          Source of the flags and of the rules between them: its megatron/arguments.py; of the
//          keys: DeepSpeed's "DeepSpeed Configuration JSON" page.
// The rows of DEEPSPEED_FLAGS and DEEPSPEED_KEYS are all that is ever written;
// docs/launch/deepspeed.md prints them.
#pragma once

#include "base/status.h"
#include "config/job/scenario.h"
#include "launch/flags.h"
#include "launch/keys.h"
#include "plan/plan.h"

#define DEEPSPEED_VERSION "commit 207b2d5aad1eea98464c37e0b991be6f8937226f"

extern const FlagRow DEEPSPEED_FLAGS[];
extern const KeyRow DEEPSPEED_KEYS[];

// Refuses a plan that breaks a rule of this target (stacks/rules/for-deepspeed.json).
Status deepspeed_check(const Scenario *scenario, const Plan *plan, Arena *arena);

// Flags and keys of a plan that breaks none.
void deepspeed_model_flags(const Scenario *scenario, FlagList *flags);
void deepspeed_plan_flags(const Scenario *scenario, const Plan *plan, FlagList *flags);
void deepspeed_keys(const Scenario *scenario, const Plan *plan, KeyList *keys);
