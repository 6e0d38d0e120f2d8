// launch/launch.h - files that start a plan on the user's software.
//
// A plan is either written exactly as it was priced, or refused with the nearest that can be: a
// launch file never quietly runs something else.
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "config/scenario.h"
#include "plan/plan.h"

#include <stdbool.h>

typedef enum {
    LAUNCH_MEGATRON,
    LAUNCH_TORCHTITAN,
    LAUNCH_DEEPSPEED,
    LAUNCH_NEMO,
    LAUNCH_RUNTIME,
    NUM_LAUNCH_TARGETS
} LaunchTarget;

typedef enum {
    LAUNCH_TORCHRUN,
    LAUNCH_SLURM,
    LAUNCH_MPIRUN,
    LAUNCH_K8S,
    NUM_LAUNCH_SCHEDULERS
} LaunchScheduler;

extern const char *const LAUNCH_TARGET_NAMES[NUM_LAUNCH_TARGETS + 1];       // ends with NULL
extern const char *const LAUNCH_SCHEDULER_NAMES[NUM_LAUNCH_SCHEDULERS + 1]; // ends with NULL

typedef struct {
    const char *name; // of the file: "launch.sh", "launch.sbatch"
    const char *text;
} LaunchFile;

// Writes the file in memory.
//   returns  STATUS_INVALID: "FILE: parallel.zero_stage: ..." for what the target cannot express,
//            "... is not supported yet" for a target or scheduler without a writer
Status launch_make(const Scenario *scenario, const Plan *plan, LaunchTarget target,
                   LaunchScheduler scheduler, Arena *arena, LaunchFile *out);

// Saves it, executable, in an existing folder; an existing file is refused unless force.
//   *unchanged  the file was there with exactly these bytes: it is left as it is
Status launch_save(const LaunchFile *file, const char *folder, bool force, Arena *arena,
                   bool *unchanged);
