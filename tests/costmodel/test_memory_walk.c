// What a rank's chunks hold along the order of its work, and along its Program.
#include "costmodel/memory/memory.h"
#include "costmodel/memory/memory_walk.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-3)

static const int NO_BLOCKS[MAX_BLOCKS] = {0};

static RankMemory account_of(Case *c, int rank) {
    return memory_closed_form(&c->scenario, &c->plan, &c->workload, rank);
}

static const char *const LAYERS_13 =
    "{\"model_type\": \"generic\", \"name\": \"thirteen\", \"hidden_size\": 64,"
    " \"intermediate_size\": 256, \"num_hidden_layers\": 13, \"num_attention_heads\": 4,"
    " \"vocab_size\": 1000}";

// One micro-batch and one plan: every rank's closed form against the sum over its instructions.
static void assert_closed_form(int pp, int vpp, int num_microbatches, const char *rest,
                               bool p2p_overlap) {
    Case c;
    Arena arena = {0};
    const char *training =
        arena_printf(&arena, "{\"seq_len\": 64, \"global_batch\": %d}", num_microbatches);
    const char *parallel = arena_printf(&arena, "{\"pp\": %d, \"vpp\": %d, %s}", pp, vpp, rest);
    if (case_make(&c, LAYERS_13, pp, training, parallel)) {
        c.scenario.execution.stack.communication.p2p_overlap = p2p_overlap;
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        double most = 0;
        for (int r = 0; r < pp; r++) {
            const RankMemory sum =
                memory_running_sum(&c.scenario, &c.plan, &c.workload, &program, r);
            const RankMemory closed = account_of(&c, r);
            ASSERT_CLOSE(closed.activations_bytes, sum.activations_bytes);
            ASSERT_CLOSE(closed.peak_bytes, sum.peak_bytes);
            most = fmax(most, sum.peak_bytes);
        }
        int worst;
        ASSERT_CLOSE(memory_worst_rank(&c.scenario, &c.plan, &c.workload, &worst).peak_bytes, most);
        ASSERT_CLOSE(account_of(&c, worst).peak_bytes, most);
    }
    case_free(&c);
    arena_free(&arena);
}

static void assert_closed_forms(int pp, int vpp, int num_microbatches, const char *rest) {
    assert_closed_form(pp, vpp, num_microbatches, rest, true);
    if (vpp > 1) assert_closed_form(pp, vpp, num_microbatches, rest, false);
}

static void closed_form_is_the_running_sum(void) {
    static const char *const RECOMPUTES[] = {"\"recompute\": \"none\"", "\"recompute\": \"full\"",
                                             "\"recompute\": \"full\", \"recompute_layers\": 2"};
    static const char *const ONE_CHUNK[] = {"gpipe", "zb-h1", "zb-h2"};
    static const char *const TWO_CHUNKS[] = {"breadth-first", "v-half", "v-min", "zb-v"};
    for (int pp = 1; pp <= 5; pp++)
        for (int num_microbatches = 1; num_microbatches <= 24; num_microbatches++) {
            const char *rest = RECOMPUTES[(pp + num_microbatches) % 3];
            Arena arena = {0};
            for (int vpp = 1; vpp <= 3 && pp * vpp <= 15; vpp++)
                assert_closed_forms(pp, vpp, num_microbatches, rest);
            for (int i = 0; i < 3; i++)
                assert_closed_forms(pp, 1, num_microbatches,
                                    arena_printf(&arena, "\"schedule\": \"%s\"", ONE_CHUNK[i]));
            for (int i = pp > 1 ? 0 : 1; i < 4; i++)
                assert_closed_forms(pp, 2, num_microbatches,
                                    arena_printf(&arena, "\"schedule\": \"%s\"", TWO_CHUNKS[i]));
            if (pp % 2 == 0 && num_microbatches % 2 == 0 && num_microbatches >= 2 * pp)
                assert_closed_forms(pp, 2, num_microbatches, "\"schedule\": \"dualpipe\"");
            arena_free(&arena);
        }
}

// The last: where messages block, rank 2 holds one more than rank 1, which holds as many layers.
static void uneven_stages_have_closed_forms(void) {
    for (int num_microbatches = 1; num_microbatches <= 20; num_microbatches++) {
        assert_closed_forms(3, 1, num_microbatches,
                            "\"stages\": [{\"layers\": 0, \"embedding\": true}, {\"layers\": 12}, "
                            "{\"layers\": 1, \"loss\": true}]");
        assert_closed_forms(2, 2, num_microbatches,
                            "\"stages\": [{\"layers\": 1, \"embedding\": true}, {\"layers\": 9}, "
                            "{\"layers\": 3}, {\"layers\": 0, \"loss\": true}]");
        assert_closed_forms(5, 2, num_microbatches,
                            "\"stages\": [{\"layers\": 0, \"embedding\": true}, {\"layers\": 2}, "
                            "{\"layers\": 2}, {\"layers\": 2}, {\"layers\": 1}, {\"layers\": 0}, "
                            "{\"layers\": 2}, {\"layers\": 2}, {\"layers\": 2}, "
                            "{\"layers\": 0, \"loss\": true}]");
    }
}

// 1F1B on rank r of 4 holds 4 - r micro-batches, GPipe all 8.
static void schedules_hold_their_micro_batches(void) {
    Case c;
    if (case_make(&c, "\"llama-3.2-1b\"", 4, "{\"seq_len\": 1024, \"global_batch\": 8}",
                  "{\"pp\": 4}")) {
        for (int r = 0; r < 4; r++) {
            const Chunk *chunk = &c.workload.chunks[r];
            const double most =
                fmax(chunk->forward_peak_bytes, chunk->saved_bytes + chunk->backward_peak_bytes);
            ASSERT_CLOSE(account_of(&c, r).activations_bytes, (3 - r) * chunk->saved_bytes + most);
        }
        c.scenario.parallel.schedule = SCHEDULE_GPIPE;
        if (case_resolve(&c)) {
            const Chunk *chunk = &c.workload.chunks[1];
            ASSERT_CLOSE(account_of(&c, 1).activations_bytes,
                         7 * chunk->saved_bytes +
                             fmax(chunk->forward_peak_bytes,
                                  chunk->saved_bytes + chunk->backward_peak_bytes));
        }
    }
    case_free(&c);
}

// ZB-H1 on rank r of 4, with 8 micro-batches: before a backward 4 - r are kept whole, and of r the
// weight part waits. What was sent last is still there; what the weight part behind the backward
// reads is there already, and the last rank's input arrives later.
static void weight_parts_keep_what_they_read(void) {
    Case c;
    if (case_make(&c, "\"llama-3.2-1b\"", 4, "{\"seq_len\": 1024, \"global_batch\": 8}",
                  "{\"pp\": 4, \"schedule\": \"zb-h1\"}")) {
        Chunk chunks[4];
        for (int r = 0; r < 4; r++)
            chunks[r] = (Chunk){.num_blocks = NO_BLOCKS,
                                .saved_bytes = 100,
                                .deferred_bytes = 1000,
                                .forward_peak_bytes = 110,
                                .backward_peak_bytes = 1e6,
                                .input_peak_bytes = 1200,
                                .weight_peak_bytes = 30};
        c.workload.chunks = chunks;
        c.workload.boundary_bytes = 10;
        for (int r = 0; r < 4; r++)
            ASSERT_CLOSE(account_of(&c, r).activations_bytes,
                         100.0 * (4 - r) + 1000.0 * r + 1200 + 10);
    }
    case_free(&c);
}

// Where a forward needs most of all, it does so with one micro-batch fewer kept than in flight.
static void forwards_may_be_the_peak(void) {
    Case c;
    if (case_make(&c, "\"llama-3.2-1b\"", 4, "{\"seq_len\": 1024, \"global_batch\": 8}",
                  "{\"pp\": 4}")) {
        Chunk chunks[4];
        for (int r = 0; r < 4; r++)
            chunks[r] = (Chunk){.num_blocks = NO_BLOCKS,
                                .saved_bytes = 100,
                                .forward_peak_bytes = 1000,
                                .backward_peak_bytes = 50};
        c.workload.chunks = chunks;
        c.workload.boundary_bytes = 10;
        for (int r = 0; r < 4; r++)
            CU_ASSERT_EQUAL(account_of(&c, r).activations_bytes, (3 - r) * 100 + 1000);
    }
    case_free(&c);
}

CU_TestInfo memory_walk_tests[] = {
    {"closed_form_is_the_running_sum", closed_form_is_the_running_sum},
    {"uneven_stages_have_closed_forms", uneven_stages_have_closed_forms},
    {"schedules_hold_their_micro_batches", schedules_hold_their_micro_batches},
    {"weight_parts_keep_what_they_read", weight_parts_keep_what_they_read},
    {"forwards_may_be_the_peak", forwards_may_be_the_peak},
    CU_TEST_INFO_NULL,
};
