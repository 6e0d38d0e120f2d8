#include "cli/ranks.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *size, *local_size; // variables with numbers
    const char *jobs[2];           // together they name the job; NULL: one is enough
} Launcher;

static const Launcher LAUNCHERS[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", {"PMIX_NAMESPACE", NULL}},
    // Of a step: a batch script is one process, whatever the job has.
    {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE", {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
    {"PMI_SIZE", "MPI_LOCALNRANKS", {"PMI_PORT", NULL}},
};

static int number_of(const char *variable) {
    const char *text = getenv(variable);
    const int number = text ? atoi(text) : 0;
    return number > 0 ? number : 0;
}

static void job_read(const Launcher *launcher, char *job, size_t size) {
    const char *first = getenv(launcher->jobs[0]);
    const char *second = launcher->jobs[1] ? getenv(launcher->jobs[1]) : "";
    if (!first || !second || strpbrk(first, " \t\n")) return;
    const int length = snprintf(job, size, "%s%s%s", first, second[0] ? "." : "", second);
    if (length < 0 || (size_t)length >= size) job[0] = '\0';
}

Ranks ranks_read(void) {
    Ranks ranks = {.num_ranks = 1, .num_local = 1};
    for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++) {
        const Launcher *launcher = &LAUNCHERS[i];
        const int size = number_of(launcher->size);
        if (size <= 1) continue;
        ranks.num_ranks = size;
        if (number_of(launcher->local_size) > 1) ranks.num_local = number_of(launcher->local_size);
        job_read(launcher, ranks.job, sizeof ranks.job);
        break;
    }
    return ranks;
}

int ranks_threads(const Ranks *ranks, int most) {
    cpu_set_t set;
    int num_cpus = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) num_cpus = CPU_COUNT(&set);
    const int share = num_cpus / ranks->num_local;
    return share < 1 ? 1 : share > most ? most : share;
}
