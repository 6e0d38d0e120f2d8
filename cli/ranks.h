// cli/ranks.h - processes that a launcher (mpirun, srun) started together with this one.
//
// Nothing of MPI is linked or started: launchers say it in the environment. Open MPI: mpirun(1),
// "Exported environment variables"; Slurm: srun(1), "Output environment variables"; MPICH: the
// variables of its process manager Hydra.
#pragma once

typedef struct {
    int num_ranks; // 1: this process alone
    int num_local; // of them on this machine, >= 1
    char job[256]; // the same for all of them, and for no others; "": not known
} Ranks;

Ranks ranks_read(void);

// Threads for this process: the cores that it may use, shared with the other local ranks.
int ranks_threads(const Ranks *ranks, int most);
