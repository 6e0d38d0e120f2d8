// launch/megatron_script.h - what the scripts of Megatron-LM and of Megatron Bridge, which trains
// by the same core, have in common.
#pragma once

#include "launch/megatron.h"
#include "launch/script.h"
#include "launch/task.h"

// True where the command leaves this variable of the script to the user.
bool megatron_uses_variable(const MegatronCommand *command, const char *variable);

// Settings of data, checkpoints and the training's length.
void megatron_add_settings(Script *script, const MegatronCommand *command);

// Where there is data, its arguments; `else` or `fi` is the caller's.
void megatron_add_data(Script *script);

// The command's notes, with one on AMD's GPUs, and its environment.
//   amd  "Megatron-LM does not run on ROCm"
void megatron_task_fill(const Scenario *scenario, const MegatronCommand *command, const char *amd,
                        Arena *arena, LaunchTask *out);
