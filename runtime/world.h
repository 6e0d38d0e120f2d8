// runtime/world.h - the processes of a run, and the groups in which they talk.
//
// Ranks are numbered as workload/pass/group.h says. A process that was started alone does without
// MPI.
#pragma once

#include "backend/comm.h"
#include "plan/plan.h"
#include "workload/pass/group.h"

typedef struct {
    int rank, size;              // of all processes
    int local_rank;              // of those on this machine: the number of its GPU
    bool cuda;                   // groups are NCCL's
    bool mpi;                    // MPI is in use
    Comm *comms[NUM_GROUPS];     // NULL: this process is alone in its group, or nobody asked for it
    Comm *all;                   // NULL: one process
    int index[NUM_GROUPS];       // of this process in its group
    int num_members[NUM_GROUPS]; // 1 where comms is NULL
} World;

// Joins the processes that were started together (mpirun).
Status world_join(World *world);

// Refuses a plan, read from path, for another number of processes.
Status world_check(const World *world, const Plan *plan, const char *path);

// The sum of a number of each process over those of this machine. All call it.
Status world_machine_sum(const World *world, double *number);

// Makes the groups of more than one, of GPUs where cuda; the backend must outlive them.
//   experts  whether those of experts too
Status world_connect(World *world, const Plan *plan, bool experts, bool cuda, Backend *backend);
void world_disconnect(World *world); // accepts one without groups

// Leaves, with the sentence of a failure if it has one. Where the machine failed one process, all
// others end too.
void world_leave(World *world, Status status);
