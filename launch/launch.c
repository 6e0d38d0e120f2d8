#include "launch/launch.h"

#include "config/job/scenario_front.h"

#include "base/file_hash.h"
#include "base/output_file.h"
#include "launch/job.h"
#include "launch/task.h"
#include "plan/layer_plans.h"
#include "plan/rule_check.h"

#include <stdio.h>
#include <string.h>

const char *const LAUNCH_TARGET_NAMES[NUM_LAUNCH_TARGETS + 1] = {
#define X(kind, name) name,
#include "launch/targets.def"
#undef X
    NULL};
const char *const LAUNCH_SCHEDULER_NAMES[NUM_LAUNCH_SCHEDULERS + 1] = {"torchrun", "slurm",
                                                                       "mpirun", "k8s", NULL};

static const Target *const TARGETS[NUM_LAUNCH_TARGETS] = {
#define X(kind, name) &TARGET_##kind,
#include "launch/targets.def"
#undef X
};

typedef struct {
    const char *file; // name of what starts the job
    const char *(*write)(const Job *job);
    bool starts_mpi; // processes that are MPI's own
} Scheduler;

static const Scheduler SCHEDULERS[NUM_LAUNCH_SCHEDULERS] = {
    [LAUNCH_TORCHRUN] = {"launch.sh", job_torchrun, false},
    [LAUNCH_SLURM] = {"launch.sbatch", job_slurm, true},
    [LAUNCH_MPIRUN] = {"launch-mpirun.sh", job_mpirun, true},
    [LAUNCH_K8S] = {"launch.yaml", job_kubernetes, false},
};

static Status scheduler_check(const Job *job, LaunchScheduler scheduler) {
    const char *software = job->task->software;
    if (job->task->mpi && !SCHEDULERS[scheduler].starts_mpi)
        return status_error(STATUS_INVALID,
                            "meshwright: launch --scheduler %s: starts Python under torchrun; the "
                            "processes of %.*s are MPI's own; nearest: --scheduler "
                            "mpirun or slurm",
                            LAUNCH_SCHEDULER_NAMES[scheduler], (int)strcspn(software, ","),
                            software);
    if (job->hosts.order && scheduler == LAUNCH_K8S)
        return status_at(STATUS_INVALID, job->scenario->file, "parallel.placement",
                         "a PyTorchJob does not say which node runs which pod: Kubernetes cannot "
                         "place this plan as priced; nearest: no placement, or --scheduler slurm");
    return status_ok();
}

bool launch_target_of(const Scenario *scenario, LaunchTarget *out) {
    const RuleTable *table = scenario->execution.stack.rules;
    const char *name = table ? table->launch[0] : NULL;
    for (int i = 0; name && i < NUM_LAUNCH_TARGETS; i++) {
        if (strcmp(name, LAUNCH_TARGET_NAMES[i]) != 0) continue;
        *out = (LaunchTarget)i;
        return true;
    }
    return false;
}

bool task_model_obeys(const Scenario *scenario, const RuleTable *table) {
    const Rule *broken[RULES_MAX];
    const int num = scenario_broken_rules(scenario, table, broken);
    for (int i = 0; i < num; i++)
        if (strncmp(broken[i]->key, "model", 5) == 0) return false;
    return true;
}

bool launch_has_model(const Scenario *scenario, Arena *arena) {
    LaunchTarget target;
    if (!launch_target_of(scenario, &target) || !task_model_obeys(scenario, NULL)) return false;
    return !TARGETS[target]->has_model || TARGETS[target]->has_model(scenario, arena);
}

LaunchScheduler launch_plain_scheduler(LaunchTarget target) {
    return TARGETS[target]->mpi ? LAUNCH_MPIRUN : LAUNCH_TORCHRUN;
}

int launch_file_names(LaunchTarget target, const char **names) {
    int num = 0;
    names[num++] = SCHEDULERS[launch_plain_scheduler(target)].file;
    names[num++] = SCHEDULERS[LAUNCH_SLURM].file;
    for (int i = 0; TARGETS[target]->files[i]; i++) names[num++] = TARGETS[target]->files[i];
    return num;
}

Status launch_make(const Scenario *scenario, const Plan *plan, LaunchTarget target,
                   LaunchScheduler scheduler, Arena *arena, LaunchFiles *out) {
    TRY(scenario_refuse_unlike_groups(scenario, "launch"));
    TRY(scenario_refuse_front(scenario, "launch"));
    if (scenario->training.tuning.frozen)
        return status_at(STATUS_INVALID, scenario->file, "training.frozen",
                         "legal, but launch freezes no parts yet");
    if (fine_tuning_freezes(&scenario->training.tuning))
        return status_at(STATUS_INVALID, scenario->file, "training.adapters",
                         "legal, but launch writes no adapters yet");
    TRY(plan_refuse_layers(scenario, plan,
                           arena_printf(arena, "a launch for %s", LAUNCH_TARGET_NAMES[target])));
    LaunchTask task;
    TRY(TARGETS[target]->make(scenario, plan, arena, &task));
    task.mpi = TARGETS[target]->mpi;
    Job job = {.scenario = scenario,
               .plan = plan,
               .task = &task,
               .hosts = hosts_of(scenario, plan),
               .arena = arena};
    TRY(scheduler_check(&job, scheduler));
    const Scheduler *starter = &SCHEDULERS[scheduler];
    out->files[0] = (LaunchFile){starter->file, starter->write(&job), scheduler != LAUNCH_K8S};
    out->num_files = 1;
    if (scheduler == LAUNCH_K8S) return status_ok(); // the files are in its ConfigMap
    for (int i = 0; i < task.num_files; i++) out->files[out->num_files++] = task.files[i];
    return status_ok();
}

AnswerPart launch_part(const Scenario *scenario, const Plan *plan, LaunchTarget target,
                       Arena *arena) {
    const char *text =
        arena_printf(arena, "%s %s", plan_id(scenario, plan, arena), LAUNCH_TARGET_NAMES[target]);
    return (AnswerPart){.name = "launch", .id = text_hash(text, arena), .adds = true};
}

Status launch_save(const LaunchFiles *files, AnswerFolder *folder) {
    for (int i = 0; i < files->num_files; i++) {
        const LaunchFile *from = &files->files[i];
        const char *path = answer_folder_path(folder, from->name, "launch");
        OutputFile file;
        TRY(from->program ? output_open_program(path, &file) : output_open(path, &file));
        fputs(from->text, file.stream);
        TRY(output_close(&file, status_ok()));
    }
    return status_ok();
}
