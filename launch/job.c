#include "launch/job.h"

#include "launch/flags.h"
#include "launch/plan_lines.h"

#include <string.h>

void job_add_head(Script *script, const Job *job) {
    const Scenario *scenario = job->scenario;
    Arena *arena = script->arena;
    script_comment(script,
                   arena_printf(arena, "Trains %s on %d x %s: %s. Written by meshwright %s.",
                                shell_name(scenario->model.name, arena), scenario->cluster.num_gpus,
                                shell_name(cluster_only_pool(&scenario->cluster)->gpu.name, arena),
                                plan_describe(job->plan, arena), MESHWRIGHT_VERSION));
    script_comment(script, arena_printf(arena, "For %s.", job->task->software));
    script_comment(script, arena_printf(arena, "Answer %s, as plan.json names it.",
                                        plan_id(scenario, job->plan, arena)));
    plan_lines_add(script, scenario, job->plan);
    if (job->task->num_notes == 0) return;
    script_comment(script, "");
    script_comment(script, "What of the model this script leaves out or assumes; none of it "
                           "changes the speed:");
    for (int i = 0; i < job->task->num_notes; i++)
        script_comment(script, arena_printf(arena, "- %s", job->task->notes[i]));
}

// Where the files of the task lie.
static void add_folder(Script *script, const LaunchTask *task, const char *folder) {
    if (task->num_files == 0) return;
    script_comment(script,
                   arena_printf(script->arena, "LAUNCH_DIR: where %s lies.", task->files[0].name));
    script_add(script, "LAUNCH_DIR=${LAUNCH_DIR:-%s}\n", folder);
    for (int i = 0; i < task->num_files; i++)
        script_add(script,
                   "if [ ! -f \"$LAUNCH_DIR/%s\" ]; then\n"
                   "    echo \"there is no %s in $LAUNCH_DIR: set LAUNCH_DIR to its folder\" >&2\n"
                   "    exit 2\n"
                   "fi\n",
                   task->files[i].name, task->files[i].name);
}

void job_add_body(Script *script, const Job *job, const char *folder) {
    const LaunchTask *task = job->task;
    script_add(script, "set -euo pipefail\n");
    script_add(script, "\n# --- Yours to set, here or in the environment ---\n\n");
    add_folder(script, task, folder);
    script_add(script, "%s", task->settings);
    if (task->num_variables > 0)
        script_add(script, "\n# --- What the plan needs of the environment ---\n\n");
    for (int i = 0; i < task->num_variables; i++) {
        script_comment(script, task->variables[i].why);
        script_add(script, "export %s=%s\n", task->variables[i].name, task->variables[i].value);
    }
    script_add(script, "\n# --- The plan ---\n\n%s", task->arguments);
}

void job_add_start(Script *script) {
    script_add(script, "\n# --- Start ---\n\n");
}

void job_add_places(Script *script, const Job *job) {
    script_comment(script, "The plan's placement: the rank of each node, in the nodes' own order.");
    script_add(script, "export NODE_RANKS=\"%s\"\n", hosts_places(&job->hosts, script->arena));
}
