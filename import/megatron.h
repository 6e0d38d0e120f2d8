// import/megatron.h - arguments of Megatron-LM's pretrain_gpt.py as parts of a scenario.
//
// Version: as launch/megatron.h. Source of flags, their defaults and what follows from them:
//          megatron/training/arguments.py and megatron/core/transformer/transformer_config.py.
#pragma once

#include "import/flag_args.h"

// What one part finds out and another needs.
typedef struct {
    FlagArgs args;
    int num_layers, num_mtp, num_experts;
    int num_gpus;
    int tp, pp, cp, dp;
    cJSON *model, *training, *parallel; // of the scenario
} MegatronRead;

// The command of pretrain_gpt.py in a script: its flags, and on how many nodes it runs (0: the file
// does not say).
Status megatron_command_find(const char *text, const ImportOptions *options, Imported *out,
                             FlagArgs *args, int *num_nodes);

// All of a command line into args.out, with --cluster for the machines; num_nodes 0: the command
// does not say.
Status megatron_read_flags(FlagArgs args, int num_nodes, const ImportOptions *options);

Status megatron_read_model(MegatronRead *read, int vocab_size);
Status megatron_read_experts(MegatronRead *read);
Status megatron_read_degrees(MegatronRead *read);
Status megatron_read_pipeline(MegatronRead *read);
Status megatron_read_memory(MegatronRead *read); // sharding and recomputation
Status megatron_read_training(MegatronRead *read);
Status megatron_read_kept(MegatronRead *read); // launch/megatron_kept.h

// Flags that neither change the price nor the model: the user's own.
extern const char *const MEGATRON_OWN_FLAGS[]; // ends with NULL

// Those of them that have no value, and others that have none: names, or beginnings ("--no-*").
extern const char *const MEGATRON_SWITCHES[]; // ends with NULL
