// tests/backend/mpi_program.c - each function of backend/mpi_comm.h beside plain arithmetic.
//
// Usage: mpirun -n 4 mpi-program
// Exit:  0 all as expected, 1 not (each process says what), 3 MPI does not start.
//
// Element i of what process p holds is p + 2 (i mod 100): sums of them are exact in all formats.
#include "backend/cpu_backend.h"
#include "backend/mpi_comm.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int num_failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (condition) break;                                                                      \
        num_failures++;                                                                            \
        fprintf(stderr, "%s:%d: process %d: not so: %s\n", __FILE__, __LINE__, mpi_rank(),         \
                #condition);                                                                       \
    } while (0)

enum { MAX_COUNT = 100003, MAX_RANKS = 4, UNSENT = -7 };

static const int64_t COUNTS[] = {0, 1, 7, 1000, MAX_COUNT};
static const Dtype DTYPES[] = {DTYPE_FP32, DTYPE_FP64, DTYPE_INT32};

static double value_of(int process, int64_t i) {
    return process + 2 * (double)(i % 100);
}

static void set(void *array, Dtype dtype, int64_t i, double value) {
    if (dtype == DTYPE_FP32) ((float *)array)[i] = (float)value;
    if (dtype == DTYPE_FP64) ((double *)array)[i] = value;
    if (dtype == DTYPE_INT32) ((int32_t *)array)[i] = (int32_t)value;
}

static double get(const void *array, Dtype dtype, int64_t i) {
    if (dtype == DTYPE_FP32) return ((const float *)array)[i];
    if (dtype == DTYPE_FP64) return ((const double *)array)[i];
    return ((const int32_t *)array)[i];
}

// Two arrays that hold UNSENT, each with `count` elements of all processes, and some behind.
typedef struct {
    void *in, *out;
} Arrays;

static Arrays arrays_make(Dtype dtype, int64_t count) {
    size_t size = ((size_t)count + 4) * MAX_RANKS;
    Arrays arrays = {calloc(size, dtype_bytes(dtype)), calloc(size, dtype_bytes(dtype))};
    if (arrays.in == NULL || arrays.out == NULL) mpi_abort(3);
    for (size_t i = 0; i < size; i++) {
        set(arrays.in, dtype, (int64_t)i, UNSENT);
        set(arrays.out, dtype, (int64_t)i, UNSENT);
    }
    return arrays;
}

static void arrays_free(Arrays arrays) {
    free(arrays.in);
    free(arrays.out);
}

// A Comm and the processes in it, by rank.
typedef struct {
    Comm *comm;
    const int *ranks;
} Group;

static void *element(void *array, Dtype dtype, int64_t i) {
    return (char *)array + i * (int64_t)dtype_bytes(dtype);
}

// Whether [first, first + count) of an array is what `process` holds from element `from` on.
static bool holds(const void *array, Dtype dtype, int64_t first, int64_t count, int process,
                  int64_t from) {
    for (int64_t i = 0; i < count; i++) {
        if (get(array, dtype, first + i) != value_of(process, from + i)) return false;
    }
    return true;
}

static void fill(void *array, Dtype dtype, int64_t first, int64_t count, int process,
                 int64_t from) {
    for (int64_t i = 0; i < count; i++) set(array, dtype, first + i, value_of(process, from + i));
}

// Sum or maximum over the group of element i.
static double reduced(const Group *group, ReduceOp op, int64_t i) {
    double sum = 0, max = -INFINITY;
    for (int r = 0; r < group->comm->size; r++) {
        sum += value_of(group->ranks[r], i);
        max = fmax(max, value_of(group->ranks[r], i));
    }
    return op == REDUCE_SUM ? sum : max;
}

// --- Collectives

static void test_all_reduce(const Group *group, Dtype dtype, int64_t count) {
    for (int op = REDUCE_SUM; op <= REDUCE_MAX; op++) {
        Arrays arrays = arrays_make(dtype, count);
        fill(arrays.in, dtype, 0, count, mpi_rank(), 0);
        group->comm->table->all_reduce(group->comm, arrays.in, count, dtype, (ReduceOp)op, NULL);
        bool right = true;
        for (int64_t i = 0; i < count; i++) {
            right = right && get(arrays.in, dtype, i) == reduced(group, (ReduceOp)op, i);
        }
        EXPECT(right);
        EXPECT(get(arrays.in, dtype, count) == UNSENT);
        arrays_free(arrays);
    }
}

static void test_all_gather(const Group *group, Dtype dtype, int64_t count, bool in_place) {
    Arrays arrays = arrays_make(dtype, count);
    void *own = in_place ? element(arrays.out, dtype, count * group->comm->rank) : arrays.in;
    fill(own, dtype, 0, count, mpi_rank(), 0);
    group->comm->table->all_gather(group->comm, arrays.out, own, count, dtype, NULL);
    for (int r = 0; r < group->comm->size; r++) {
        EXPECT(holds(arrays.out, dtype, r * count, count, group->ranks[r], 0));
    }
    arrays_free(arrays);
}

static void test_reduce_scatter(const Group *group, Dtype dtype, int64_t count, bool in_place) {
    Arrays arrays = arrays_make(dtype, count);
    int64_t own = count * group->comm->rank, whole = count * group->comm->size;
    fill(arrays.in, dtype, 0, whole, mpi_rank(), 0);
    void *out = in_place ? element(arrays.in, dtype, own) : arrays.out;
    group->comm->table->reduce_scatter(group->comm, out, arrays.in, count, dtype, NULL);
    bool right = true;
    for (int64_t i = 0; i < count; i++) {
        right = right && get(out, dtype, i) == reduced(group, REDUCE_SUM, own + i);
    }
    EXPECT(right);
    // The other parts of the input stay.
    EXPECT(holds(arrays.in, dtype, 0, own, mpi_rank(), 0));
    EXPECT(holds(arrays.in, dtype, own + count, whole - own - count, mpi_rank(), own + count));
    arrays_free(arrays);
}

// Rank r has (r + 1) mod 3 x `unit` elements.
static void test_parts(const Group *group, Dtype dtype, int64_t unit) {
    const int size = group->comm->size, rank = group->comm->rank;
    int64_t counts[MAX_RANKS], offsets[MAX_RANKS + 1] = {0};
    for (int r = 0; r < size; r++) {
        counts[r] = (r + 1) % 3 * unit;
        offsets[r + 1] = offsets[r] + counts[r];
    }
    Arrays arrays = arrays_make(dtype, 3 * unit);
    fill(arrays.in, dtype, 0, counts[rank], mpi_rank(), offsets[rank]);
    group->comm->table->all_gather_parts(group->comm, arrays.out, arrays.in, counts, dtype, NULL);
    for (int r = 0; r < size; r++)
        EXPECT(holds(arrays.out, dtype, offsets[r], counts[r], group->ranks[r], offsets[r]));
    EXPECT(get(arrays.out, dtype, offsets[size]) == UNSENT);
    arrays_free(arrays);
    arrays = arrays_make(dtype, 3 * unit);
    fill(arrays.in, dtype, 0, offsets[size], mpi_rank(), 0);
    group->comm->table->reduce_scatter_parts(group->comm, arrays.out, arrays.in, counts, dtype,
                                             NULL);
    bool right = true;
    for (int64_t i = 0; i < counts[rank]; i++)
        right = right && get(arrays.out, dtype, i) == reduced(group, REDUCE_SUM, offsets[rank] + i);
    EXPECT(right);
    EXPECT(get(arrays.out, dtype, counts[rank]) == UNSENT);
    arrays_free(arrays);
}

// Rank a sends (a + 2 b) mod 5 x `unit` elements to rank b; parts lie in reverse order, 3 apart.
static int64_t part_count(int from, int to, int64_t unit) {
    return (from + 2 * to) % 5 * unit;
}

static void test_all_to_all(const Group *group, Dtype dtype, int64_t unit) {
    int size = group->comm->size, rank = group->comm->rank;
    int64_t in_counts[MAX_RANKS], in_offsets[MAX_RANKS], out_counts[MAX_RANKS];
    int64_t out_offsets[MAX_RANKS], in_end = 0, out_end = 0;
    Arrays arrays = arrays_make(dtype, 4 * unit);
    for (int r = size - 1; r >= 0; r--) {
        in_counts[r] = part_count(rank, r, unit);
        out_counts[r] = part_count(r, rank, unit);
        in_offsets[r] = in_end;
        out_offsets[r] = out_end;
        fill(arrays.in, dtype, in_end, in_counts[r], mpi_rank(), r);
        in_end += in_counts[r] + 3;
        out_end += out_counts[r] + 3;
    }
    group->comm->table->all_to_all(group->comm, arrays.out, out_counts, out_offsets, arrays.in,
                                   in_counts, in_offsets, dtype, NULL);
    for (int r = 0; r < size; r++) {
        EXPECT(holds(arrays.out, dtype, out_offsets[r], out_counts[r], group->ranks[r], rank));
        EXPECT(get(arrays.out, dtype, out_offsets[r] + out_counts[r]) == UNSENT);
    }
    arrays_free(arrays);
}

static void test_broadcast(const Group *group, Dtype dtype, int64_t count) {
    for (int root = 0; root < group->comm->size; root++) {
        Arrays arrays = arrays_make(dtype, count);
        fill(arrays.in, dtype, 0, count, mpi_rank(), 0);
        group->comm->table->broadcast(group->comm, arrays.in, count, dtype, root, NULL);
        EXPECT(holds(arrays.in, dtype, 0, count, group->ranks[root], 0));
        arrays_free(arrays);
    }
}

// Each sends two messages of two lengths to each, itself too, and all are under way together.
static void test_exchange(const Group *group, Dtype dtype, int64_t count) {
    int size = group->comm->size;
    int64_t lengths[2] = {count / 4, count / 4 + count / 8}, both = lengths[0] + lengths[1];
    Message messages[4 * MAX_RANKS];
    int num_messages = 0;
    Arrays arrays = arrays_make(dtype, count);
    fill(arrays.in, dtype, 0, both, mpi_rank(), 0);
    for (int r = 0; r < size; r++) {
        for (int part = 0; part < 2; part++) {
            int64_t from = part * lengths[0];
            messages[num_messages++] =
                (Message){r, false, element(arrays.in, dtype, from), lengths[part], dtype, 0, 0};
            messages[num_messages++] = (Message){
                r, true, element(arrays.out, dtype, r * both + from), lengths[part], dtype, 0, 0};
        }
    }
    group->comm->table->exchange(group->comm, messages, num_messages, NULL);
    for (int r = 0; r < size; r++) {
        EXPECT(holds(arrays.out, dtype, r * both, both, group->ranks[r], 0));
    }
    EXPECT(get(arrays.out, dtype, size * both) == UNSENT);
    arrays_free(arrays);
}

static void test_collectives(const Group *group) {
    for (size_t d = 0; d < sizeof DTYPES / sizeof *DTYPES; d++) {
        for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
            test_all_reduce(group, DTYPES[d], COUNTS[c]);
            test_broadcast(group, DTYPES[d], COUNTS[c]);
            test_exchange(group, DTYPES[d], COUNTS[c]);
            test_all_to_all(group, DTYPES[d], COUNTS[c] / 10);
            test_parts(group, DTYPES[d], COUNTS[c] / 10);
            for (int in_place = 0; in_place < 2; in_place++) {
                test_all_gather(group, DTYPES[d], COUNTS[c], in_place);
                test_reduce_scatter(group, DTYPES[d], COUNTS[c], in_place);
            }
        }
    }
}

// --- Laws

// Sums of numbers that round: the same bits in every process, and in a second call.
static void test_order_of_sums(const Group *group) {
    enum { COUNT = 5001 };
    static double first[COUNT], second[COUNT], other[COUNT];
    for (int i = 0; i < COUNT; i++) first[i] = second[i] = sin(1.7 * i + 0.3 * mpi_rank());
    Comm *comm = group->comm;
    comm->table->all_reduce(comm, first, COUNT, DTYPE_FP64, REDUCE_SUM, NULL);
    comm->table->all_reduce(comm, second, COUNT, DTYPE_FP64, REDUCE_SUM, NULL);
    EXPECT(memcmp(first, second, sizeof first) == 0);
    memcpy(other, first, sizeof other);
    comm->table->broadcast(comm, other, COUNT, DTYPE_FP64, comm->size - 1, NULL);
    EXPECT(memcmp(first, other, sizeof first) == 0);
}

// Of 10 elements of fp32, 40 bytes, in a group of n: all_reduce and broadcast 40, all_gather and
// reduce_scatter (of parts too) 40 n, all_to_all of 10 for each 40 n, a message sent to oneself 40.
static void test_counts(Backend *backend, const int *ranks, int num_ranks) {
    float in[10 * MAX_RANKS] = {0}, out[10 * MAX_RANKS];
    const int64_t counts[MAX_RANKS] = {10, 10, 10, 10}, offsets[MAX_RANKS] = {0, 10, 20, 30};
    Comm *comm;
    Status status = mpi_comm_create(backend, ranks, num_ranks, &comm);
    EXPECT(status.code == STATUS_OK);
    if (status.code != STATUS_OK) return;
    comm->table->all_reduce(comm, in, 10, DTYPE_FP32, REDUCE_MAX, NULL);
    comm->table->broadcast(comm, in, 10, DTYPE_FP32, 0, NULL);
    comm->table->all_gather(comm, out, in, 10, DTYPE_FP32, NULL);
    comm->table->reduce_scatter(comm, out, in, 10, DTYPE_FP32, NULL);
    comm->table->all_gather_parts(comm, out, in, counts, DTYPE_FP32, NULL);
    comm->table->reduce_scatter_parts(comm, out, in, counts, DTYPE_FP32, NULL);
    comm->table->all_to_all(comm, out, counts, offsets, in, counts, offsets, DTYPE_FP32, NULL);
    const Message messages[] = {{comm->rank, false, in, 10, DTYPE_FP32, 0, 0},
                                {comm->rank, true, out, 10, DTYPE_FP32, 0, 0}};
    comm->table->exchange(comm, messages, 2, NULL);
    EXPECT(comm->num_calls == 8);
    const double sent_bytes[NUM_COMM_KINDS] = {[COMM_ALL_REDUCE] = 40,
                                               [COMM_ALL_GATHER] = 80.0 * num_ranks,
                                               [COMM_REDUCE_SCATTER] = 80.0 * num_ranks,
                                               [COMM_ALL_TO_ALL] = 40.0 * num_ranks,
                                               [COMM_BROADCAST] = 40,
                                               [COMM_MESSAGES] = 40};
    for (int kind = 0; kind < NUM_COMM_KINDS; kind++)
        EXPECT(comm->sent_bytes[kind] == sent_bytes[kind]);
    comm->table->free(comm);
}

// A failure is told by the backend, and what follows it is not run.
static void test_failures(const int *ranks, int num_ranks) {
    static const struct {
        int64_t count;
        Dtype dtype;
        const char *sentence;
    } CASES[] = {
        {1, DTYPE_BF16, "MPI cannot reduce bf16"},
        {3000000000, DTYPE_FP32, "all_reduce of 3000000000 elements: MPI counts to 2147483647"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Backend *backend;
        Comm *comm;
        Status status = cpu_backend_open(DTYPE_FP32, 0, &backend);
        EXPECT(status.code == STATUS_OK);
        status = mpi_comm_create(backend, ranks, num_ranks, &comm);
        EXPECT(status.code == STATUS_OK);
        float x = (float)mpi_rank();
        comm->table->all_reduce(comm, &x, CASES[i].count, CASES[i].dtype, REDUCE_SUM, NULL);
        comm->table->all_reduce(comm, &x, 1, DTYPE_FP32, REDUCE_SUM, NULL);
        EXPECT(x == (float)mpi_rank());
        EXPECT(strcmp(backend_sync(backend).text, CASES[i].sentence) == 0);
        EXPECT(comm->num_calls == 0);
        comm->table->free(comm);
        backend->table->close(backend);
    }
}

// A message longer than what its receiver has room for is MPI's own refusal.
static void test_refusal_of_mpi(const int *ranks, int num_ranks) {
    Backend *backend;
    Comm *comm;
    float in[2] = {0}, out[1];
    EXPECT(cpu_backend_open(DTYPE_FP32, 0, &backend).code == STATUS_OK);
    EXPECT(mpi_comm_create(backend, ranks, num_ranks, &comm).code == STATUS_OK);
    const Message messages[] = {{comm->rank, false, in, 2, DTYPE_FP32, 0, 0},
                                {comm->rank, true, out, 1, DTYPE_FP32, 0, 0}};
    comm->table->exchange(comm, messages, 2, NULL);
    Status status = backend_sync(backend);
    EXPECT(status.code == STATUS_MACHINE);
    EXPECT(strncmp(status.text, "MPI: exchange failed in process ", 32) == 0);
    comm->table->free(comm);
    backend->table->close(backend);
}

// --- All of it

static const struct {
    int num_ranks, ranks[MAX_RANKS];
} GROUPS[] = {{4, {0, 1, 2, 3}}, {4, {2, 0, 3, 1}}, {2, {3, 1}}, {3, {0, 2, 3}}, {1, {1}}};

static void run(Backend *backend) {
    for (size_t g = 0; g < sizeof GROUPS / sizeof *GROUPS; g++) {
        const int *ranks = GROUPS[g].ranks;
        int num_ranks = GROUPS[g].num_ranks, own = -1;
        for (int r = 0; r < num_ranks; r++) own = ranks[r] == mpi_rank() ? r : own;
        if (own < 0) continue;
        Group group = {.ranks = ranks};
        Status status = mpi_comm_create(backend, ranks, num_ranks, &group.comm);
        EXPECT(status.code == STATUS_OK);
        if (status.code != STATUS_OK) return;
        EXPECT(group.comm->rank == own && group.comm->size == num_ranks);
        test_collectives(&group);
        test_order_of_sums(&group);
        test_counts(backend, ranks, num_ranks);
        group.comm->table->free(group.comm);
        test_failures(ranks, num_ranks);
        test_refusal_of_mpi(ranks, num_ranks);
    }
}

int main(int argc, char **argv) {
    Status status = mpi_start(&argc, &argv);
    Backend *backend = NULL;
    if (status.code == STATUS_OK) status = cpu_backend_open(DTYPE_FP64, 0, &backend);
    if (status.code != STATUS_OK) {
        fprintf(stderr, "mpi-program: %s\n", status.text);
        mpi_end();
        return 3;
    }
    EXPECT(mpi_size() == MAX_RANKS);
    if (mpi_size() == MAX_RANKS) run(backend);
    EXPECT(backend_sync(backend).code == STATUS_OK);
    backend->table->close(backend);
    if (num_failures == 0 && mpi_rank() == 0) printf("all as expected\n");
    mpi_end();
    return num_failures == 0 ? 0 : 1;
}
