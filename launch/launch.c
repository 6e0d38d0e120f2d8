#include "launch/launch.h"

#include "base/output_file.h"
#include "launch/megatron_script.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *const LAUNCH_TARGET_NAMES[NUM_LAUNCH_TARGETS + 1] = {
    "megatron", "torchtitan", "deepspeed", "nemo", "runtime", NULL};
const char *const LAUNCH_SCHEDULER_NAMES[NUM_LAUNCH_SCHEDULERS + 1] = {"torchrun", "slurm",
                                                                       "mpirun", "k8s", NULL};

Status launch_make(const Scenario *scenario, const Plan *plan, LaunchTarget target,
                   LaunchScheduler scheduler, Arena *arena, LaunchFile *out) {
    if (target != LAUNCH_MEGATRON)
        return status_error(STATUS_INVALID,
                            "meshwright: launch --for %s is not supported yet; there is megatron",
                            LAUNCH_TARGET_NAMES[target]);
    if (scheduler != LAUNCH_TORCHRUN && scheduler != LAUNCH_SLURM)
        return status_error(STATUS_INVALID,
                            "meshwright: launch --scheduler %s is not supported yet; there are "
                            "torchrun and slurm",
                            LAUNCH_SCHEDULER_NAMES[scheduler]);
    TRY(scenario_refuse_unlike_groups(scenario, "launch"));
    MegatronCommand command;
    TRY(megatron_command(scenario, plan, arena, &command));
    out->name = scheduler == LAUNCH_SLURM ? "launch.sbatch" : "launch.sh";
    out->text = megatron_script(scenario, plan, &command, scheduler, arena);
    return status_ok();
}

static Status text_save(const char *path, const char *text) {
    OutputFile file;
    TRY(output_open_program(path, &file));
    fputs(text, file.stream);
    return output_close(&file, status_ok());
}

// Whether a regular, executable file holds exactly these bytes.
static bool text_is_there(const char *path, const char *text) {
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode) || !(info.st_mode & S_IXUSR) ||
        (size_t)info.st_size != strlen(text))
        return false;
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    while (*text && fgetc(stream) == (unsigned char)*text) text++;
    fclose(stream);
    return *text == '\0';
}

Status launch_save(const LaunchFile *file, const char *folder, bool force, Arena *arena,
                   bool *unchanged) {
    const char *path = arena_printf(arena, "%s/%s", folder, file->name);
    struct stat info;
    *unchanged = text_is_there(path, file->text);
    if (*unchanged) return status_ok();
    if (!force && lstat(path, &info) == 0)
        return status_at(STATUS_INVALID, path, "", "is there already; --force overwrites it");
    return text_save(path, file->text);
}
