// What of a block runs again before its backward.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <string.h>

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 8}"

static int num_again(const Block *b) {
    int count = 0;
    while (count < b->num_backward && b->backward[count].again) count++;
    return count;
}

// The block's first operators run again, all but those named, which end its forward.
static void assert_not_again(const Block *b, const char *const *names, int num_names) {
    const int count = num_again(b);
    int num_forward = 0; // without what sharded weights add at the end
    while (num_forward < b->num_forward && strncmp(b->forward[num_forward].name, "param_", 6) != 0)
        num_forward++;
    CU_ASSERT_EQUAL_FATAL(count + num_names, num_forward);
    for (int i = 0; i < num_forward; i++) {
        const char *name = b->forward[i].name;
        CU_ASSERT_STRING_EQUAL(name, i < count ? b->backward[i].name : names[i - count]);
    }
}

typedef struct {
    const char *stack, *precision;
    int num_left_out;
} StackRow;

// Megatron's checkpoints run the whole block again. Those of PyTorch end with what makes the last
// tensor that is kept, the input of the product after it: the activation, or where the product runs
// in 8 bits its quantization. The forward keeps 2048 x 1024 numbers of 2 bytes for either.
static void checkpoints_may_stop_early(void) {
    static const StackRow ROWS[] = {{"megatron-core", "bf16", 0},
                                    {"torchtitan", "bf16", 2},
                                    {"torchtitan", "fp8", 2},
                                    {"pytorch-fsdp", "bf16", 2}};
    static const char *const LEFT_OUT[] = {"fc2", "residual_add"};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(&arena,
                                            "{\"seq_len\": 2048, \"global_batch\": 8, "
                                            "\"stack\": \"%s\", \"precision\": \"%s\"}",
                                            ROWS[i].stack, ROWS[i].precision);
        if (case_make(&c, MADE_UP_GPT, 8, training, "{\"recompute\": \"full\"}")) {
            const Block *b = layer_block_of(&c, 0);
            assert_not_again(b, LEFT_OUT, ROWS[i].num_left_out);
            CU_ASSERT_EQUAL(b->saved_bytes, 2048 * 1024 * 2);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// tp 2: what is summed of fc2 is not needed either. Its half of 2 x 2048 x 4096 x 1024 flops is
// saved.
static void collectives_after_the_last_tensor_are_left_out(void) {
    static const char *const LEFT_OUT[] = {"fc2", "tp_reduce_scatter", "residual_add"};
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, "{\"tp\": 2, \"recompute\": \"full\"}")) {
        const Block *b = layer_block_of(&c, 0);
        const double whole = gemm_flops(b->backward, num_again(b));
        CU_ASSERT_EQUAL(whole, gemm_flops(b->forward, b->num_forward));
        c.scenario.execution.stack.training.checkpoint_early_stop = true;
        if (case_resolve(&c)) {
            b = layer_block_of(&c, 0);
            assert_not_again(b, LEFT_OUT, 3);
            CU_ASSERT_EQUAL(gemm_flops(b->backward, num_again(b)), whole - 2048.0 * 4096 * 1024);
        }
    }
    case_free(&c);
}

// Results of the experts' second product go back (ep 4) and into order, which no backward needs.
static void experts_stop_before_their_last_product(void) {
    static const char *const LEFT_OUT[] = {"experts_fc2", "ep_combine", "unpermute",
                                           "residual_add"};
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, "{\"ep\": 4, \"recompute\": \"full\"}")) {
        c.scenario.execution.stack.training.checkpoint_early_stop = true;
        Model *model = &c.scenario.model;
        for (int k = 0; k < model->num_kinds; k++) // these would run after the routed ones
            model->kinds[k].ffn.shared_intermediate_size = 0;
        if (case_resolve(&c)) assert_not_again(layer_block_of(&c, 1), LEFT_OUT, 4);
    }
    case_free(&c);
}

// The mask of a dropout is the last tensor of its block: all of it runs again.
static void dropout_is_run_again(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"megatron-2022\"}",
                  "{\"recompute\": \"full\"}")) {
        CU_ASSERT_TRUE(c.scenario.execution.stack.training.dropout);
        c.scenario.execution.stack.training.checkpoint_early_stop = true;
        if (case_resolve(&c)) assert_not_again(layer_block_of(&c, 0), NULL, 0);
    }
    case_free(&c);
}

CU_TestInfo block_recompute_tests[] = {
    {"checkpoints_may_stop_early", checkpoints_may_stop_early},
    {"collectives_after_the_last_tensor_are_left_out",
     collectives_after_the_last_tensor_are_left_out},
    {"experts_stop_before_their_last_product", experts_stop_before_their_last_product},
    {"dropout_is_run_again", dropout_is_run_again},
    CU_TEST_INFO_NULL,
};
