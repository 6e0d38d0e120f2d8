// launch/megatron_script.h - Megatron-LM's command as a script for a scheduler.
#pragma once

#include "launch/launch.h"
#include "launch/megatron.h"

// The whole text of launch.sh (torchrun, one call per node) or launch.sbatch (one sbatch job).
const char *megatron_script(const Scenario *scenario, const Plan *plan,
                            const MegatronCommand *command, LaunchScheduler scheduler,
                            Arena *arena);
