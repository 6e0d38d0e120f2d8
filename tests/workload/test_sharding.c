// What ZeRO-2 and -3 move in device memory beside their collectives, by how a stack shards.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <string.h>

#define TRAINING(reduced)                                                                          \
    "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"pytorch-fsdp\", "                       \
    "\"grad_reduce_dtype\": \"" reduced "\"}"

static const double FC1_WEIGHTS = 4096.0 * 1024;

static bool shard(Case *c, int zero_stage, Sharding sharding) {
    c->scenario.training.stack.sharding = (int)sharding;
    c->scenario.parallel.zero_stage = zero_stage;
    return case_resolve(c);
}

static double gradient_copy_bytes(const Case *c) {
    const Block *b = layer_block_of(c, 0);
    return op_named(b->backward, b->num_backward, "fc1")[1].after_bytes / FC1_WEIGHTS;
}

// The sum over tp before gradients are scattered, as they are made where parameters are sharded one
// by one: of two norms of 1024 and their biases.
static void partial_gradients_are_added_up_before(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING("fp32"), "{\"tp\": 2, \"zero_stage\": 3}"))
        for (int i = 0; i < 6; i++) {
            const bool each = i % 2, none = i >= 2;
            c.scenario.training.stack.sums_in_backward = i < 4; // else once a step
            if (!shard(&c, i / 2 == 1 ? 1 : 3, each ? SHARDING_PER_PARAMETER : SHARDING_PLAIN))
                continue;
            const Block *b = layer_block_of(&c, 0);
            const Op *last = &b->backward[b->num_backward - 1];
            if (none) {
                CU_ASSERT_STRING_NOT_EQUAL(last->name, "tp_grad_all_reduce");
                continue;
            }
            CU_ASSERT_STRING_EQUAL(last->name, "grad_reduce_scatter");
            const Op *sum = op_named(b->backward, b->num_backward, "tp_grad_all_reduce");
            CU_ASSERT(sum < last && sum->group == GROUP_TP && sum->stream == STREAM_TP);
            CU_ASSERT_EQUAL(sum->phase, PHASE_BACKWARD_WEIGHT);
            CU_ASSERT_EQUAL(sum->message_bytes, 4 * 1024 * (each ? 2 : 4));
        }
    case_free(&c);
}

static int num_copies(const Op *ops, int num_ops, double *bytes) {
    int n = 0;
    for (int i = 0; i < num_ops; i++)
        if (strcmp(ops[i].name, "param_copy_out") == 0) {
            *bytes = ops[i].bytes;
            n++;
        }
    return n;
}

// Bytes per weight gradient, fp32 and 16-bit reductions. Flat: 4 to concatenate, 6 to cast where
// the formats differ, twice the reduced format to divide.
static void gradients_are_brought_to_the_reduction(void) {
    static const struct {
        Sharding sharding;
        int zero_stage;
        double fp32, bf16;
    } ROWS[] =
        {
            {SHARDING_PLAIN, 3, 4, 4},         {SHARDING_FLAT, 3, 18, 8},
            {SHARDING_PER_PARAMETER, 3, 6, 4}, {SHARDING_FLAT, 2, 18, 8},
            {SHARDING_PLAIN, 2, 10, 10}, // a tensor of its own, added to fp32 gradients
        };
    Case c, half;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING("fp32"), "{\"zero_stage\": 3}") &&
        case_make(&half, MADE_UP_GPT, 8, TRAINING("bf16"), "{\"zero_stage\": 3}"))
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
            if (shard(&c, ROWS[i].zero_stage, ROWS[i].sharding))
                CU_ASSERT_EQUAL(gradient_copy_bytes(&c), ROWS[i].fp32);
            if (shard(&half, ROWS[i].zero_stage, ROWS[i].sharding))
                CU_ASSERT_EQUAL(gradient_copy_bytes(&half), ROWS[i].bf16);
        }
    case_free(&c);
    case_free(&half);
}

// Once for each gather: forward and, as the weights are given back in between, backward.
static void gathered_weights_are_copied_out(void) {
    Case c;
    double bytes = 0;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING("fp32"), "{\"zero_stage\": 3}")) {
        if (shard(&c, 3, SHARDING_FLAT)) {
            const Block *b = layer_block_of(&c, 0);
            CU_ASSERT_EQUAL(num_copies(b->forward, b->num_forward, &bytes), 0);
        }
        if (shard(&c, 3, SHARDING_PER_PARAMETER)) {
            const Block *b = layer_block_of(&c, 0);
            CU_ASSERT_EQUAL(num_copies(b->forward, b->num_forward, &bytes), 1);
            CU_ASSERT_EQUAL(bytes, 4 * b->dense_parameters);
            CU_ASSERT_EQUAL(num_copies(b->backward, b->num_backward, &bytes), 1);
        }
        if (shard(&c, 2, SHARDING_PER_PARAMETER)) {
            const Block *b = layer_block_of(&c, 0);
            CU_ASSERT_EQUAL(num_copies(b->forward, b->num_forward, &bytes), 0);
        }
    }
    case_free(&c);
}

CU_TestInfo sharding_tests[] = {
    {"gradients_are_brought_to_the_reduction", gradients_are_brought_to_the_reduction},
    {"gathered_weights_are_copied_out", gathered_weights_are_copied_out},
    {"partial_gradients_are_added_up_before", partial_gradients_are_added_up_before},
    CU_TEST_INFO_NULL,
};
