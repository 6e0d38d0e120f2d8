// Memory-bound operators of a block, what runs piece by piece, what is held for a moment.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected))

static const double TOKENS = 2048;

// --- Bytes and kernels

typedef struct {
    const char *model;
    const char *training; // beside sequence and batch
    const char *name;
    int block;    // BLOCK_*; a layer by its index where negative: -1 the first
    double bytes; // per token, forward
    int kernels;
    double backward_bytes;
    int backward_kernels;
} WorkRow;

#define GPT NULL
#define TITAN ", \"stack\": \"torchtitan\", \"cross_entropy_fused\": false"
#define OLD ", \"stack\": \"megatron-2022\", \"attention\": \"unfused\""
#define RUNTIME ", \"stack\": \"runtime\", \"precision\": \"fp32\""
#define QWEN "\"qwen3-30b-a3b\""
enum { FIRST = -1, SECOND = -2 };

// Per token, 2 bytes a value, hidden size 1024, MLP 4096, vocabulary 1024; 16 heads of 64 over 2048
// keys are 32768 scores. Fused kernels read their inputs and write their results once; the backward
// reads gradient and inputs, writes the gradient. Embedding: its gradient is added in fp32 (8
// bytes). Grouped queries: 1024 + 256 values are rotated; a gated activation reads 2 x 4096.
// Permutations move 2 vectors a token, and 30 % more (megatron-core). Not fused (torchtitan): norm
// 5 passes, backward 8; rotary embedding 6; activation and gate 2 more; loss 2 + 4 to cast, 12 for
// the softmax, backward 12 + 2; softmax 8 passes, backward 9. Dropout: masks of a byte. Qwen3:
// norms of 36 heads of 128. The runtime (4 bytes a value) makes the loss's gradient with the loss.
static const WorkRow WORK[] = {
    {GPT, "", "embedding", BLOCK_EMBEDDING, 4096, 3, 10240, 3},
    {GPT, "", "input_norm", FIRST, 4096, 1, 6144, 2},
    {GPT, "", "residual_add", FIRST, 6144, 1, 6144, 1},
    {GPT, "", "split_heads", FIRST, 0, 1, 0, 1},
    {GPT, "", "core_attn", FIRST, 8192, 1, 24576, 3},
    {GPT, "", "activation", FIRST, 16384, 1, 24576, 1},
    {GPT, "", "cross_entropy", BLOCK_HEAD, 4096, 3, 4096, 1},
    {GPT, ", \"precision\": \"fp8\"", "quantize", FIRST, 4096, 1, 4096, 1},
    {"moe", "", "rope", FIRST, 5120, 2, 5120, 2},
    {"moe", "", "gated_activation", FIRST, 24576, 1, 40960, 1},
    {"moe", "", "router_top_k", SECOND, 128, 8, 64, 4},
    {"moe", "", "permute", SECOND, 8192 * 1.3, 2, 8192 * 1.3, 2},
    {"moe", "", "unpermute", SECOND, 8192 * 1.3, 2, 8192 * 1.3, 2},
    {"mla", "", "latent_norm", FIRST, 1536, 2, 2304, 4},
    {"mla", "", "rope", FIRST, 2 * 2 * 16 * 192, 2, 2 * 2 * 16 * 192, 2},
    {QWEN, "", "qk_norm", FIRST, 18432, 2, 27648, 4},
    {GPT, TITAN, "input_norm", FIRST, 4096, 1, 6144, 2}, // a LayerNorm
    {"moe", TITAN, "input_norm", FIRST, 10240, 4, 16384, 7},
    {"moe", TITAN ", \"stack_version\": \"0.2\"", "input_norm", FIRST, 4096, 1, 6144, 2},
    {GPT, TITAN, "cross_entropy", BLOCK_HEAD, 18432, 9, 14336, 4},
    {GPT, RUNTIME, "cross_entropy", BLOCK_HEAD, 16384, 4, 0, 0},
    {GPT, TITAN ", \"compile\": true", "cross_entropy", BLOCK_HEAD, 4096, 9, 4096, 4},
    {GPT, TITAN ", \"compile\": true", "input_norm", FIRST, 4096, 1, 6144, 2},
    {"moe", TITAN, "rope", FIRST, 15360, 8, 15360, 8},
    {"moe", TITAN, "gated_activation", FIRST, 40960, 2, 73728, 3},
    {GPT, TITAN ", \"attention\": \"unfused\"", "softmax", FIRST, 524288, 4, 589824, 4},
    {GPT, OLD, "dropout_add", FIRST, 7168, 1, 5120, 1},
    {GPT, OLD, "softmax", FIRST, 131072, 1, 196608, 1},
    {GPT, OLD, "attention_dropout", FIRST, 163840, 1, 163840, 1},
    {GPT, OLD, "merge_heads", FIRST, 4096, 1, 4096, 1},
};

static const char *model_of(const char *name) {
    if (name == GPT) return MADE_UP_GPT;
    if (strcmp(name, "moe") == 0) return MADE_UP_MOE;
    return strcmp(name, "mla") == 0 ? MADE_UP_MLA : name;
}

static void moved_bytes_by_hand(void) {
    for (size_t i = 0; i < sizeof WORK / sizeof *WORK; i++) {
        const WorkRow *row = &WORK[i];
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 8%s}", row->training);
        if (case_make(&c, model_of(row->model), 8, training, NULL)) {
            const Block *b = row->block < 0 ? layer_block_of(&c, -1 - row->block)
                                            : &c.workload.blocks[row->block];
            const Op *forward = op_named(b->forward, b->num_forward, row->name);
            const Op *backward = op_named(b->backward, b->num_backward, row->name);
            const Execution *execution = &c.scenario.execution;
            double passes =
                execution->compile ? 1 : 1 + execution->stack.launch.eager_overhead_frac;
            ASSERT_CLOSE(forward->bytes, TOKENS * row->bytes * passes);
            CU_ASSERT_EQUAL(forward->num_kernels, row->kernels);
            if (strcmp(row->name, "quantize") != 0) // the backward's first is another product's
                ASSERT_CLOSE(backward->bytes, TOKENS * row->backward_bytes * passes);
            CU_ASSERT_EQUAL(backward->num_kernels, row->backward_kernels);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// Product of 2048 tokens, 4096 outputs, 1024 inputs: reads inputs and weights, writes outputs, 2
// bytes each; in 8 bits it reads 1 byte of each. The weight gradient reads both sides and adds to
// fp32.
static void products_move_their_operands(void) {
    const double in = TOKENS * 1024, out = TOKENS * 4096, weight = 1024 * 4096;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", NULL)) {
        const Block *b = layer_block_of(&c, 0);
        ASSERT_CLOSE(op_named(b->forward, b->num_forward, "fc1")->bytes, 2 * (in + weight + out));
        const Op *input = op_named(b->backward, b->num_backward, "fc1"), *weights = input + 1;
        ASSERT_CLOSE(input->bytes, 2 * (in + weight + out));
        ASSERT_CLOSE(weights->bytes, 2 * (in + out) + 8 * weight);
        c.scenario.execution.precision = PRECISION_FP8;
        if (case_resolve(&c)) b = layer_block_of(&c, 0);
        ASSERT_CLOSE(op_named(b->forward, b->num_forward, "fc1")->bytes, in + weight + 2 * out);
        const Op *quantized = op_named(b->backward, b->num_backward, "fc1") - 1;
        CU_ASSERT_STRING_EQUAL(quantized->name, "quantize");
        CU_ASSERT_EQUAL(quantized->bytes, 4 * out);
    }
    case_free(&c);
}

// 2 experts of 1024 x 1024 and 2 x 2048 routed tokens; 16 heads of 2048 x 64 times 64 x 2048.
static void grouped_products_move_all_operands(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 8, \"attention\": \"unfused\"}",
                  "{\"ep\": 4}")) {
        const Block *b = layer_block_of(&c, 1);
        ASSERT_CLOSE(op_named(b->forward, b->num_forward, "experts_fc1")->bytes,
                     2 * (2 * 4096 * 1024.0 + 2 * 1024 * 1024));
        ASSERT_CLOSE(op_named(b->forward, b->num_forward, "scores")->bytes,
                     2 * 16 * (2 * 2048 * 64.0 + 2048 * 2048));
        const double scores = 16.0 * 2048 * 2048 * 2, heads = 16.0 * 2048 * 64 * 2;
        const Op *softmax = op_named(b->forward, b->num_forward, "softmax");
        CU_ASSERT_EQUAL(softmax->transient_bytes, scores);
        softmax = op_named(b->backward, b->num_backward, "softmax");
        CU_ASSERT_EQUAL(softmax->transient_bytes, 2 * scores);
        const Op *queries = op_named(b->backward, b->num_backward, "scores");
        CU_ASSERT_EQUAL(queries[0].transient_bytes, scores + heads);
        CU_ASSERT_EQUAL(queries[1].transient_bytes, scores + heads);
        const Op *merge = op_named(b->forward, b->num_forward, "merge_heads");
        CU_ASSERT_EQUAL(merge->transient_bytes, heads);
    }
    case_free(&c);
}

// Ring attention over cp 4 works in 4 steps on a quarter of the keys each, 512 queries of 1024
// values, and merges 3 times: fp32 results are read twice and written.
static void rings_merge_their_steps(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", "{\"cp\": 4}")) {
        const Block *b = layer_block_of(&c, 0);
        const Op *attention = op_named(b->forward, b->num_forward, "core_attn");
        CU_ASSERT_EQUAL(attention->num_kernels, 4);
        CU_ASSERT_EQUAL(attention->attention.keys, 512);
        ASSERT_CLOSE(attention->bytes, 512 * 1024 * (4 * 2 + 3 * 12.0));
    }
    case_free(&c);
}

// --- Piece by piece

// The product that a collective runs beside: the next operator of a gather, the one before a
// scatter; backward the next of a row's gather; a column's scatter runs beside the weight gradient
// instead.
static void assert_pieces(const char *parallel) {
    Case c;
    int num_pieces = 0;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 8, \"tp_comm_overlap\": true}",
                  parallel)) {
        c.scenario.execution.stack.training.tp_backward_overlap = true;
        case_resolve(&c);
        const Block *b = layer_block_of(&c, 0);
        for (int list = 0; list < 2; list++) {
            const Op *ops = list ? b->backward : b->forward;
            for (int i = 0; i < (list ? b->num_backward : b->num_forward); i++) {
                if (ops[i].pipelined_with < 0) continue;
                const bool gather = op_is_collective(&ops[i], COLLECTIVE_ALL_GATHER);
                num_pieces++;
                CU_ASSERT_EQUAL(ops[i].pipelined_with, gather ? i + 1 : i - 1);
                CU_ASSERT_EQUAL(ops[ops[i].pipelined_with].kind, OP_GEMM);
            }
        }
        CU_ASSERT_EQUAL(num_pieces, 4 + 4 + 2); // forward, again, backward of the rows
    }
    case_free(&c);
}

static void overlapped_collectives_name_their_product(void) {
    assert_pieces("{\"tp\": 2, \"recompute\": \"full\"}");
    assert_pieces("{\"tp\": 4, \"recompute\": \"full\"}");
}

static void rings_run_beside_attention(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}",
                  "{\"cp\": 4, \"recompute\": \"selective\"}")) {
        const Block *b = layer_block_of(&c, 0);
        const Op *forward = op_named(b->forward, b->num_forward, "cp_ring_kv");
        const Op *again = op_named(b->backward, b->num_backward, "cp_ring_kv");
        const Op *back = op_named(b->backward, b->num_backward, "cp_ring_kv_gradients");
        CU_ASSERT_STRING_EQUAL(b->forward[forward->pipelined_with].name, "core_attn");
        CU_ASSERT_STRING_EQUAL(b->backward[again->pipelined_with].name, "core_attn");
        CU_ASSERT_TRUE(b->backward[again->pipelined_with].again);
        CU_ASSERT_STRING_EQUAL(b->backward[back->pipelined_with].name, "core_attn");
        CU_ASSERT_FALSE(b->backward[back->pipelined_with].again);
    }
    case_free(&c);
}

static void backward_collectives_have_their_own_names(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, "{\"seq_len\": 2048, \"global_batch\": 8}",
                  "{\"tp\": 2, \"ep\": 2, \"etp\": 2, \"cp\": 2, \"cp_method\": \"all-gather\"}")) {
        const Block *b = layer_block_of(&c, 1);
        for (int i = 0; i < b->num_backward; i++) {
            const Op *op = &b->backward[i];
            if (op->kind != OP_COLLECTIVE) continue;
            const bool gather = strstr(op->name, "all_gather") != NULL;
            const bool scatter = strstr(op->name, "reduce_scatter") != NULL;
            CU_ASSERT_EQUAL(gather, op->collective.kind == COLLECTIVE_ALL_GATHER);
            CU_ASSERT_EQUAL(scatter, op->collective.kind == COLLECTIVE_REDUCE_SCATTER);
        }
    }
    case_free(&c);
}

// --- Held for a moment

// tp 2 with sequence parallelism: what the looked-up rows lack is added up, each rank keeps a half.
static void looked_up_rows_are_summed(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", "{\"tp\": 2}")) {
        const Block *b = &c.workload.blocks[BLOCK_EMBEDDING];
        const Op *scatter = op_named(b->forward, b->num_forward, "tp_reduce_scatter");
        const Op *gather = op_named(b->backward, b->num_backward, "tp_all_gather");
        CU_ASSERT_EQUAL(scatter->collective.message_bytes, TOKENS * 1024 * 2);
        CU_ASSERT_EQUAL(gather->collective.message_bytes, TOKENS * 1024 * 2);
        b = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "fc1")->transient_bytes,
                        TOKENS * (1024 + 2048) * 2);
    }
    case_free(&c);
}

// tp 4 with sequence parallelism: 8-bit values are gathered in 8 bits, unless each row of the whole
// has a scale; then 16 bits are gathered and all of it is quantized: 10 bytes a value.
static void rows_with_scales_are_gathered_in_16_bits(void) {
    static const char *const RECIPES[] = {"tensorwise", "rowwise"};
    const double gathered[] = {1, 2}, quantized[] = {6.0 / 4, 10};
    for (int i = 0; i < 2; i++) {
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena,
                         "{\"seq_len\": 2048, \"global_batch\": 8, \"precision\": \"fp8\", "
                         "\"fp8_recipe\": \"%s\"}",
                         RECIPES[i]);
        if (case_make(&c, MADE_UP_GPT, 8, training, "{\"tp\": 4}")) {
            const Block *b = layer_block_of(&c, 0);
            CU_ASSERT_EQUAL(
                op_named(b->forward, b->num_forward, "tp_all_gather")->collective.message_bytes,
                TOKENS * 1024 * gathered[i]);
            CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "quantize")->bytes,
                            TOKENS * 1024 * quantized[i]);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// tp 4 with sequence parallelism: fc1 makes 2048 x 1024 values of the 2048 x 1024 that were
// gathered, 2 bytes each. Backward it reads gradient and gathered input and makes a gradient; the
// weight gradient reads both, beside the input's gradient and what is scattered of it (1/4). The
// activation reads and makes gradients of 2 x 2048 x 1024.
static void products_hold_what_was_gathered(void) {
    const double one = TOKENS * 1024 * 2;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", "{\"tp\": 4}")) {
        const Block *b = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "tp_all_gather")->transient_bytes,
                        one);
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "tp_reduce_scatter")->transient_bytes,
                        one + one / 4); // read and made
        CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "fc1")->transient_bytes, 2 * one);
        const Op *input = op_named(b->backward, b->num_backward, "fc1");
        CU_ASSERT_EQUAL(input->transient_bytes, 3 * one);
        const Op *weights = input + 1;
        while (weights->kind == OP_COLLECTIVE) weights++;
        CU_ASSERT_EQUAL(weights->phase, PHASE_BACKWARD_WEIGHT);
        CU_ASSERT_EQUAL(weights->transient_bytes, 3.25 * one);
        CU_ASSERT_EQUAL(weights->placeholder_bytes, 1024 * 1024 * 2);
        CU_ASSERT_EQUAL(op_named(b->backward, b->num_backward, "activation")->transient_bytes,
                        2 * one);
    }
    case_free(&c);
}

// What is recomputed is held for a moment in the forward: the activation's input and result, 2 x 2
// bytes of 4096, beside what the branch's result is added to, 2 of 1024. A residual's gradient is
// its input's, without a copy: it is there from the first operator that runs again.
static void recomputed_results_are_held_for_a_moment(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}",
                  "{\"recompute\": \"full\"}")) {
        const Block *b = layer_block_of(&c, 0);
        const Op *activation = op_named(b->forward, b->num_forward, "activation");
        CU_ASSERT_EQUAL(activation->saved_bytes, 0);
        CU_ASSERT_EQUAL(activation->transient_bytes, TOKENS * (4096 * 4 + 1024 * 2));
        int i = 0;
        while (b->backward[i].again || strcmp(b->backward[i].name, "residual_add") != 0) i++;
        CU_ASSERT_EQUAL(b->backward[i].transient_bytes, 0);
        CU_ASSERT_EQUAL(b->backward[i].saved_bytes, 0);
        CU_ASSERT_TRUE(b->backward[0].again);
        // the norm's result, its input being kept, and the gradient
        CU_ASSERT_EQUAL(b->backward[0].saved_bytes, 2 * TOKENS * 1024 * 2);
    }
    case_free(&c);
}

// In units of 2048 x 1024 values of 2 bytes: the addition leaves the branch's result beside its
// sum, 2, or takes its place, 1. An eager RMSNorm keeps no input: that waits until it is added, 3.
static void additions_hold_their_inputs(void) {
    static const struct {
        const char *stack;
        const char *model;
        double held;
    } ROWS[] = {{"megatron-core", "\"llama-3.2-1b\"", 2},
                {"runtime", "\"llama-3.2-1b\"", 1},
                {"torchtitan", "\"llama-3.2-1b\"", 3}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(
            &arena, "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"%s\"}", ROWS[i].stack);
        if (case_make(&c, ROWS[i].model, 8, training, NULL)) {
            const Block *b = layer_block_of(&c, 0);
            CU_ASSERT_EQUAL(op_named(b->forward, b->num_forward, "residual_add")->transient_bytes,
                            ROWS[i].held * TOKENS * 2048 * 2);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// In units of 2048 x 1024 values of 2 bytes: the residual's gradient, 1, waits until the norm that
// begins the branch. It is what fc2 reads, which makes 4 and gives back the activation's result, 4,
// after its weight's gradient: 1 + 4, the peak. The activation reads and makes 4 + 4 beside the
// residual's, 4 less than at first: 5; fc1 reads 4 and makes 1.
static void a_branch_runs_beside_its_residual(void) {
    const double one = TOKENS * 1024 * 2;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", NULL)) {
        const Block *b = layer_block_of(&c, 0);
        CU_ASSERT_EQUAL(b->backward[0].saved_bytes, one);
        const Op *fc2 = op_named(b->backward, b->num_backward, "fc2");
        CU_ASSERT_EQUAL(fc2[0].transient_bytes, 4 * one);
        CU_ASSERT_EQUAL(fc2[1].transient_bytes, 4 * one);
        CU_ASSERT_EQUAL(fc2[1].released_bytes, 4 * one);
        CU_ASSERT_EQUAL(fc2[2].transient_bytes, 8 * one);
        CU_ASSERT_EQUAL(fc2[2].released_bytes, 4 * one);
        const Op *norm = op_named(b->backward, b->num_backward, "pre_mlp_norm");
        CU_ASSERT_EQUAL(norm->released_bytes, 2 * one); // its input and the residual's gradient
        CU_ASSERT_EQUAL(b->backward_peak_bytes, 5 * one);
    }
    case_free(&c);
}

// A gradient that is a tensor of its own is held beside those of result and input; the head's
// always.
static void weight_gradients_are_held_while_made(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"megatron-2022\"}", NULL)) {
        c.scenario.execution.stack.training.weight_gradient = WEIGHT_GRADIENT_SEPARATE;
        if (!case_resolve(&c)) return;
        const Block *b = layer_block_of(&c, 0), *head = &c.workload.blocks[BLOCK_HEAD];
        const Op *fc1 = op_named(b->backward, b->num_backward, "fc1") + 1;
        CU_ASSERT_EQUAL(fc1->transient_bytes, TOKENS * 5120 * 2 + 4096 * 1024 * 2);
        CU_ASSERT_EQUAL(fc1->placeholder_bytes, 0);
        c.scenario.execution.stack.training.weight_gradient = WEIGHT_GRADIENT_IN_PLACE;
        if (case_resolve(&c)) b = layer_block_of(&c, 0);
        fc1 = op_named(b->backward, b->num_backward, "fc1") + 1;
        CU_ASSERT_EQUAL(fc1->transient_bytes, TOKENS * 5120 * 2);
        c.scenario.execution.stack.training.weight_gradient = WEIGHT_GRADIENT_PLACEHOLDER;
        if (case_resolve(&c)) head = &c.workload.blocks[BLOCK_HEAD];
        const Op *logits = op_named(head->backward, head->num_backward, "lm_head") + 1;
        CU_ASSERT_EQUAL(logits->transient_bytes, TOKENS * 2048 * 2 + 1024 * 1024 * 2);
    }
    case_free(&c);
}

CU_TestInfo block_work_tests[] = {
    {"moved_bytes_by_hand", moved_bytes_by_hand},
    {"products_move_their_operands", products_move_their_operands},
    {"grouped_products_move_all_operands", grouped_products_move_all_operands},
    {"rings_merge_their_steps", rings_merge_their_steps},
    {"overlapped_collectives_name_their_product", overlapped_collectives_name_their_product},
    {"rings_run_beside_attention", rings_run_beside_attention},
    {"backward_collectives_have_their_own_names", backward_collectives_have_their_own_names},
    {"looked_up_rows_are_summed", looked_up_rows_are_summed},
    {"rows_with_scales_are_gathered_in_16_bits", rows_with_scales_are_gathered_in_16_bits},
    {"products_hold_what_was_gathered", products_hold_what_was_gathered},
    {"recomputed_results_are_held_for_a_moment", recomputed_results_are_held_for_a_moment},
    {"additions_hold_their_inputs", additions_hold_their_inputs},
    {"a_branch_runs_beside_its_residual", a_branch_runs_beside_its_residual},
    {"weight_gradients_are_held_while_made", weight_gradients_are_held_while_made},
    CU_TEST_INFO_NULL,
};
