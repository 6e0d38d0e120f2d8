#include "runtime/world.h"

#include "backend/cuda_backend.h"
#include "backend/mpi_comm.h"
#include "runtime/mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Whether a launcher says that it started more than this process.
static bool started_together(void) {
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE",
                                        "PMIX_SIZE"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *size = getenv(NAMES[i]);
        if (size && atoi(size) > 1) return true;
    }
    return false;
}

Status world_join(World *world) {
    *world = (World){.size = 1};
    for (int kind = 0; kind < NUM_GROUPS; kind++) world->num_members[kind] = 1;
    if (!started_together()) return status_ok();
    TRY(mpi_start(NULL, NULL));
    world->mpi = true;
    world->rank = mpi_rank();
    world->size = mpi_size();
    // What mpirun says is what a user may set, as for two processes on one GPU.
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    if (!local) return mpi_local_rank(&world->local_rank);
    world->local_rank = atoi(local);
    return status_ok();
}

// Members of a group of GPUs: one makes the id of NCCL's group, MPI takes it to the others.
static Status cuda_connect(const World *world, Backend *backend, const int *ranks, int num_ranks,
                           Comm **out) {
    enum { ID_WORDS = CUDA_COMM_ID_BYTES / 4 };
    union {
        unsigned char bytes[CUDA_COMM_ID_BYTES];
        int32_t words[ID_WORDS];
    } id = {{0}};
    int index = 0;
    while (ranks[index] != world->rank) index++;
    Comm *host = NULL;
    TRY(mpi_comm_create(backend, ranks, num_ranks, &host));
    const Status made = index == 0 ? cuda_comm_id(backend, id.bytes) : status_ok();
    host->table->broadcast(host, id.words, ID_WORDS, DTYPE_INT32, 0, NULL);
    host->table->free(host);
    TRY(made);
    TRY(backend->failure);
    return cuda_comm_create(backend, id.bytes, index, num_ranks, out);
}

static Status ranks_connect(const World *world, Backend *backend, const int *ranks, int num_ranks,
                            Comm **out) {
    if (world->cuda) return cuda_connect(world, backend, ranks, num_ranks, out);
    return mpi_comm_create(backend, ranks, num_ranks, out);
}

static Status group_connect(World *world, const Plan *plan, GroupKind kind, Backend *backend) {
    const Group group = plan_group(plan, kind);
    const int index = world->rank / group.stride % group.size;
    world->index[kind] = index;
    world->num_members[kind] = group.size;
    if (group.size == 1) return status_ok();
    int *ranks = malloc((size_t)group.size * sizeof *ranks);
    if (!ranks) return status_error(STATUS_MACHINE, "no memory for a list of processes");
    const bool wrong = kind == GROUP_EP && mutant("ep-strided-as-replicas");
    const int stride = wrong ? plan_group(plan, GROUP_EDP).stride : group.stride;
    const int first = world->rank - world->rank / stride % group.size * stride;
    for (int i = 0; i < group.size; i++) ranks[i] = first + i * stride;
    const Status status = ranks_connect(world, backend, ranks, group.size, &world->comms[kind]);
    free(ranks);
    return status;
}

static Status all_connect(World *world, Backend *backend) {
    int *ranks = malloc((size_t)world->size * sizeof *ranks);
    if (!ranks) return status_error(STATUS_MACHINE, "no memory for a list of processes");
    for (int i = 0; i < world->size; i++) ranks[i] = i;
    const Status status = ranks_connect(world, backend, ranks, world->size, &world->all);
    free(ranks);
    return status;
}

Status world_check(const World *world, const Plan *plan, const char *path) {
    const int64_t wanted = plan_stage_gpus(plan) * plan->pp;
    if (wanted == world->size) return status_ok();
    return status_error(STATUS_INVALID,
                        "%s: the plan is for %lld process%s, %d %s started; mpirun -n %lld "
                        "meshwright-run %s starts as many",
                        path, (long long)wanted, wanted == 1 ? "" : "es", world->size,
                        world->size == 1 ? "was" : "were", (long long)wanted, path);
}

Status world_machine_sum(const World *world, double *number) {
    return world->mpi ? mpi_machine_sum(number) : status_ok();
}

Status world_connect(World *world, const Plan *plan, bool experts, bool cuda, Backend *backend) {
    if (world->size == 1) return status_ok();
    world->cuda = cuda;
    for (int kind = 0; kind < NUM_GROUPS; kind++) {
        const bool of_experts = kind >= GROUP_EP && kind <= GROUP_EREPLICA;
        if (experts || !of_experts) TRY(group_connect(world, plan, (GroupKind)kind, backend));
    }
    return all_connect(world, backend);
}

void world_disconnect(World *world) {
    for (int kind = 0; kind < NUM_GROUPS; kind++) {
        Comm *comm = world->comms[kind];
        if (comm) comm->table->free(comm);
        world->comms[kind] = NULL;
    }
    if (world->all) world->all->table->free(world->all);
    world->all = NULL;
}

// `meshwright run` asks for another code than 1, with which mpirun ends for reasons of its own.
static int exit_code_of(StatusCode code) {
    const char *asked = getenv("MESHWRIGHT_RUN_ANSWER_NO");
    return code == STATUS_NO && asked ? atoi(asked) : (int)code;
}

// A process that fails alone must not leave the others waiting in a collective. What all refuse
// alike, a bad input or a machine that will not do before there are groups, the first says, before
// the others have waited for it: it ends them, so a long wait is only as long where it has not
// failed.
void world_leave(World *world, Status status) {
    enum { FIRST_SPEAKS_S = 10 };
    const bool failed = status.code != STATUS_OK;
    const bool alike = status.code != STATUS_MACHINE || !world->all;
    if (failed && world->rank != 0 && alike) sleep(FIRST_SPEAKS_S);
    if (failed && status.text[0] != '\0') fprintf(stderr, "%s\n", status.text);
    fflush(NULL);
    if (failed && world->mpi) mpi_abort(exit_code_of(status.code));
    if (world->mpi) mpi_end();
    *world = (World){.size = 1};
}
