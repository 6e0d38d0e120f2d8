// backend/mpi_comm.h - Comm by MPI, and the start and the end of a process of a run.
//
// Arrays are in the memory of the host. A call is done when it returns. What is reduced is fp32,
// fp64 or int32; the order of a sum is MPI's, the same in each run of the same processes, and all
// get the same bits.
#pragma once

#include "backend/comm.h"

// Once, before all else; both may be NULL. Failures of MPI are answers from then on.
Status mpi_start(int *argc, char ***argv);
void mpi_end(void); // does nothing where mpi_start did not succeed

int mpi_rank(void); // of this process among all
int mpi_size(void);

// Of this process among those of its machine, in the order of their ranks. All call it.
Status mpi_local_rank(int *out);

// The sum over the processes of this machine. All call it.
Status mpi_machine_sum(double *number);

// Brings `num` numbers of every process to the first, which gets them in the order of ranks.
//   all  [processes x num]; of the others NULL
Status mpi_gather(const double *own, int num, double *all);

// Stops all processes of the run, this one too.
_Noreturn void mpi_abort(int exit_code);

// A group of processes, by their ranks among all; all of them call this at the same time, and only
// they. The backend keeps its failures and must outlive it.
Status mpi_comm_create(Backend *backend, const int *ranks, int num_ranks, Comm **out);
