// Which calls of a Comm are measured, on ranks that play together in one process: each call is
// kept, and what it would send is set beside the message size of the table.
#include "profiler/team_work.h"

#include "config/kernels/kernel_nccl.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>
#include <string.h>

enum { NUM_RANKS = 4 };

typedef struct {
    Comm base;
    const char *call;
    int64_t count; // of the call, or of each part
    const char *out, *in;
    int64_t last_offset;
    Message messages[2];
    int num_messages;
} Played;

static Played *played(Comm *comm) {
    return (Played *)comm;
}

static void keep(Comm *comm, const char *call, int64_t count, void *out, const void *in) {
    Played *p = played(comm);
    CU_ASSERT_PTR_NULL(p->call); // one call
    p->call = call;
    p->count = count;
    p->out = out;
    p->in = in;
}

static void all_reduce(Comm *comm, void *array, int64_t count, Dtype dtype, ReduceOp op,
                       BackendStream *stream) {
    (void)stream;
    CU_ASSERT(dtype == DTYPE_BF16 && op == REDUCE_SUM);
    keep(comm, "all_reduce", count, array, NULL);
}

static void all_gather(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                       BackendStream *stream) {
    (void)stream;
    CU_ASSERT_EQUAL(dtype, DTYPE_BF16);
    keep(comm, "all_gather", count, out, in);
}

static void reduce_scatter(Comm *comm, void *out, const void *in, int64_t count, Dtype dtype,
                           BackendStream *stream) {
    (void)stream;
    CU_ASSERT_EQUAL(dtype, DTYPE_BF16);
    keep(comm, "reduce_scatter", count, out, in);
}

static void all_to_all(Comm *comm, void *out, const int64_t *out_counts, const int64_t *out_offsets,
                       const void *in, const int64_t *in_counts, const int64_t *in_offsets,
                       Dtype dtype, BackendStream *stream) {
    (void)stream;
    CU_ASSERT_EQUAL(dtype, DTYPE_BF16);
    keep(comm, "alltoall", in_counts[0], out, in);
    for (int i = 0; i < comm->size; i++) {
        CU_ASSERT(in_counts[i] == in_counts[0] && out_counts[i] == in_counts[0]);
        CU_ASSERT(in_offsets[i] == i * in_counts[0] && out_offsets[i] == in_offsets[i]);
    }
    played(comm)->last_offset = in_offsets[comm->size - 1];
}

static void exchange(Comm *comm, const Message *messages, int num_messages, BackendStream *stream) {
    (void)stream;
    keep(comm, "exchange", 0, NULL, NULL);
    CU_ASSERT_FATAL(num_messages <= 2);
    for (int i = 0; i < num_messages; i++) played(comm)->messages[i] = messages[i];
    played(comm)->num_messages = num_messages;
}

static const CommTable TABLE = {.all_reduce = all_reduce,
                                .all_gather = all_gather,
                                .reduce_scatter = reduce_scatter,
                                .all_to_all = all_to_all,
                                .exchange = exchange};

static char in[1], out[1];

static void play(const TeamRequest *request, Played *ranks) {
    memset(ranks, 0, NUM_RANKS * sizeof *ranks);
    for (int i = 0; i < request->num_gpus; i++) {
        ranks[i].base = (Comm){.table = &TABLE, .rank = i, .size = request->num_gpus};
        team_call(&ranks[i].base, request, out, in, NULL);
    }
}

// 4 ranks and 4096 elements: of an all-reduce on each rank, of the others in all, 1024 a rank.
static void message_sizes_are_those_of_the_public_tables(void) {
    static const struct {
        const char *name;
        int64_t count, in, out;
    } EXPECTED[] = {
        {"all_gather", 1024, 1024, 4096},
        {"all_reduce", 4096, 0, 4096},
        {"alltoall", 1024, 4096, 4096},
        {"reduce_scatter", 1024, 4096, 1024},
    };
    Played ranks[NUM_RANKS];
    for (int op = 0; op < 4; op++) {
        TeamRequest request = {.op = (TeamOp)op, .num_gpus = NUM_RANKS, .num_elements = 4096};
        TeamRoom room = team_room(&request);
        CU_ASSERT(room.in == EXPECTED[op].in && room.out == EXPECTED[op].out);
        play(&request, ranks);
        for (int i = 0; i < NUM_RANKS; i++) {
            CU_ASSERT_PTR_NOT_NULL_FATAL(ranks[i].call);
            CU_ASSERT_STRING_EQUAL(ranks[i].call, EXPECTED[op].name);
            CU_ASSERT_EQUAL(ranks[i].count, EXPECTED[op].count);
            CU_ASSERT_PTR_EQUAL(ranks[i].out, out);
            CU_ASSERT_PTR_EQUAL(ranks[i].in, op == TEAM_ALL_REDUCE ? NULL : in);
        }
        // The last part ends where the array does.
        if (op == TEAM_ALL_TO_ALL) CU_ASSERT_EQUAL(ranks[0].last_offset + ranks[0].count, room.in);
    }
}

// Every message that is sent is received by the rank it is sent to, from the one that sent it.
static void check_messages(const Played *ranks, int num_ranks, int expected) {
    int num_sent = 0, num_received = 0;
    for (int i = 0; i < num_ranks; i++)
        for (int j = 0; j < ranks[i].num_messages; j++) {
            const Message *m = &ranks[i].messages[j];
            CU_ASSERT_FATAL(m->peer >= 0 && m->peer < num_ranks && m->peer != i);
            CU_ASSERT(m->count == 512 && m->dtype == DTYPE_BF16);
            CU_ASSERT_PTR_EQUAL(m->array, m->receive ? out : in);
            num_received += m->receive;
            if (m->receive) continue;
            num_sent++;
            bool met = false;
            for (int l = 0; l < ranks[m->peer].num_messages; l++)
                met |= ranks[m->peer].messages[l].receive && ranks[m->peer].messages[l].peer == i;
            CU_ASSERT(met);
        }
    CU_ASSERT_EQUAL(num_sent, expected);
    CU_ASSERT_EQUAL(num_received, expected);
}

static void messages_meet(void) {
    Played ranks[NUM_RANKS];
    TeamRequest request = {.op = TEAM_EXCHANGE, .num_gpus = 2, .num_elements = 512};
    play(&request, ranks);
    check_messages(ranks, 2, 2);
    request.num_gpus = 4;
    play(&request, ranks);
    check_messages(ranks, 4, 4);
    request.op = TEAM_SEND_RECV;
    play(&request, ranks);
    check_messages(ranks, 4, 1);
    TeamRoom room = team_room(&request);
    CU_ASSERT(room.in == 512 && room.out == 512);
}

// calibrate reads the collectives by name.
static void collectives_have_the_names_of_kernel_profiles(void) {
    for (int op = 0; op < NUM_NCCL_OPS; op++)
        CU_ASSERT_STRING_EQUAL(TEAM_OP_NAMES[op], NCCL_OP_NAMES[op]);
    CU_ASSERT_PTR_NULL(TEAM_OP_NAMES[NUM_TEAM_OPS]);
}

CU_TestInfo team_work_tests[] = {
    {"message_sizes_are_those_of_the_public_tables", message_sizes_are_those_of_the_public_tables},
    {"messages_meet", messages_meet},
    {"collectives_have_the_names_of_kernel_profiles",
     collectives_have_the_names_of_kernel_profiles},
    CU_TEST_INFO_NULL,
};
