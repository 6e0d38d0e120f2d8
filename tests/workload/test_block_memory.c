// What the operators of a block keep, give back and hold for a moment.
#include "tests/workload/block_case.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-6)

// The 22B model of Korthikanti et al. 2022, table 3, one layer of it: s 2048, b 4, h 6144, a 64.
static const char *const GPT_22B =
    "{\"model_type\": \"generic\", \"name\": \"22b\", \"hidden_size\": 6144,"
    " \"intermediate_size\": 24576, \"num_hidden_layers\": 1, \"num_attention_heads\": 64,"
    " \"vocab_size\": 51200, \"max_position_embeddings\": 2048}";
static const double SBH = 2048.0 * 4 * 6144, HEADS = 64, SEQ = 2048, WIDTH = 6144;

static void assert_saved(const char *parallel, const char *attention, double sbh_bytes) {
    Case c;
    Arena arena = {0};
    const char *training = arena_printf(&arena,
                                        "{\"seq_len\": 2048, \"global_batch\": 4, \"stack\": "
                                        "\"megatron-2022\", \"precision\": \"fp16\", "
                                        "\"attention\": \"%s\"}",
                                        attention);
    const char *all = arena_printf(&arena, "{\"micro_batch\": 4%s}", parallel);
    const int num_gpus = strstr(parallel, "\"tp\": 8") ? 8 : 1;
    if (case_make(&c, GPT_22B, num_gpus, training, all))
        ASSERT_CLOSE(layer_block_of(&c, 0)->saved_bytes, sbh_bytes * SBH);
    case_free(&c);
    arena_free(&arena);
}

// Korthikanti et al. 2022, arXiv:2205.05198, table 2, bytes of one layer over sbh. No term differs:
// attention 11 + 5as/h, MLP 19, norms 4. With sequence parallelism full recomputation keeps 2/t, as
// the input it keeps is split too (the table has 2 for whole inputs).
static void activations_are_those_of_korthikanti(void) {
    const double scores = 5 * HEADS * SEQ / WIDTH;
    assert_saved("", "unfused", 34 + scores);
    assert_saved(", \"tp\": 8, \"sequence_parallel\": false", "unfused",
                 10 + 24.0 / 8 + scores / 8);
    assert_saved(", \"tp\": 8", "unfused", (34 + scores) / 8);
    assert_saved(", \"tp\": 8, \"sequence_parallel\": false, \"recompute\": \"selective\"",
                 "unfused", 10 + 24.0 / 8);
    assert_saved(", \"tp\": 8, \"recompute\": \"selective\"", "unfused", 34.0 / 8);
    assert_saved(", \"recompute\": \"full\"", "unfused", 2);
    assert_saved(", \"tp\": 8, \"sequence_parallel\": false, \"recompute\": \"full\"", "unfused",
                 2);
    assert_saved(", \"tp\": 8, \"recompute\": \"full\"", "unfused", 2.0 / 8);
}

// Fused attention keeps no scores; of each head and token the log of its sum of exponentials, in
// fp32: 4a/h, 0.1 % of 34. Recomputing it alone gives nothing back: its output is the input of the
// projection.
static void fused_attention_keeps_one_number_a_row(void) {
    const double rows = 4 * HEADS / WIDTH;
    assert_saved("", "flash", 34 + rows);
    assert_saved(", \"tp\": 8", "flash", (34 + rows) / 8);
    assert_saved(", \"recompute\": \"selective\"", "flash", 34 + rows);
}

typedef struct {
    const char *parallel;
    double sbh_bytes;
} DeferredRow;

// Qi et al. 2023, arXiv:2401.10241, table 1: the weight part needs 32 sbh: what the four products
// read, 2 + 2 + 2 + 8, and the gradients of what they made, 6 + 2 + 8 + 2. Attention has no
// weights, and recomputation no say: what is computed again waits for the weight part too. With tp
// the two row products' gradients, 2 + 2, are whole on each rank, and without sequence parallelism
// what the two column products read.
static void weight_parts_need_32_bytes(void) {
    static const DeferredRow ROWS[] = {
        {"", 32},
        {", \"recompute\": \"full\"", 32},
        {", \"tp\": 8", 4 + 28.0 / 8},
        {", \"tp\": 8, \"sequence_parallel\": false", 8 + 24.0 / 8},
    };
    for (int i = 0; i < 8; i++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(&arena,
                                            "{\"seq_len\": 2048, \"global_batch\": 4, \"stack\": "
                                            "\"megatron-2022\", \"precision\": \"fp16\", "
                                            "\"attention\": \"%s\"}",
                                            i % 2 ? "flash" : "unfused");
        const char *all = arena_printf(&arena, "{\"micro_batch\": 4%s}", ROWS[i / 2].parallel);
        if (case_make(&c, GPT_22B, i / 2 < 2 ? 1 : 8, training, all))
            ASSERT_CLOSE(layer_block_of(&c, 0)->deferred_bytes, ROWS[i / 2].sbh_bytes * SBH);
        case_free(&c);
        arena_free(&arena);
    }
}

#define RMS                                                                                        \
    "{\"model_type\": \"generic\", \"name\": \"rms\", \"hidden_size\": 1024, \"norm\": "           \
    "\"rmsnorm\","                                                                                 \
    " \"intermediate_size\": 4096, \"num_hidden_layers\": 2, \"num_attention_heads\": 16,"         \
    " \"vocab_size\": 1024, \"position\": \"none\", \"linear_bias\": false}"

typedef struct {
    const char *training, *parallel;
    double bytes;      // of values of HIDDEN, per token
    const char *model; // or MADE_UP_GPT
} KeptRow;

// Per token and hidden size, heads of 64: norm 2 + 2, queries, keys, values 6, result 2, norm 2 +
// 2, activation 8 + 8: 32 (no dropout), and 4 bytes for each of 16 heads. Recomputed: the MLP keeps
// nothing of 16; the norms only their inputs. In 8 bits what products read is 1 byte: norms 2 + 1,
// attention 6 + 2 and its copy 1, activation 8 + 4. In fp32 twice as much. In torchtitan an
// RMSNorm is a chain of operators, which keeps 4 + 2 instead of its input; compiled, and in later
// releases, it is one. By operator: the layer's input 2, attention 2, and of the products' results
// the first, third and fifth: queries 2, values 2, fc1 8.
static const KeptRow KEPT[] = {
    {"", "{}", 32, NULL},
    {"", "{\"recompute\": \"selective\", \"recompute_modules\": [\"mlp\"]}", 16, NULL},
    {"", "{\"recompute\": \"selective\", \"recompute_modules\": [\"layernorm\"]}", 28, NULL},
    {"", "{\"recompute\": \"selective\", \"recompute_modules\": [\"layernorm\", \"mlp\"]}", 12,
     NULL},
    {", \"precision\": \"fp8\"", "{}", 27, NULL},
    {", \"precision\": \"fp32\"", "{}", 64, NULL},
    {", \"stack\": \"torchtitan\"", "{}", 32, NULL},
    {", \"stack\": \"torchtitan\"", "{}", 40, RMS},
    {", \"stack\": \"torchtitan\", \"stack_version\": \"0.2\"", "{}", 32, RMS},
    {", \"stack\": \"torchtitan\", \"compile\": true", "{}", 32, RMS},
    {", \"stack\": \"torchtitan\"", "{\"recompute\": \"selective\"}", 16, NULL},
};

static void kept_bytes_by_hand(void) {
    for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++) {
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 8%s}", KEPT[i].training);
        const char *model = KEPT[i].model ? KEPT[i].model : MADE_UP_GPT;
        if (case_make(&c, model, 8, training, KEPT[i].parallel))
            ASSERT_CLOSE(layer_block_of(&c, 0)->saved_bytes,
                         2048 * (1024 * KEPT[i].bytes + 16 * 4));
        case_free(&c);
        arena_free(&arena);
    }
}

// Gated and with queries of 1024, keys and values of 256 each: queries, keys, values, projection,
// gate, up, fc2 are seven products, of which torchtitan's checkpointing by operator keeps queries
// and values (2 + 1/2 of 1024), the gate (2 of 4096) and fc2's (2), which no operator needs: it
// goes where the layer is compiled. Input and attention 2 + 2, 16 rows of 4.
static void every_second_product_is_kept(void) {
    const double rest = 2 + 2 + 2.5 + 8, rows = 16 * 4;
    for (int compiled = 0; compiled < 2; compiled++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(&arena,
                                            "{\"seq_len\": 2048, \"global_batch\": 8, "
                                            "\"stack\": \"torchtitan\", \"compile\": %s}",
                                            compiled ? "true" : "false");
        if (case_make(&c, MADE_UP_MOE, 8, training, "{\"recompute\": \"selective\"}"))
            ASSERT_CLOSE(layer_block_of(&c, 0)->saved_bytes,
                         2048 * (1024 * (rest + (compiled ? 0 : 2)) + rows));
        case_free(&c);
        arena_free(&arena);
    }
}

// tp 4 with sequence parallelism, in values of 2048 x 1024: beside fc1's weight gradient there are
// the gradient that it reads, 4 / 4, the gathered input, 1, and the input's gradient, 1, with what
// is scattered of it, 1 / 4; the runtime scatters after it.
static void what_is_scattered_may_wait(void) {
    static const struct {
        const char *training;
        double bytes;
    } ROWS[] = {{"{\"seq_len\": 2048, \"global_batch\": 8}", 3.25 * 2},
                {"{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"runtime\", "
                 "\"precision\": \"fp32\"}",
                 3 * 4}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        if (case_make(&c, MADE_UP_GPT, 8, ROWS[i].training, "{\"tp\": 4}")) {
            const Block *b = layer_block_of(&c, 0);
            const Op *op = op_named(b->backward, b->num_backward, "fc1");
            while (op->kind != OP_GEMM || op->phase != PHASE_BACKWARD_WEIGHT) op++;
            ASSERT_CLOSE(op->transient_bytes, ROWS[i].bytes * 2048 * 1024);
        }
        case_free(&c);
    }
}

// In values of 2048 x 1024: a product that runs again reads what nothing keeps, the norm's result,
// 1, and the activation's, 4, and makes 4 and 1, while the branch's input waits, 1. Attention reads
// queries, keys and values, 3, of which nothing waits, and makes and leaves its result.
static void what_is_dropped_is_held_while_it_is_read(void) {
    static const struct {
        const char *recompute, *name;
        double bytes;
    } ROWS[] = {{"none", "fc1", 4},       {"full", "fc1", 4 + 1 + 1},
                {"none", "fc2", 1},       {"full", "fc2", 1 + 4 + 1},
                {"none", "out_proj", 1},  {"full", "out_proj", 1 + 1},
                {"none", "core_attn", 1}, {"full", "core_attn", 1 + 1 + 3}};
    const double one = 2048 * 1024 * 2, log_sums = 2048 * 16 * 4;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        Arena arena = {0};
        if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}",
                      arena_printf(&arena, "{\"recompute\": \"%s\"}", ROWS[i].recompute))) {
            const Block *b = workload_layer_block(&c.workload, 0, PLAN_OWN);
            const Op *op = op_named(b->forward, b->num_forward, ROWS[i].name);
            const bool sums = i == 5 || i == 7;
            ASSERT_CLOSE(op->transient_bytes, ROWS[i].bytes * one + (sums ? log_sums : 0));
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// tp 4 with sequence parallelism, per token of 2048: torchtitan keeps the gathered inputs of two
// products, 2 + 2 of 1024, where Transformer Engine keeps this rank's quarter. All else is split
// (compiled: 28 / 4).
static void gathered_inputs_may_be_kept(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"torchtitan\", "
                  "\"compile\": true}",
                  "{\"tp\": 4}"))
        ASSERT_CLOSE(layer_block_of(&c, 0)->saved_bytes,
                     2048 * (1024 * (28.0 / 4 + 4) + 16 * 4 / 4.0));
    case_free(&c);
}

// Gated, 2048 tokens: each of 2 x 2048 routed tokens is kept (2 x 1024 bytes), and of experts 512
// wide gate and up (4 x 512) and their product (2 x 512); the shared expert the same for each
// token; 4 bytes for each of 8 scores. Attention: norm 2 + 2 and queries 2, keys and values 2 x 1/4
// x 2, result 2 of 1024; 16 rows of 4; norm 2 + 2. moe_act: the products of the routed experts go.
static void experts_keep_what_they_get(void) {
    const double attention = 2048 * (1024 * (4 + 2 + 1 + 2 + 4) + 16 * 4.0);
    const double product = 512 * 2, width = 2 * product + product;
    const double shared = 2048 * width, scores = 2048 * 8 * 4;
    const double routed = 2 * 2048 * (2 * 1024 + width);
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", "{\"ep\": 2}")) {
        ASSERT_CLOSE(layer_block_of(&c, 1)->saved_bytes, attention + scores + routed + shared);
        c.scenario.training.moe_imbalance = 1.5;
        if (case_resolve(&c))
            ASSERT_CLOSE(layer_block_of(&c, 1)->saved_bytes,
                         attention + scores + 1.5 * routed + shared);
        c.scenario.training.moe_imbalance = 1;
        c.scenario.parallel.recompute = RECOMPUTE_SELECTIVE;
        c.scenario.parallel.recompute_modules = MODULE_MOE_ACT;
        if (case_resolve(&c))
            ASSERT_CLOSE(layer_block_of(&c, 1)->saved_bytes,
                         attention + scores + routed + shared - 2 * 2048 * product);
        c.scenario.parallel.recompute_modules = MODULE_MOE;
        if (case_resolve(&c)) ASSERT_CLOSE(layer_block_of(&c, 1)->saved_bytes, attention);
    }
    case_free(&c);
}

// The most that the loss's backward holds, the logits included.
static double loss_peak(const Case *c) {
    const Block *head = &c->workload.blocks[BLOCK_HEAD];
    const Op *forward = op_named(head->forward, head->num_forward, "cross_entropy");
    return forward->saved_bytes +
           op_named(head->backward, head->num_backward, "cross_entropy")->transient_bytes;
}

// Bytes of a logit while the loss makes its gradient. Megatron: the fp32 softmax becomes it, then a
// 16-bit copy; PyTorch: log-softmax, its gradient, its input's; DTensor: log-softmax, gradient,
// exponentials, their sum. Fused: the logits, and where PyTorch compiles it a gradient beside them.
static void losses_hold_what_they_make(void) {
    static const struct {
        const char *stack;
        int tp;
        bool fused;
        double bytes, unusable;
    } ROWS[] = {
        {"megatron-core", 1, false, 4 + 2, 0},  {"megatron-core", 2, false, 4 + 2, 0},
        {"torchtitan", 1, false, 4 + 4 + 4, 2}, {"torchtitan", 2, false, 4 + 4 + 4 + 4, 2},
        {"megatron-core", 1, true, 2, 0},       {"torchtitan", 1, true, 2 + 2, 0},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena,
                         "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"%s\", "
                         "\"cross_entropy_fused\": %s}",
                         ROWS[i].stack, ROWS[i].fused ? "true" : "false");
        const double logits = 2048.0 * 1024 / ROWS[i].tp;
        if (case_make(&c, MADE_UP_GPT, 8, training,
                      arena_printf(&arena, "{\"tp\": %d}", ROWS[i].tp))) {
            ASSERT_CLOSE(loss_peak(&c), logits * ROWS[i].bytes);
            ASSERT_CLOSE(c.workload.blocks[BLOCK_HEAD].unusable_bytes, logits * ROWS[i].unusable);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// Logits of 1024 words: fused, their gradient takes their place (2 bytes each); else the softmax is
// kept in fp32. With the norm before them 2 + 2 of 1024.
static void losses_keep_logits(void) {
    const double norm = 2048 * 1024 * 4.0;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", NULL)) {
        c.scenario.execution.cross_entropy_fused = true;
        if (case_resolve(&c))
            ASSERT_CLOSE(c.workload.blocks[BLOCK_HEAD].saved_bytes, norm + 2048 * 1024 * 2);
        c.scenario.execution.cross_entropy_fused = false;
        if (case_resolve(&c))
            ASSERT_CLOSE(c.workload.blocks[BLOCK_HEAD].saved_bytes, norm + 2048 * 1024 * 4);
    }
    case_free(&c);
}

// --- Laws, over a grid

// Whether an operator waits for one before it, and runs beside one of the list.
static bool is_well_linked(const Op *ops, int num_ops, int i) {
    const Op *op = &ops[i];
    if (op->wait != WAIT_PREVIOUS && op->wait != WAIT_NOTHING && (op->wait < 0 || op->wait >= i))
        return false;
    if (op->pipelined_with < 0) return true;
    return op->pipelined_with < num_ops && op->pipelined_with != i &&
           ops[op->pipelined_with].kind != OP_COLLECTIVE;
}

// Checks a list; returns what it leaves behind, and its most in *peak.
static double list_check(const Op *ops, int num_ops, const Plan *plan, double *peak) {
    double held = 0;
    *peak = 0;
    for (int i = 0; i < num_ops; i++) {
        const Op *op = &ops[i];
        CU_ASSERT_TRUE(is_well_linked(ops, num_ops, i));
        CU_ASSERT_TRUE(op->saved_bytes >= -1e-6 && op->released_bytes >= 0);
        CU_ASSERT_TRUE(op->transient_bytes >= 0 && op->bytes >= 0 && op->flops >= 0);
        if (op->kind == OP_COLLECTIVE) {
            CU_ASSERT_NOT_EQUAL(op->collective.kind, NUM_COLLECTIVES);
            CU_ASSERT_TRUE(plan_group(plan, op->collective.group).size > 1 &&
                           op->collective.message_bytes > 0);
        }
        if (op->kind == OP_GEMM)
            CU_ASSERT_TRUE(op->gemm.groups >= 1 && op->gemm.m > 0 && op->gemm.n >= 1 &&
                           op->gemm.k > 0);
        *peak = fmax(*peak, held + op->saved_bytes + op->transient_bytes);
        held += op->saved_bytes - op->released_bytes;
    }
    return held;
}

// What the forward keeps the backward gives back; the peaks are those of the lists.
static void block_check(const Block *b, const Plan *plan) {
    double peak;
    const double kept = list_check(b->forward, b->num_forward, plan, &peak);
    ASSERT_CLOSE(b->saved_bytes, kept);
    ASSERT_CLOSE(b->forward_peak_bytes, peak);
    const double left = list_check(b->backward, b->num_backward, plan, &peak);
    CU_ASSERT_DOUBLE_EQUAL(left, -kept, 1e-6 * kept + 1e-6);
    ASSERT_CLOSE(b->backward_peak_bytes, peak);
}

static const char *const PARALLEL_RESIDUAL =
    "{\"model_type\": \"gpt_neox\", \"hidden_size\": 1024, \"intermediate_size\": 4096,"
    " \"num_hidden_layers\": 2, \"num_attention_heads\": 16, \"vocab_size\": 1000,"
    " \"hidden_act\": \"gelu\", \"use_parallel_residual\": true, \"rotary_pct\": 0.25}";
static const char *const STACKS[] = {"megatron-core", "megatron-2022", "torchtitan",
                                     "pytorch-fsdp",  "internevo",     "llm.c"};
static const char *const RECOMPUTES[] = {
    "\"none\"",
    "\"full\"",
    "\"selective\"",
    "\"selective\", \"recompute_modules\": [\"core_attn\", \"mla_up_proj\", \"moe_act\"]",
    "\"selective\", \"recompute_modules\": [\"layernorm\", \"mlp\", \"shared_experts\"]",
    "\"selective\", \"recompute_modules\": [\"moe\", \"layernorm\"]",
};
static const char *const SPLITS[] = {
    "\"tp\": 1",
    "\"tp\": 4, \"cp\": 2",
    "\"tp\": 2, \"sequence_parallel\": false, \"cp\": 2, \"cp_method\": \"all-gather\"",
    "\"tp\": 2, \"cp\": 2, \"cp_method\": \"ulysses\"",
    "\"tp\": 2, \"pp\": 2, \"zero_stage\": 3, \"reshard_after_forward\": false",
};

static const char *model_of(int i) {
    return i == 0 ? MADE_UP_MOE : i == 1 ? MADE_UP_MLA : i == 2 ? MADE_UP_GPT : PARALLEL_RESIDUAL;
}

// One point of the grid: every index a digit of it.
static void point_check(int point, Arena *arena) {
    const int model = point % 4, stack = point / 4 % 6, recompute = point / 24 % 6;
    const int split = point / 144 % 5, variant = point / 720;
    const char *experts = model < 2 ? (split == 1 ? ", \"ep\": 2, \"etp\": 2" : ", \"ep\": 4") : "";
    const char *training = arena_printf(
        arena,
        "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"%s\", \"precision\": \"%s\", "
        "\"attention\": \"%s\", \"tp_comm_overlap\": %s, \"ep_overlap\": %s}",
        STACKS[stack], variant & 1 ? "fp8" : "bf16", variant & 2 ? "unfused" : "flash",
        variant & 4 ? "true" : "false", variant & 4 ? "true" : "false");
    const char *parallel = arena_printf(arena, "{\"micro_batch\": 2, \"recompute\": %s, %s%s}",
                                        RECOMPUTES[recompute], SPLITS[split], experts);
    Case c;
    if (case_make(&c, model_of(model), 16, training, parallel))
        for (int i = 0; i < MAX_BLOCKS; i++)
            if (c.workload.blocks[i].num_forward > 0) block_check(&c.workload.blocks[i], &c.plan);
    case_free(&c);
}

static void backwards_give_back_what_forwards_keep(void) {
    Arena arena = {0};
    for (int point = 0; point < 720 * 8; point += 7) {
        point_check(point, &arena);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

CU_TestInfo block_memory_tests[] = {
    {"activations_are_those_of_korthikanti", activations_are_those_of_korthikanti},
    {"weight_parts_need_32_bytes", weight_parts_need_32_bytes},
    {"fused_attention_keeps_one_number_a_row", fused_attention_keeps_one_number_a_row},
    {"kept_bytes_by_hand", kept_bytes_by_hand},
    {"every_second_product_is_kept", every_second_product_is_kept},
    {"what_is_scattered_may_wait", what_is_scattered_may_wait},
    {"what_is_dropped_is_held_while_it_is_read", what_is_dropped_is_held_while_it_is_read},
    {"gathered_inputs_may_be_kept", gathered_inputs_may_be_kept},
    {"experts_keep_what_they_get", experts_keep_what_they_get},
    {"losses_hold_what_they_make", losses_hold_what_they_make},
    {"losses_keep_logits", losses_keep_logits},
    {"backwards_give_back_what_forwards_keep", backwards_give_back_what_forwards_keep},
    CU_TEST_INFO_NULL,
};
