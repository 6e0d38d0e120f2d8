// What ZeRO-2 and -3 move in device memory beside their collectives, by how a stack shards.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <string.h>

#define TRAINING(reduced)                                                                          \
    "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"pytorch-fsdp\", "                       \
    "\"grad_reduce_dtype\": \"" reduced "\"}"

static const double FC1_WEIGHTS = 4096.0 * 1024;

static bool shard(Case *c, int zero_stage, Sharding sharding) {
    c->scenario.execution.stack.training.sharding = (int)sharding;
    c->scenario.parallel.zero_stage = zero_stage;
    return case_resolve(c);
}

static double gradient_copy_bytes(const Case *c) {
    const Block *b = layer_block_of(c, 0);
    return op_named(b->backward, b->num_backward, "fc1")[1].gemm.after_bytes / FC1_WEIGHTS;
}

// The sum over tp before gradients are scattered, as they are made where parameters are sharded one
// by one: of two norms of 1024 and their biases.
static void partial_gradients_are_added_up_before(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING("fp32"), "{\"tp\": 2, \"zero_stage\": 3}"))
        for (int i = 0; i < 6; i++) {
            const bool each = i % 2, none = i >= 2;
            c.scenario.execution.stack.training.sums_in_backward = i < 4; // else once a step
            if (!shard(&c, i / 2 == 1 ? 1 : 3, each ? SHARDING_PER_PARAMETER : SHARDING_PLAIN))
                continue;
            const Block *b = layer_block_of(&c, 0);
            const Op *last = &b->backward[b->num_backward - 1];
            if (none) {
                for (int k = 0; k < b->num_backward; k++)
                    CU_ASSERT_STRING_NOT_EQUAL(b->backward[k].name, "tp_grad_all_reduce");
                continue;
            }
            CU_ASSERT_STRING_EQUAL(last->name, "grad_reduce_scatter");
            const Op *sum = op_named(b->backward, b->num_backward, "tp_grad_all_reduce");
            CU_ASSERT(sum < last && sum->collective.group == GROUP_TP && sum->stream == STREAM_TP);
            CU_ASSERT_EQUAL(sum->phase, PHASE_BACKWARD_WEIGHT);
            CU_ASSERT_EQUAL(sum->collective.message_bytes, 4 * 1024 * (each ? 2 : 4));
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

// Where they are reduced once a step each backward adds to whole gradients: 2 bytes read, and those
// that are kept read and written; nothing is scattered. Weights are gathered all the same. With one
// micro-batch a step there is nothing to put off.
static void gradients_may_stay_until_the_end_of_the_step(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING("fp32"), "{\"zero_stage\": 3}"))
        for (int batch = 16; batch >= 8; batch -= 8) {
            c.scenario.execution.grad_reduce = GRAD_REDUCE_STEP;
            c.scenario.training.global_batch = batch;
            if (!shard(&c, 3, SHARDING_FLAT)) continue;
            const bool waits = batch > 8;
            const Block *b = layer_block_of(&c, 0);
            CU_ASSERT_EQUAL(plan_scatters_gradients(&c.plan), !waits);
            CU_ASSERT_EQUAL(gradient_copy_bytes(&c), waits ? 2 + 2 * 4 : 18);
            CU_ASSERT_EQUAL(collective_bytes(b->backward, b->num_backward,
                                             COLLECTIVE_REDUCE_SCATTER, GROUP_ZERO),
                            waits ? 0 : 4 * b->dense_parameters);
            CU_ASSERT_EQUAL(
                collective_bytes(b->backward, b->num_backward, COLLECTIVE_ALL_GATHER, GROUP_ZERO),
                2 * b->dense_parameters);
        }
    case_free(&c);
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

// The bundled runtime's products add to whole gradients in fp32: 4 bytes each to zero them, and of
// 8 ranks' shares of the sum 4 bytes read, 8 moved to add them. Where all is kept there is none.
static void shares_of_gradients_are_added_up(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING("fp32"), "{\"zero_stage\": 2}"))
        for (int stage = 1; stage <= 3; stage++) {
            c.scenario.execution.stack.training.weight_gradient = WEIGHT_GRADIENT_IN_PLACE;
            if (!shard(&c, stage, SHARDING_SUMMED)) continue;
            const Block *b = layer_block_of(&c, 0);
            double bytes = 0;
            for (int i = 0; i < b->num_backward; i++)
                if (strcmp(b->backward[i].name, "grad_accumulate") == 0)
                    bytes += b->backward[i].bytes;
            CU_ASSERT_EQUAL(bytes, stage < 2 ? 0 : b->dense_parameters * (4 + 12.0 / 8));
            const Op *product = &op_named(b->backward, b->num_backward, "fc1")[1];
            CU_ASSERT_EQUAL(product->gemm.after_bytes, 0);
            CU_ASSERT_EQUAL(product->gemm.epilogue_bytes, FC1_WEIGHTS * (2 * 4 - 2));
        }
    case_free(&c);
}

// --- What a part of a backward needs

#define RUNTIME "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"runtime\"}"
#define MADE_UP_NORM (2 * 1024)
#define MADE_UP_TABLE (1024 * 1024)
#define MADE_UP_LAYER (12 * 1024 * 1024 + 2 * MADE_UP_NORM)

// Bytes of one kind of collective over the shards' group in one part of a backward.
static double part_bytes(const Block *block, CollectiveKind kind, Phase phase) {
    double bytes = 0;
    for (int i = 0; i < block->num_backward; i++) {
        const Op *op = &block->backward[i];
        if (op->kind == OP_COLLECTIVE && op->collective.group == GROUP_ZERO &&
            op->collective.kind == kind && op->phase == phase)
            bytes += op->collective.message_bytes;
    }
    return bytes;
}

// Parameters whose weights (2 bytes) are gathered and whose gradients (4 bytes) are scattered.
static void assert_parts(const Block *b, double input_gathers, double input_scatters,
                         double weight_scatters) {
    CU_ASSERT_EQUAL(part_bytes(b, COLLECTIVE_ALL_GATHER, PHASE_BACKWARD_INPUT), 2 * input_gathers);
    CU_ASSERT_EQUAL(part_bytes(b, COLLECTIVE_ALL_GATHER, PHASE_BACKWARD_WEIGHT), 0);
    CU_ASSERT_EQUAL(part_bytes(b, COLLECTIVE_REDUCE_SCATTER, PHASE_BACKWARD_INPUT),
                    4 * input_scatters);
    CU_ASSERT_EQUAL(part_bytes(b, COLLECTIVE_REDUCE_SCATTER, PHASE_BACKWARD_WEIGHT),
                    4 * weight_scatters);
}

// Products read weights for the gradients of their inputs, and make those of weights later; of an
// embedding there is nothing but rows to add up, at once.
static void each_part_of_a_backward_moves_what_it_needs(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, RUNTIME,
                  "{\"pp\": 2, \"schedule\": \"zb-h1\", \"zero_stage\": 3}")) {
        const double tied_copy = MADE_UP_TABLE + MADE_UP_NORM;
        assert_parts(layer_block_of(&c, 0), MADE_UP_LAYER, 0, MADE_UP_LAYER);
        assert_parts(&c.workload.blocks[BLOCK_EMBEDDING], MADE_UP_TABLE, MADE_UP_TABLE, 0);
        assert_parts(&c.workload.blocks[BLOCK_HEAD], tied_copy, 0, tied_copy);
        c.scenario.parallel.zero_stage = 2;
        if (case_resolve(&c)) assert_parts(layer_block_of(&c, 0), 0, 0, MADE_UP_LAYER);
    }
    case_free(&c);
}

// A tied head of the same rank has no table of its own, but gathers it; once for both where the
// embedding's backward ends what the head's begins.
static void a_shared_table_is_gathered_for_the_head(void) {
    static const char *const SCHEDULES[] = {
        "{\"pp\": 2, \"vpp\": 2, \"schedule\": \"zb-v\", \"zero_stage\": 3, \"stages\": "
        "[{\"layers\": 1, \"embedding\": true}, {\"layers\": 1}, {\"layers\": 0}, "
        "{\"layers\": 0, \"loss\": true}]}",
        "{\"pp\": 2, \"schedule\": \"dualpipe\", \"zero_stage\": 3}",
        "{\"schedule\": \"zb-h1\", \"zero_stage\": 3}", "{\"zero_stage\": 3}"};
    for (int i = 0; i < 4; i++) {
        Case c;
        const double read = MADE_UP_NORM + (i < 3 ? MADE_UP_TABLE : 0);
        if (case_make(&c, MADE_UP_GPT, 8, RUNTIME, SCHEDULES[i])) {
            const Block *head = &c.workload.blocks[BLOCK_HEAD];
            CU_ASSERT_EQUAL(head->dense_parameters, MADE_UP_NORM);
            CU_ASSERT_EQUAL(collective_bytes(head->forward, head->num_forward,
                                             COLLECTIVE_ALL_GATHER, GROUP_ZERO),
                            2 * (MADE_UP_NORM + MADE_UP_TABLE));
            assert_parts(head, read, 0, read);
        }
        case_free(&c);
    }
}

// Of a stack that gathers nothing ahead, chunks of one layer.
static void whole_blocks_are_held_while_a_part_needs_them(void) {
    static const double PARAMETER_BYTES[4][4] = {
        [2] = {[WORK_BACKWARD] = 4, [WORK_BACKWARD_WEIGHT] = 4},
        [3] = {[WORK_FORWARD] = 2,
               [WORK_BACKWARD] = 6,
               [WORK_BACKWARD_INPUT] = 2,
               [WORK_BACKWARD_WEIGHT] = 4}};
    static const char FOUR_LAYERS[] =
        "{\"model_type\": \"generic\", \"name\": \"gpt\", \"hidden_size\": 1024, "
        "\"intermediate_size\": 4096, \"num_hidden_layers\": 4, \"num_attention_heads\": 16, "
        "\"vocab_size\": 1024, \"position\": \"none\", \"linear_bias\": false}";
    double peaks[4][NUM_WORK_KINDS] = {{0}};
    Case c;
    if (case_make(&c, FOUR_LAYERS, 8, RUNTIME, "{\"pp\": 4, \"schedule\": \"zb-h1\"}"))
        for (int stage = 0; stage <= 3; stage++) {
            c.scenario.parallel.zero_stage = stage;
            if (!case_resolve(&c)) continue;
            const Chunk *chunk = &c.workload.chunks[1];
            const double own[] = {[WORK_FORWARD] = chunk->forward_peak_bytes,
                                  [WORK_BACKWARD] = chunk->backward_peak_bytes,
                                  [WORK_BACKWARD_INPUT] = chunk->input_peak_bytes,
                                  [WORK_BACKWARD_WEIGHT] = chunk->weight_peak_bytes};
            memcpy(peaks[stage], own, sizeof own);
            for (int k = 0; k < NUM_WORK_KINDS; k++)
                CU_ASSERT_EQUAL(own[k] - peaks[0][k], PARAMETER_BYTES[stage][k] * MADE_UP_LAYER);
        }
    case_free(&c);
}

// Between the head's backward and the embedding's a tied table stays whole, where layers take the
// most too: as the plan's own ZeRO stage says, whatever strategy the layers have.
static void a_table_that_stays_is_of_the_plans_own_stage(void) {
    enum { TABLE = 1024 * 64 };
    static const struct {
        const char *parallel;
        double table_bytes; // a number
    } ROWS[] = {
        {"{\"zero_stage\": 3}", 6},
        {"{\"zero_stage\": 1, \"layers\": [{\"from\": 0, \"to\": 1, \"zero_stage\": 3}]}", 0},
        {"{\"zero_stage\": 3, \"layers\": [{\"from\": 0, \"to\": 1, \"zero_stage\": 1}]}", 6}};
    static const char MODEL[] =
        "{\"model_type\": \"generic\", \"name\": \"gpt\", \"hidden_size\": 64, "
        "\"intermediate_size\": 16384, \"num_hidden_layers\": 2, \"num_attention_heads\": 1, "
        "\"vocab_size\": 1024, \"position\": \"none\", \"tie_word_embeddings\": %s}";
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        double peak[2] = {0};
        for (int tied = 0; tied < 2; tied++) {
            Case c;
            Arena arena = {0};
            if (case_make(&c, arena_printf(&arena, MODEL, tied ? "true" : "false"), 8, RUNTIME,
                          ROWS[i].parallel))
                peak[tied] = c.workload.chunks[0].backward_peak_bytes;
            case_free(&c);
            arena_free(&arena);
        }
        CU_ASSERT_EQUAL(peak[1] - peak[0], ROWS[i].table_bytes * TABLE);
    }
}

CU_TestInfo sharding_tests[] = {
    {"each_part_of_a_backward_moves_what_it_needs", each_part_of_a_backward_moves_what_it_needs},
    {"a_shared_table_is_gathered_for_the_head", a_shared_table_is_gathered_for_the_head},
    {"whole_blocks_are_held_while_a_part_needs_them",
     whole_blocks_are_held_while_a_part_needs_them},
    {"a_table_that_stays_is_of_the_plans_own_stage", a_table_that_stays_is_of_the_plans_own_stage},
    {"gradients_are_brought_to_the_reduction", gradients_are_brought_to_the_reduction},
    {"gradients_may_stay_until_the_end_of_the_step", gradients_may_stay_until_the_end_of_the_step},
    {"gathered_weights_are_copied_out", gathered_weights_are_copied_out},
    {"shares_of_gradients_are_added_up", shares_of_gradients_are_added_up},
    {"partial_gradients_are_added_up_before", partial_gradients_are_added_up_before},
    CU_TEST_INFO_NULL,
};
