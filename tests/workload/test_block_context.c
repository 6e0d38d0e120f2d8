// What the attention half of a layer keeps and holds over cp ranks.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-6)

// Half of 2048 tokens: a ring's result is the projection's input. Ulysses exchanges it, and
// gathered keys are read in two steps whose results are copied together: it is kept twice, 2 of
// 1024 more. Run again, the attention keeps nothing where the projection has a copy. The runtime's
// steps write to one result; its values have 4 bytes.
static void context_parallelism_may_copy_the_result(void) {
    static const struct {
        const char *stack, *parallel;
        double bytes, kept_again;
    } ROWS[] = {
        {"", "{\"cp\": 2}", 32, 32 + 1.0 / 16},
        {"", "{\"cp\": 2, \"cp_method\": \"ulysses\"}", 34, 32},
        {"", "{\"cp\": 2, \"cp_method\": \"all-gather\"}", 34, 32},
        {", \"stack\": \"runtime\", \"precision\": \"fp32\"",
         "{\"cp\": 2, \"cp_method\": \"ulysses\"}", 68, 64},
        {", \"stack\": \"runtime\", \"precision\": \"fp32\"",
         "{\"cp\": 2, \"cp_method\": \"all-gather\"}", 64, 64 + 1.0 / 16},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 8%s}", ROWS[i].stack);
        if (case_make(&c, MADE_UP_GPT, 8, training, ROWS[i].parallel)) {
            ASSERT_CLOSE(layer_block_of(&c, 0)->saved_bytes, 1024 * (1024 * ROWS[i].bytes + 64));
            c.scenario.parallel.recompute = RECOMPUTE_SELECTIVE;
            if (case_resolve(&c))
                ASSERT_CLOSE(layer_block_of(&c, 0)->saved_bytes, 1024 * 1024 * ROWS[i].kept_again);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// In units of 1024 x 1024 values of 2 bytes, half of 2048 tokens: attention makes a result, 1, and
// holds keys and values of others: of a ring those in use and arriving, gathered those of both
// ranks, 2 x 2 each. Its backward reads and makes 4, and holds the gradients of these, 4, and one
// step's of queries, keys and values, 3. Ulysses' ranks have heads of their own.
static void attention_holds_what_comes_from_others(void) {
    static const struct {
        const char *parallel;
        double forward, backward;
    } ROWS[] = {{"{\"cp\": 2}", 5, 15},
                {"{\"cp\": 2, \"cp_method\": \"ulysses\"}", 1, 4},
                {"{\"cp\": 2, \"cp_method\": \"all-gather\"}", 5, 15}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}",
                      ROWS[i].parallel)) {
            const Block *b = layer_block_of(&c, 0);
            const double one = 1024 * 1024 * 2;
            ASSERT_CLOSE(op_named(b->forward, b->num_forward, "core_attn")->transient_bytes,
                         ROWS[i].forward * one);
            ASSERT_CLOSE(op_named(b->backward, b->num_backward, "core_attn")->transient_bytes,
                         ROWS[i].backward * one);
        }
        case_free(&c);
    }
}

// 16 query heads and 4 of keys and values over tp 2, of 2 sequences of 2048 tokens over cp 2.
static void each_step_is_a_kernel_of_its_own(void) {
    static const struct {
        const char *method;
        double heads, kv_heads, queries, keys;
        int steps;
    } ROWS[] = {{"ring", 8, 2, 1024, 1024, 2},
                {"all-gather", 8, 2, 512, 1024, 2},
                {"ulysses", 4, 1, 2048, 2048, 1}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        Arena arena = {0};
        const char *parallel = arena_printf(
            &arena, "{\"tp\": 2, \"cp\": 2, \"micro_batch\": 2, \"cp_method\": \"%s\"}",
            ROWS[i].method);
        if (case_make(&c, MADE_UP_MOE, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", parallel)) {
            const Block *b = layer_block_of(&c, 0);
            const Op *core = op_named(b->forward, b->num_forward, "core_attn");
            const AttentionOp *attention = &core->attention;
            CU_ASSERT_EQUAL(core->num_kernels, ROWS[i].steps);
            CU_ASSERT_EQUAL(attention->sequences, 2);
            CU_ASSERT_EQUAL(attention->heads, ROWS[i].heads);
            CU_ASSERT_EQUAL(attention->kv_heads, ROWS[i].kv_heads);
            CU_ASSERT_EQUAL(attention->queries, ROWS[i].queries);
            CU_ASSERT_EQUAL(attention->keys, ROWS[i].keys);
            CU_ASSERT_TRUE(attention->causal);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

CU_TestInfo block_context_tests[] = {
    {"context_parallelism_may_copy_the_result", context_parallelism_may_copy_the_result},
    {"attention_holds_what_comes_from_others", attention_holds_what_comes_from_others},
    {"each_step_is_a_kernel_of_its_own", each_step_is_a_kernel_of_its_own},
    CU_TEST_INFO_NULL,
};
