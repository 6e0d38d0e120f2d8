// What moves tokens to their experts and back.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

static const double TOKENS = 2048;

// A rank that sends its tokens to other ranks' experts by all-to-all sorts what comes by its own
// experts: once more 2 vectors a token, each way. Not with one expert a rank, nor where the
// dispatcher's kernels sort.
static void assert_permuted(const char *dispatcher, const char *parallel, double vectors) {
    Case c;
    Arena arena = {0};
    const char *training = arena_printf(
        &arena, "{\"seq_len\": 2048, \"global_batch\": 8, \"moe_dispatcher\": \"%s\"}", dispatcher);
    if (case_make(&c, MADE_UP_MOE, 8, training, parallel)) {
        c.scenario.execution.stack.launch.moe_overhead_frac = 0;
        case_resolve(&c);
        const Block *b = layer_block_of(&c, 1);
        const char *names[] = {"permute", "unpermute"};
        for (int i = 0; i < 2; i++) {
            const double bytes = TOKENS * 2 * vectors * 1024 * 2;
            ASSERT_CLOSE(op_named(b->forward, b->num_forward, names[i])->bytes, bytes);
            ASSERT_CLOSE(op_named(b->backward, b->num_backward, names[i])->bytes, bytes);
        }
    }
    case_free(&c);
    arena_free(&arena);
}

static void exchanged_tokens_are_sorted_by_expert(void) {
    assert_permuted("alltoall", "{\"ep\": 4}", 4);
    assert_permuted("alltoall", "{\"ep\": 8}", 2);
    assert_permuted("alltoall", NULL, 2);
    assert_permuted("deepep", "{\"ep\": 4}", 2);
    assert_permuted("alltoall", "{\"ep\": 2, \"etp\": 2}", 2);
}

// With etp what is sorted is what the group's gather brought, and both orders are there: 2 ranks'
// tokens, each at 2 experts.
static void gathered_tokens_are_sorted_by_expert(void) {
    static const char *const NAMES[] = {"sort_by_expert", "unsort_by_expert"};
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, "{\"seq_len\": 2048, \"global_batch\": 8}",
                  "{\"ep\": 2, \"etp\": 2}")) {
        const Block *b = layer_block_of(&c, 1);
        const double vectors_bytes = TOKENS * 2 * 2 * 1024 * 2;
        for (int i = 0; i < 2; i++) {
            const Op *forward = op_named(b->forward, b->num_forward, NAMES[i]);
            const Op *backward = op_named(b->backward, b->num_backward, NAMES[i]);
            ASSERT_CLOSE(forward->bytes, 2 * vectors_bytes);
            ASSERT_CLOSE(forward->transient_bytes, 2 * vectors_bytes);
            ASSERT_CLOSE(backward->bytes, 2 * vectors_bytes);
            ASSERT_CLOSE(backward->transient_bytes, 2 * vectors_bytes);
        }
    }
    case_free(&c);
}

// Each token at 2 experts: what is sent is there beside what comes, by kernels of their own (a copy
// for each of the ranks that a token goes to) only on the way back; in the end the results of both
// beside the token's.
static void exchanges_hold_what_they_read(void) {
    static const struct {
        const char *dispatcher, *name;
        double vectors; // of a token
    } ROWS[] = {{"alltoall", "ep_dispatch", 2 + 2},
                {"alltoall", "ep_combine", 2 + 2},
                {"alltoall", "unpermute", 2 + 1},
                {"deepep", "unpermute", 2 + 1}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(
            &arena, "{\"seq_len\": 2048, \"global_batch\": 8, \"moe_dispatcher\": \"%s\"}",
            ROWS[i].dispatcher);
        if (case_make(&c, MADE_UP_MOE, 8, training, "{\"ep\": 4}")) {
            const Block *b = layer_block_of(&c, 1);
            ASSERT_CLOSE(op_named(b->forward, b->num_forward, ROWS[i].name)->transient_bytes,
                         ROWS[i].vectors * TOKENS * 1024 * 2);
            const Op *sent = op_named(b->forward, b->num_forward, "ep_dispatch");
            const Op *back = op_named(b->forward, b->num_forward, "ep_combine");
            ASSERT_CLOSE(sent->transient_bytes, (i < 3 ? 2 : 1) * sent->collective.message_bytes);
            ASSERT_CLOSE(back->transient_bytes, 2 * back->collective.message_bytes);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

CU_TestInfo block_experts_tests[] = {
    {"exchanged_tokens_are_sorted_by_expert", exchanged_tokens_are_sorted_by_expert},
    {"gathered_tokens_are_sorted_by_expert", gathered_tokens_are_sorted_by_expert},
    {"exchanges_hold_what_they_read", exchanges_hold_what_they_read},
    CU_TEST_INFO_NULL,
};
