// launch/bridge.h - a plan as a recipe of NeMo's Megatron Bridge.
//
// Version: NVIDIA-NeMo/Megatron-Bridge BRIDGE_VERSION with the Megatron Core that it pins. Source
//          of the keys of all sections: its training/config.py (ConfigContainer),
//          models/gpt_provider.py, models/mla_provider.py and training/mixed_precision.py, and
//          Megatron Core's TransformerConfig, ModelParallelConfig, OptimizerConfig and
//          DistributedDataParallelConfig, from which those inherit; of which flag of Megatron-LM is
//          which key: its training/mlm_compat/arguments.py.
// A plan goes the way of Megatron-LM's flags (launch/megatron.h), whose every refusal holds here
// too; BRIDGE_FLAGS says which key each flag is. The rows of BRIDGE_KEYS are all that is ever
// written; docs/launch/nemo.md prints them.
#pragma once

#include "base/status.h"
#include "config/job/scenario.h"
#include "launch/keys.h"
#include "launch/megatron.h"
#include "plan/plan.h"

#define BRIDGE_VERSION "0.4.0"

extern const KeyRow BRIDGE_KEYS[];

// How the value of a flag becomes the value of a key.
typedef enum {
    FLAG_SAME,  // the flag's own value
    FLAG_TRUE,  // a switch: true
    FLAG_FALSE, // a switch: false
    FLAG_TEXT,  // a switch: BridgeFlag.text
    FLAG_WORDS, // "a b": a list of texts
    FLAG_PAIR,  // "a,b": a list of numbers
    FLAG_RUNS,  // "([0]*3+[1]*58)": a list of numbers
    FLAG_OWN,   // no key: said by another flag, by the defaults or by the user
} FlagAs;

typedef struct {
    const char *flag;          // of MEGATRON_FLAGS; several rows where a flag is several keys
    const char *section, *key; // NULL with FLAG_OWN
    FlagAs as;
    const char *text;
} BridgeFlag;

extern const BridgeFlag BRIDGE_FLAGS[]; // ends with a zero row

// Fills the configuration, or refuses what breaks a rule of this target
// (stacks/rules/for-nemo.json).
Status bridge_config(const Scenario *scenario, const Plan *plan, const MegatronCommand *command,
                     KeyList *keys);

// The keys of the flags alone.
Status bridge_flag_keys(const FlagList *flags, KeyList *keys);

// The program that reads the configuration.
const char *bridge_program(const Scenario *scenario, const MegatronCommand *command, Arena *arena);
