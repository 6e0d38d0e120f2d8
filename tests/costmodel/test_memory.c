#include "costmodel/memory/memory.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-3)

#define TRAINING "{\"seq_len\": 1024, \"global_batch\": 32}"

static RankMemory account_of(Case *c, int rank) {
    return memory_closed_form(&c->scenario, &c->plan, &c->workload, rank);
}

// --- Weights, gradients, optimizer

static double parameters_of(const Case *c) {
    return c->workload.chunks[0].dense_parameters;
}

// Rajbhandari et al. 2020, section 3 and figure 1, with gradients in fp32: a parameter is 2 bytes
// of weight, 4 of gradient and 12 of optimizer; each stage divides one more of them by 8 ranks.
static void zero_stages_divide(void) {
    for (int stage = 0; stage <= 3; stage++) {
        Case c;
        Arena arena = {0};
        if (case_make(&c, MADE_UP_GPT, 8, TRAINING,
                      arena_printf(&arena, "{\"zero_stage\": %d}", stage))) {
            const double p = parameters_of(&c);
            const RankMemory m = account_of(&c, 0);
            ASSERT_CLOSE(m.weights_bytes, 2 * p / (stage >= 3 ? 8 : 1));
            ASSERT_CLOSE(m.gradients_bytes, 4 * p / (stage >= 2 ? 8 : 1));
            ASSERT_CLOSE(m.optimizer_bytes, 12 * p / (stage >= 1 ? 8 : 1));
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// torchtitan lets go of its gradients after the step, and its shards are 4 bytes a parameter over 8
// ranks. One micro-batch a step: there are none while all activations are. Two: the second meets
// those of the first. The runs differ in the sum of the step alone: 8 or 16 sequences, one at once.
static void gradients_that_are_let_go_are_not_held_at_the_peak(void) {
    RankMemory m[2];
    for (int more = 0; more < 2; more++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(
            &arena, "{\"seq_len\": 1024, \"global_batch\": %d, \"stack\": \"torchtitan\"}",
            8 << more);
        if (case_make(&c, MADE_UP_GPT, 8, training, "{\"zero_stage\": 3}")) {
            m[more] = account_of(&c, 0);
            ASSERT_CLOSE(m[more].gradients_bytes, more ? 4 * parameters_of(&c) / 8 : 0);
        }
        case_free(&c);
        arena_free(&arena);
    }
    ASSERT_CLOSE(m[0].activations_bytes, m[1].activations_bytes);
    ASSERT_CLOSE(m[1].peak_bytes - m[0].peak_bytes, m[1].gradients_bytes);
}

// dp 2 x cp 4 share shards as one group of 8; in groups of 2 each holds half.
static void shards_are_spread_over_their_group(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, "{\"cp\": 4}")) {
        ASSERT_CLOSE(account_of(&c, 0).optimizer_bytes, 12 * parameters_of(&c) / 8);
        c.scenario.parallel.zero_group = 2;
        if (case_resolve(&c))
            ASSERT_CLOSE(account_of(&c, 0).optimizer_bytes, 12 * parameters_of(&c) / 2);
    }
    case_free(&c);
}

// A step of 4 micro-batches that reduces once keeps whole gradients: FSDP1 in the format of its
// gathered weights, FSDP2 in that of the reduction; else each rank its eighth, in fp32. torchtitan
// does so in a pipeline of its own accord, where a rank has half of the layers and all 4 replicas'.
static void gradients_that_are_reduced_once_are_whole(void) {
    static const struct {
        const char *training, *parallel;
        double bytes; // of a gradient
    } ROWS[] = {
        {"pytorch-fsdp", "{\"dp\": 8}", 4.0 / 8},
        {"pytorch-fsdp\", \"grad_reduce\": \"step", "{\"dp\": 8}", 2},
        {"torchtitan", "{\"dp\": 8}", 4.0 / 8},
        {"torchtitan\", \"grad_reduce\": \"step", "{\"dp\": 8}", 4},
        {"torchtitan", "{\"pp\": 2}", 4},
        {"torchtitan\", \"grad_reduce\": \"micro_batch", "{\"pp\": 2}", 4.0 / 4},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Arena arena = {0};
        Case c;
        if (case_make(&c, MADE_UP_GPT, 8,
                      arena_printf(&arena,
                                   "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"%s\"}",
                                   ROWS[i].training),
                      ROWS[i].parallel))
            ASSERT_CLOSE(account_of(&c, 0).gradients_bytes, ROWS[i].bytes * parameters_of(&c));
        case_free(&c);
        arena_free(&arena);
    }
}

// nanotron leaves 16-bit gradients beside its fp32 buffer until a backward ends, and DDP's buckets
// are as large where there are replicas.
static void gradients_may_have_copies(void) {
    Case c;
    const char *training = "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"nanotron\"}";
    if (case_make(&c, MADE_UP_GPT, 8, training, "{\"tp\": 8}"))
        ASSERT_CLOSE(account_of(&c, 0).gradients_bytes, (4 + 2) * parameters_of(&c));
    case_free(&c);
    if (case_make(&c, MADE_UP_GPT, 8, training, "{\"tp\": 2}"))
        ASSERT_CLOSE(account_of(&c, 0).gradients_bytes, (4 + 2 + 2) * parameters_of(&c));
    case_free(&c);
}

// ep 4 of 8 ranks: experts have 2 replicas, all else 8.
static void experts_are_spread_over_their_replicas(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8, TRAINING, "{\"ep\": 4}")) {
        const Chunk *chunk = &c.workload.chunks[0];
        CU_ASSERT_EQUAL(chunk->expert_parameters, 3 * 2 * 3 * 1024 * 512); // 3 layers, 2 experts
        ASSERT_CLOSE(account_of(&c, 0).optimizer_bytes,
                     12 * (chunk->dense_parameters / 8 + chunk->expert_parameters / 2));
    }
    case_free(&c);
}

typedef struct {
    const char *training;
    double weight, gradient, optimizer; // bytes of a parameter, nothing sharded
} FormatRow;

static const FormatRow FORMATS[] = {
    {"", 2, 4, 12},
    {", \"grad_reduce_dtype\": \"bf16\"", 2, 2, 12},
    {", \"optimizer_dtype\": \"bf16\"", 2, 4, 8},
    {", \"optimizer\": \"sgd\"", 2, 4, 8},
    {", \"precision\": \"fp8\"", 2, 4, 12},
    {", \"precision\": \"fp32\"", 4, 4, 8}, // one copy, no master
    {", \"precision\": \"fp64\"", 8, 8, 16},
    {", \"stack\": \"torchtitan\"", 4, 4, 8},
    {", \"stack\": \"llm.c\"", 2, 2, 12},
    {", \"stack\": \"megatron-2021\"", 2, 4, 12}, // --bf16 sums in fp32, --fp16 does not
    {", \"stack\": \"megatron-2021\", \"precision\": \"fp16\"", 2, 2, 12},
};

static void formats_by_hand(void) {
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        const FormatRow *row = &FORMATS[i];
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena, "{\"seq_len\": 1024, \"global_batch\": 32%s}", row->training);
        if (case_make(&c, MADE_UP_GPT, 8, training, "{\"zero_stage\": 0}")) {
            const double p = parameters_of(&c);
            const RankMemory m = account_of(&c, 0);
            ASSERT_CLOSE(m.weights_bytes, row->weight * p);
            ASSERT_CLOSE(m.gradients_bytes, row->gradient * p);
            ASSERT_CLOSE(m.optimizer_bytes, row->optimizer * p);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// --- Activations

// The most that the lists of a chunk, run block after block, hold above their start.
static double expanded_peak(const Case *c, const Chunk *chunk, bool forward, double *left) {
    double held = 0, peak = 0;
    for (int k = 0; k < MAX_BLOCKS; k++) {
        const int i = forward ? k : MAX_BLOCKS - 1 - k;
        const Block *b = &c->workload.blocks[i];
        const Op *ops = forward ? b->forward : b->backward;
        const int num_ops = forward ? b->num_forward : b->num_backward;
        for (int n = 0; n < chunk->num_blocks[i] * num_ops; n++) {
            const Op *op = &ops[n % num_ops];
            peak = fmax(peak, held + op->saved_bytes + op->transient_bytes);
            held += op->saved_bytes - op->released_bytes;
        }
    }
    *left = held;
    return peak;
}

// The same of one part of a split backward: a product's output gradient ([k x m] of the weight
// gradient, in 16 bits) and what the weight gradient gives back pass from the first to the second,
// and so does what it reads of another operator, which that operator does not give back then. An
// output gradient that is the residual's is there once until that is another.
static double expanded_part_peak(const Case *c, const Chunk *chunk, bool weight, double *left) {
    double held = 0, peak = 0, shared = 0;
    for (int i = MAX_BLOCKS - 1; i >= 0; i--) {
        const Block *b = &c->workload.blocks[i];
        for (int n = 0; n < chunk->num_blocks[i] * b->num_backward; n++) {
            const Op *op = &b->backward[n % b->num_backward];
            const bool later = op->phase == PHASE_BACKWARD_WEIGHT;
            const double gradient =
                later && op->kind == OP_GEMM ? op->gemm.groups * op->gemm.m * op->gemm.k * 2 : 0;
            if (later == weight) {
                const double gone = later ? op->input_gradient_bytes : op->regathered_bytes;
                const double waited = later ? op->residual_bytes : 0;
                peak = fmax(peak, held + op->saved_bytes + op->transient_bytes + waited - gone -
                                      gradient);
                const double stays = !later && op->released_bytes >= shared ? shared : 0;
                held += op->saved_bytes - op->released_bytes - gradient - op->shared_bytes +
                        (later ? 0 : op->residual_bytes) + stays;
                shared -= stays;
            } else if (later) {
                held += gradient - op->residual_bytes;
                shared += op->shared_bytes;
            }
            peak = fmax(peak, held);
        }
    }
    *left = held;
    return peak;
}

static void split_backwards_give_the_chunks_memory(const Case *c, const Chunk *chunk) {
    double left;
    ASSERT_CLOSE(chunk->input_peak_bytes, expanded_part_peak(c, chunk, false, &left));
    ASSERT_CLOSE(left, chunk->deferred_bytes - chunk->saved_bytes);
    ASSERT_CLOSE(chunk->weight_peak_bytes, expanded_part_peak(c, chunk, true, &left));
    ASSERT_CLOSE(left, -chunk->deferred_bytes);
}

// Ties the operator level to the chunk level: all operators of all blocks, one after the other.
static void expanded_operators_give_the_chunks_memory(void) {
    static const char *const PLANS[] = {
        "{\"pp\": 2, \"tp\": 2, \"ep\": 4}",
        "{\"pp\": 2, \"vpp\": 2, \"recompute\": \"full\", \"recompute_layers\": 1}",
        "{\"cp\": 2, \"recompute\": \"selective\", \"recompute_modules\": [\"moe\", \"mlp\"]}"};
    static const char *const LLAMA = "\"llama-3.2-1b\"";
    for (int i = 0; i < 9; i++) {
        Case c;
        const char *model = i % 3 == 0 ? MADE_UP_MOE : i % 3 == 1 ? MADE_UP_MLA : LLAMA;
        if (i == 2) model = MADE_UP_MOE; // the first plan splits experts
        if (case_make(&c, model, 8, TRAINING, PLANS[i / 3]))
            for (int k = 0; k < c.workload.num_chunks; k++) {
                const Chunk *chunk = &c.workload.chunks[k];
                double left;
                ASSERT_CLOSE(chunk->forward_peak_bytes, expanded_peak(&c, chunk, true, &left));
                ASSERT_CLOSE(chunk->saved_bytes, left);
                ASSERT_CLOSE(chunk->backward_peak_bytes, expanded_peak(&c, chunk, false, &left));
                ASSERT_CLOSE(left, -chunk->saved_bytes);
                split_backwards_give_the_chunks_memory(&c, chunk);
            }
        case_free(&c);
    }
}

// --- The whole

static void parts_add_up(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 16, TRAINING, "{\"tp\": 2, \"pp\": 2, \"ep\": 4}")) {
        Stack *stack = &c.scenario.execution.stack;
        stack->residency.allocator_slack_frac = 0.5;
        stack->residency.context_bytes = 1e9;
        stack->residency.comm_bytes_per_group = 1e8;
        const RankMemory m = account_of(&c, 0);
        CU_ASSERT_TRUE(m.weights_bytes > 0 && m.gradients_bytes > 0 && m.optimizer_bytes > 0);
        CU_ASSERT_TRUE(m.activations_bytes > 0 && m.buffers_bytes > 0);
        ASSERT_CLOSE(m.peak_bytes, m.weights_bytes + m.gradients_bytes + m.optimizer_bytes +
                                       m.activations_bytes + m.buffers_bytes);
        ASSERT_CLOSE(m.reserved_bytes, 1.5 * m.peak_bytes);
        // tp, dp, ep, expert dp (tp 2 x dp 4 / ep 4) and pp communicate.
        ASSERT_CLOSE(m.device_bytes, m.reserved_bytes + 1e9 + 5e8);
    }
    case_free(&c);
}

// Allocated memory of layer-truncated models on eight B200 as MooreThreads/SimuMax publishes it,
// docs/b200/b200_release_v1.2_summary.json, max_allocated of the worst rank, in GiB.
typedef struct {
    const char *model, *parallel;
    int seq_len, global_batch;
    double gib;
} AllocationRow;

#define LLAMA_LAYERS(layers, hidden, ffn, heads, kv)                                               \
    "{\"model_type\": \"llama\", \"name\": \"llama\", \"hidden_size\": " #hidden                   \
    ", \"intermediate_size\": " #ffn ", \"num_hidden_layers\": " #layers                           \
    ", \"num_attention_heads\": " #heads ", \"num_key_value_heads\": " #kv                         \
    ", \"vocab_size\": 128256}"
#define LLAMA_70B LLAMA_LAYERS(12, 8192, 28672, 64, 8)
#define LLAMA_405B LLAMA_LAYERS(4, 16384, 53248, 128, 16)
#define DEEPSEEK_V3                                                                                \
    "{\"model_type\": \"generic\", \"name\": \"v3\", \"hidden_size\": 7168, "                      \
    "\"intermediate_size\": "                                                                      \
    "18432, \"num_hidden_layers\": 4, \"num_attention_heads\": 128, \"vocab_size\": 129280, "      \
    "\"gated_mlp\": true, \"norm\": \"rmsnorm\", \"position\": \"rope\", \"linear_bias\": false, " \
    "\"tie_word_embeddings\": false, \"n_routed_experts\": 256, \"num_experts_per_tok\": 8, "      \
    "\"moe_intermediate_size\": 2048, \"first_k_dense_replace\": 1, "                              \
    "\"shared_expert_intermediate_size\": 2048, \"q_lora_rank\": 1536, \"kv_lora_rank\": 512, "    \
    "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128}"

static const AllocationRow ALLOCATIONS[] = {
    {LLAMA_70B, "{\"pp\": 2}", 4096, 16, 66.55},
    {LLAMA_70B, "{\"tp\": 2}", 4096, 16, 60.68},
    {LLAMA_70B, "{\"tp\": 8}", 4096, 4, 28.29},
    {LLAMA_405B, "{\"tp\": 4}", 4096, 8, 52.89},
    {LLAMA_70B, "{\"tp\": 2, \"cp\": 4, \"cp_method\": \"ulysses\"}", 131072, 4, 112.67},
    {LLAMA_70B, "{\"cp\": 8, \"cp_method\": \"ulysses\"}", 131072, 4, 147.99},
    {LLAMA_405B, "{\"tp\": 2, \"cp\": 4, \"cp_method\": \"ulysses\"}", 131072, 4, 118.13},
    {LLAMA_405B, "{\"cp\": 8, \"cp_method\": \"ulysses\"}", 32768, 4, 139.22},
    {DEEPSEEK_V3, "{\"ep\": 8}", 4096, 32, 104.30},
};

// Dense models within 0.2 %; experts within 1 % (docs/accuracy.md).
static void published_allocations(void) {
    for (size_t i = 0; i < sizeof ALLOCATIONS / sizeof *ALLOCATIONS; i++) {
        const AllocationRow *row = &ALLOCATIONS[i];
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(&arena, "{\"seq_len\": %d, \"global_batch\": %d}",
                                            row->seq_len, row->global_batch);
        int rank;
        if (case_make(&c, row->model, 8, training, row->parallel)) {
            const double gib =
                memory_worst_rank(&c.scenario, &c.plan, &c.workload, &rank).peak_bytes /
                1073741824.0;
            const double bound = model_ffn(&c.scenario.model)->num_experts > 0 ? 0.01 : 0.002;
            CU_ASSERT_DOUBLE_EQUAL(gib, row->gib, bound * row->gib);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// The slack of a half is reserved while the device has room for it, cached memory goes back before
// an allocation fails, but half of it not: what is live and that have to fit, with 1 GB outside.
static void cached_memory_is_given_back(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, NULL)) {
        Stack *stack = &c.scenario.execution.stack;
        double *available = &test_pool(&c.scenario.cluster)->gpu.memory_available_bytes;
        stack->residency.allocator_slack_frac = 0.5;
        stack->residency.context_bytes = 1e9;
        stack->residency.comm_bytes_per_group = 0;
        const double peak = account_of(&c, 0).peak_bytes;
        const double available_bytes[] = {2 * peak + 1e9, 1.25 * peak + 1e9, 0.5 * peak + 1e9};
        const double reserved_bytes[] = {1.5 * peak, 1.25 * peak, 1.25 * peak};
        for (int i = 0; i < 3; i++) {
            *available = available_bytes[i];
            const RankMemory m = account_of(&c, 0);
            ASSERT_CLOSE(m.peak_bytes, peak);
            ASSERT_CLOSE(m.reserved_bytes, reserved_bytes[i]);
            CU_ASSERT_EQUAL(m.device_bytes <= *available, i < 2);
        }
    }
    case_free(&c);
}

static double peak_of(const char *model, const char *parallel) {
    Case c;
    double peak = 0;
    int rank;
    if (case_make(&c, model, 16, TRAINING, parallel))
        peak = memory_worst_rank(&c.scenario, &c.plan, &c.workload, &rank).peak_bytes;
    case_free(&c);
    return peak;
}

// Each of these, from left to right, needs no more than the one before.
static void what_saves_memory_saves_memory(void) {
    static const char *const ROWS[][3] = {
        {"{\"zero_stage\": 0}", "{\"zero_stage\": 1}", "{\"zero_stage\": 2}"},
        {"{\"recompute\": \"none\"}", "{\"recompute\": \"selective\"}",
         "{\"recompute\": \"full\"}"},
        {"{\"micro_batch\": 2}", "{\"micro_batch\": 1}", "{\"cp\": 2}"},
        {"{\"tp\": 1}", "{\"tp\": 2}", "{\"tp\": 4}"},
        {"{\"tp\": 4, \"sequence_parallel\": false}", "{\"tp\": 4}", "{\"tp\": 4}"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        for (int k = 0; k < 2; k++) {
            CU_ASSERT_TRUE(peak_of(MADE_UP_GPT, ROWS[i][k + 1]) <=
                           peak_of(MADE_UP_GPT, ROWS[i][k]));
            CU_ASSERT_TRUE(peak_of(MADE_UP_MOE, ROWS[i][k + 1]) <=
                           peak_of(MADE_UP_MOE, ROWS[i][k]));
        }
}

CU_TestInfo memory_tests[] = {
    {"zero_stages_divide", zero_stages_divide},
    {"gradients_that_are_let_go_are_not_held_at_the_peak",
     gradients_that_are_let_go_are_not_held_at_the_peak},
    {"shards_are_spread_over_their_group", shards_are_spread_over_their_group},
    {"gradients_that_are_reduced_once_are_whole", gradients_that_are_reduced_once_are_whole},
    {"gradients_may_have_copies", gradients_may_have_copies},
    {"experts_are_spread_over_their_replicas", experts_are_spread_over_their_replicas},
    {"formats_by_hand", formats_by_hand},
    {"expanded_operators_give_the_chunks_memory", expanded_operators_give_the_chunks_memory},
    {"parts_add_up", parts_add_up},
    {"cached_memory_is_given_back", cached_memory_is_given_back},
    {"published_allocations", published_allocations},
    {"what_saves_memory_saves_memory", what_saves_memory_saves_memory},
    CU_TEST_INFO_NULL,
};
