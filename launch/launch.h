// launch/launch.h - files that start a plan on the user's software.
//
// A plan is either written exactly as it was priced, or refused with the nearest that can be: a
// launch file never quietly runs something else.
#pragma once

#include "base/answer_folder.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "plan/plan.h"

#include <stdbool.h>

typedef enum {
#define X(kind, name) LAUNCH_##kind,
#include "launch/targets.def"
#undef X
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
    const char *name; // of the file: "launch.sh", "launch.sbatch", "torchtitan.toml"
    const char *text;
    bool program; // to be executed
} LaunchFile;

enum { LAUNCH_MAX_FILES = 3 };

// The first is the one to start; the others lie beside it.
typedef struct {
    LaunchFile files[LAUNCH_MAX_FILES];
    int num_files;
} LaunchFiles;

// What starts the scenario's software by default, as its table of rules says.
//   returns  false where nothing does
bool launch_target_of(const Scenario *scenario, LaunchTarget *out);

// Names of the files that launch_make may give for a target under torchrun (mpirun where its
// processes are MPI's own) and Slurm, in `names`.
//   returns  how many, at most LAUNCH_MAX_FILES + 1
int launch_file_names(LaunchTarget target, const char **names);

// The scheduler that starts a target on machines without a queue.
LaunchScheduler launch_plain_scheduler(LaunchTarget target);

// Whether files can be written for the scenario's model on its stack, as far as the model decides.
bool launch_has_model(const Scenario *scenario, Arena *arena);

// Writes the files in memory.
//   returns  STATUS_INVALID: "FILE: parallel.zero_stage: ..." for what the target cannot express,
//            a sentence for a scheduler that cannot start the target
Status launch_make(const Scenario *scenario, const Plan *plan, LaunchTarget target,
                   LaunchScheduler scheduler, Arena *arena, LaunchFiles *out);

// Their part of an answer (base/answer_folder.h): of one plan and target, for any schedulers.
AnswerPart launch_part(const Scenario *scenario, const Plan *plan, LaunchTarget target,
                       Arena *arena);

// Writes them into an open folder.
Status launch_save(const LaunchFiles *files, AnswerFolder *folder);
