// base/mpi_folder.h - a folder of its own for what an mpirun keeps while it runs.
//
// All of one user's share a folder else (Open MPI 4: /tmp/ompi.HOST.USER), which the one that ends
// last removes, also where another is about to begin in it: that one fails. Open MPI reads the
// place from OMPI_MCA_orte_tmpdir_base (orte_tmpdir_base in ompi_info --all).
#pragma once

#include "base/status.h"

enum { MPI_FOLDER_SIZE = 4096 };

typedef struct {
    char path[MPI_FOLDER_SIZE]; // "": none was made
} MpiFolder;

// Makes one below TMPDIR or /tmp and names it in the environment; makes none where the environment
// names one already. STATUS_MACHINE where it cannot be made.
Status mpi_folder_open(MpiFolder *out);

// Once mpirun has ended: removes it with all that is in it; accepts a zeroed one.
void mpi_folder_close(MpiFolder *folder);
