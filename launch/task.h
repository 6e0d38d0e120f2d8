// launch/task.h - what a target's processes are, before a scheduler starts them.
//
// A target (megatron, torchtitan, ...) fills a LaunchTask; a scheduler (torchrun, Slurm, mpirun,
// Kubernetes) writes the script around it. Neither knows the other.
#pragma once

#include "config/software/rules.h"
#include "launch/launch.h"
#include "launch/script.h"

#include <stdarg.h>
#include <stdbool.h>

// An environment variable that must be set before the processes start.
typedef struct {
    const char *name, *value;
    const char *why; // one sentence
} LaunchVariable;

enum { TASK_MAX_VARIABLES = 6, TASK_MAX_NOTES = 24, TASK_MAX_FILES = 2 };

typedef struct {
    const char *software;              // and its version: "NVIDIA/Megatron-LM, commit ..."
    const char *notes[TASK_MAX_NOTES]; // sentences: what the files leave out or assume
    int num_notes;
    LaunchVariable variables[TASK_MAX_VARIABLES];
    int num_variables;
    const char *settings;  // shell: what is the user's to set
    const char *arguments; // shell: fills the array ARGS
    const char *program;   // shell words behind "torchrun", or "python3": "-m torchtitan.train"
    bool mpi;              // as its target has it
    const char *needs;     // a name of the user's settings that has no default; NULL: none
    const char *needs_in_container;   // its value in a container
    LaunchFile files[TASK_MAX_FILES]; // read by the processes, beside the script: $LAUNCH_DIR
    int num_files;
} LaunchTask;

// Refuses a plan that the software of a target cannot run as it was priced. This is a plan for
// another stack, which is to be planned again, or one that breaks a rule of the stack or of the
// target.
//   stack   that the target starts
//   target  its own table, stacks/rules/TARGET.json; NULL: the stack's says all
//   alone   of the two tables only the target's
Status task_check_rules(const Scenario *scenario, const Plan *plan, const char *software,
                        const char *stack, const char *target, bool alone, Arena *arena);

// "SENTENCE: SOFTWARE cannot run this plan as priced; nearest: NEAREST", of a key of the scenario.
Status task_refuse(const Scenario *scenario, const char *software, const char *path,
                   const char *nearest, const char *format, va_list args);

// What starts plans: a row of launch/targets.def and TARGET_KIND in the file that makes its task.
typedef struct {
    Status (*make)(const Scenario *scenario, const Plan *plan, Arena *arena, LaunchTask *out);
    // Whether its software has the scenario's model, beyond the rules of the stack; NULL: it does.
    bool (*has_model)(const Scenario *scenario, Arena *arena);
    const char *files[TASK_MAX_FILES + 1]; // that its processes read beside the script; ends with
                                           // NULL
    bool mpi;                              // its processes are MPI's own: a program, not Python
} Target;

#define X(kind, name) extern const Target TARGET_##kind;
#include "launch/targets.def"
#undef X

// Whether the model breaks none of the rules about models that a table has.
//   table  NULL: of the stack
bool task_model_obeys(const Scenario *scenario, const RuleTable *table);

void task_add_variable(LaunchTask *task, const char *name, const char *value, const char *why);
void task_add_note(LaunchTask *task, Arena *arena, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
