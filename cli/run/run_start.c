#include "cli/run/run_start.h"

#include "base/data_dir.h"
#include "base/mpi_folder.h"
#include "base/plugin.h"
#include "sim/client_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Status runtime_find(Arena *arena, const char **path) {
    const char *chosen = getenv("MESHWRIGHT_RUN"), *self = program_dir(arena);
    if (chosen && chosen[0]) {
        *path = chosen;
        if (access(chosen, X_OK) == 0) return status_ok();
        return status_error(STATUS_MACHINE, "MESHWRIGHT_RUN: %s is not a program", chosen);
    }
    *path = self ? arena_printf(arena, "%s/meshwright-run", self) : NULL;
    if (!*path || access(*path, X_OK) != 0) *path = program_on_path(arena, "meshwright-run");
    if (*path) return status_ok();
    return status_error(STATUS_MACHINE,
                        "the runtime meshwright-run is not installed: it is neither "
                        "beside meshwright nor on the PATH");
}

// ANSWER_NO is of a run of several processes: mpirun ends with 1 for reasons of its own.
enum { MAX_ARGUMENTS = 40, ANSWER_NO = 10 };

typedef struct {
    char *list[MAX_ARGUMENTS];
    int count;
} Arguments;

static void argument_add(Arguments *arguments, Arena *arena, const char *name, const char *value) {
    if (name) arguments->list[arguments->count++] = arena_strdup(arena, name);
    if (value) arguments->list[arguments->count++] = arena_strdup(arena, value);
}

static Status mpirun_add(const RunStart *start, Arena *arena, Arguments *arguments) {
    const char *mpirun = program_on_path(arena, "mpirun");
    if (!mpirun)
        return status_error(STATUS_MACHINE,
                            "%s: has %d processes, but there is no mpirun on the PATH (Open MPI)",
                            start->plan, start->num_ranks);
    argument_add(arguments, arena, mpirun, NULL);
    // They meet in the computer's memory: Open MPI need not look for fabrics, which takes 0.2 s.
    setenv("OMPI_MCA_pml", "^cm", false);
    setenv("MESHWRIGHT_RUN_ANSWER_NO", arena_printf(arena, "%d", ANSWER_NO), true);
    if (geteuid() == 0) argument_add(arguments, arena, "--allow-run-as-root", NULL);
    argument_add(arguments, arena, "--oversubscribe", NULL);
    const long num_cores = sysconf(_SC_NPROCESSORS_ONLN);
    const bool pinned = start->num_ranks <= num_cores;
    if (!pinned && strcmp(start->device, "cpu") == 0)
        fprintf(stderr,
                "%s: %d processes on %ld cores take turns: right, but not as fast as priced\n",
                start->plan, start->num_ranks, num_cores);
    argument_add(arguments, arena, "--bind-to", pinned ? "core" : "none");
    argument_add(arguments, arena, "-n", arena_printf(arena, "%d", start->num_ranks));
    return status_ok();
}

static Status arguments_of(const RunStart *start, Arena *arena, Arguments *arguments) {
    const char *runtime;
    TRY(runtime_find(arena, &runtime));
    if (start->num_ranks > 1) TRY(mpirun_add(start, arena, arguments));
    argument_add(arguments, arena, runtime, start->plan);
    argument_add(arguments, arena, "--steps", arena_printf(arena, "%d", start->num_steps));
    argument_add(arguments, arena, "--device", start->device);
    if (start->data) argument_add(arguments, arena, "--data", start->data);
    if (start->dtype) argument_add(arguments, arena, "--dtype", start->dtype);
    if (start->log) argument_add(arguments, arena, "--log", start->log);
    if (start->routing) argument_add(arguments, arena, "--routing", start->routing);
    if (start->times) argument_add(arguments, arena, "--times", start->times);
    return status_ok();
}

// Of a signal that no program can take.
static const char *signal_meaning(int signal) {
    return signal == SIGKILL ? ", as the system does where memory ran out" : "";
}

// The code that the runtime meant.
static StatusCode code_of(const RunStart *start, int exit_code) {
    if (exit_code == (start->num_ranks > 1 ? ANSWER_NO : STATUS_NO)) return STATUS_NO;
    return exit_code == STATUS_INVALID ? STATUS_INVALID : STATUS_MACHINE;
}

// What the runtime says of itself is on standard error already.
static Status end_status(const RunStart *start, const ProcessEnd *end) {
    if (end->interrupted) return status_error(STATUS_MACHINE, "%s: interrupted", start->plan);
    if (end->signal)
        return status_error(STATUS_MACHINE, "%s: the run was ended by signal %d%s", start->plan,
                            end->signal, signal_meaning(end->signal));
    if (end->exit_code == 0) return status_ok();
    if (end->exit_code > 128) // as mpirun and shells tell of a signal; mpirun has named the process
        return status_error(STATUS_MACHINE, "%s: a process of the run was ended by signal %d%s",
                            start->plan, end->exit_code - 128,
                            signal_meaning(end->exit_code - 128));
    const StatusCode code = code_of(start, end->exit_code);
    return status_error(code, "%s: the run ended with exit code %d", start->plan,
                        code == STATUS_NO ? STATUS_NO : end->exit_code);
}

Status run_start(const RunStart *start, Arena *arena) {
    Arguments arguments = {0};
    TRY(arguments_of(start, arena, &arguments));
    FILE *nothing = fopen("/dev/null", "r");
    if (!nothing) return status_error(STATUS_MACHINE, "/dev/null: %s", strerror(errno));
    fflush(NULL);
    ProcessSpec spec = {.argv = arguments.list,
                        .input = nothing,
                        .output = start->quiet ? stderr : stdout,
                        .errors = stderr,
                        .grace_s = 3}; // mpirun removes the memory that its processes share
    ProcessEnd end;
    MpiFolder folder = {0};
    Status status = start->num_ranks > 1 ? mpi_folder_open(&folder) : status_ok();
    if (status.code == STATUS_OK) status = process_run(&spec, &end);
    mpi_folder_close(&folder);
    fclose(nothing);
    TRY(status);
    return end_status(start, &end);
}
