// tests/checked_gpu/group_program.c - two processes whose calls of NCCL do not fit each other,
// which the checked GPU is to find; or do, which it is to let pass.
//
// Usage: mpirun -n 2 checked-groups right|counts|order|short
#include "backend/cuda_backend.h"
#include "backend/mpi_comm.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 8 };

// The id goes from the first process to the second, as in runtime/world.c.
static Status group_make(Backend *backend, Comm **out) {
    const int ranks[] = {0, 1};
    union {
        unsigned char bytes[CUDA_COMM_ID_BYTES];
        int32_t words[CUDA_COMM_ID_BYTES / 4];
    } id = {{0}};
    Comm *host;
    TRY(mpi_comm_create(backend, ranks, 2, &host));
    if (mpi_rank() == 0) TRY(cuda_comm_id(backend, id.bytes));
    host->table->broadcast(host, id.words, CUDA_COMM_ID_BYTES / 4, DTYPE_INT32, 0, NULL);
    host->table->free(host);
    return cuda_comm_create(backend, id.bytes, mpi_rank(), 2, out);
}

static void exchange(Comm *comm, float *array, int64_t count) {
    const Message message = {.peer = 1 - comm->rank,
                             .receive = comm->rank == 1,
                             .array = array,
                             .count = count,
                             .dtype = DTYPE_FP32};
    comm->table->exchange(comm, &message, 1, comm->backend->stream);
}

static void calls(const char *what, Comm *comm, float *array) {
    BackendStream *stream = comm->backend->stream;
    const bool first = comm->rank == 0;
    const int64_t other = first ? COUNT : COUNT / 2;
    const CommTable *table = comm->table;
    if (strcmp(what, "counts") == 0) {
        table->all_reduce(comm, array, other, DTYPE_FP32, REDUCE_SUM, stream);
    } else if (strcmp(what, "order") == 0 && first) {
        table->all_gather(comm, array, array, COUNT / 2, DTYPE_FP32, stream);
        table->broadcast(comm, array, COUNT / 2, DTYPE_FP32, 0, stream);
    } else if (strcmp(what, "order") == 0) {
        table->broadcast(comm, array, COUNT / 2, DTYPE_FP32, 0, stream);
        table->all_gather(comm, array, array + COUNT / 2, COUNT / 2, DTYPE_FP32, stream);
    } else if (strcmp(what, "short") == 0) {
        exchange(comm, array, first ? COUNT / 2 : COUNT);
    } else {
        table->all_reduce(comm, array, COUNT, DTYPE_FP32, REDUCE_SUM, stream);
        exchange(comm, array, COUNT);
    }
}

static Status run(const char *what) {
    Backend *backend;
    Comm *comm;
    TRY(cuda_backend_open(0, DTYPE_FP32, &backend));
    TRY(group_make(backend, &comm));
    float *array = backend->table->alloc(backend, COUNT * sizeof *array);
    backend->table->zero(backend, array, COUNT * sizeof *array, backend->stream);
    calls(what, comm, array);
    TRY(backend_sync(backend));
    comm->table->free(comm);
    backend->table->release(backend, array, COUNT * sizeof *array);
    backend->table->close(backend);
    return status_ok();
}

int main(int argc, char **argv) {
    Status status =
        argc == 2 ? mpi_start(NULL, NULL) : status_error(STATUS_INVALID, "one argument");
    if (status.code == STATUS_OK) status = run(argv[1]);
    if (status.code != STATUS_OK) {
        fprintf(stderr, "checked-groups: %s\n", status.text);
        return 1;
    }
    printf("%s: nothing was found\n", argv[1]);
    mpi_end();
    return 0;
}
