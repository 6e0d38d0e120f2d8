#include "costmodel/kernel/compute.h"
#include "costmodel/network/collective.h"
#include "costmodel/network/exchange.h"
#include "costmodel/pass/list_price.h"
#include "costmodel/pass/price.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-15)

#define TRAINING "{\"seq_len\": 2048, \"global_batch\": 64}"

static Prices prices_of(Case *c) {
    return chunks_price(&c->scenario, &c->plan, &c->workload, &c->arena);
}

static double op_s(const Case *c, const Op *op) {
    const PricingContext context = pricing_context(&c->scenario, &c->plan, 0, NULL);
    if (op->kind != OP_COLLECTIVE)
        return op_compute_s(&c->scenario.cluster.pools[0], op) + op_sync_s(&context, op);
    return op_collective_s(&context, op);
}

// --- The operator level and the chunk level

// Streams on which lists of operators run one after the other, written anew for this test.
typedef struct {
    double free_s[NUM_STREAMS];
    double previous_s; // end of the operator before
} Queue;

enum {
    FORWARD = 1 << PHASE_FORWARD,
    INPUT = 1 << PHASE_BACKWARD_INPUT,
    WEIGHT = 1 << PHASE_BACKWARD_WEIGHT,
};

static void list_run(const Case *c, Queue *queue, const Op *ops, int num_ops, int phases) {
    double end_s[512];
    for (int i = 0; i < num_ops; i++) {
        const Op *op = &ops[i];
        end_s[i] = i > 0 ? end_s[i - 1] : 0;
        if (!(phases & 1 << op->phase)) continue;
        const double ready_s = op->wait == WAIT_PREVIOUS  ? queue->previous_s
                               : op->wait == WAIT_NOTHING ? 0
                                                          : end_s[op->wait];
        queue->free_s[op->stream] = fmax(queue->free_s[op->stream], ready_s) + op_s(c, op);
        queue->previous_s = end_s[i] = queue->free_s[op->stream];
    }
}

static double expanded_s(const Case *c, const Chunk *chunk, int phases) {
    const bool forward = phases == FORWARD;
    Queue queue = {.previous_s = 0};
    for (int k = 0; k < MAX_BLOCKS; k++) {
        const int i = forward ? k : MAX_BLOCKS - 1 - k;
        const Block *b = &c->workload.blocks[i];
        for (int n = 0; n < chunk->num_blocks[i]; n++)
            list_run(c, &queue, forward ? b->forward : b->backward,
                     forward ? b->num_forward : b->num_backward, phases);
    }
    double end_s = 0;
    for (int s = 0; s < NUM_STREAMS; s++) end_s = fmax(end_s, queue.free_s[s]);
    return end_s;
}

// Each part of a split backward has the streams to itself: nothing of one hides behind the other.
static void assert_parts(Case *c) {
    const Prices prices = prices_of(c);
    for (int i = 0; i < c->workload.num_chunks; i++) {
        const Chunk *chunk = &c->workload.chunks[i];
        ASSERT_CLOSE(prices.backward_input[i].time_s, expanded_s(c, chunk, INPUT));
        ASSERT_CLOSE(prices.backward_weight[i].time_s, expanded_s(c, chunk, WEIGHT));
        for (int t = 0; t < NUM_TERMS; t++)
            ASSERT_CLOSE(prices.backward[i].term_s[t],
                         prices.backward_input[i].term_s[t] + prices.backward_weight[i].term_s[t]);
    }
}

static void assert_expanded(const char *model, const char *parallel) {
    Case c;
    if (case_make(&c, model, 16, TRAINING, parallel)) {
        stack_bare(&c.scenario.execution.stack);
        const Prices prices = prices_of(&c);
        for (int i = 0; i < c.workload.num_chunks; i++) {
            const Chunk *chunk = &c.workload.chunks[i];
            ASSERT_CLOSE(prices.forward[i].time_s, expanded_s(&c, chunk, FORWARD));
            ASSERT_CLOSE(prices.backward[i].time_s, expanded_s(&c, chunk, INPUT | WEIGHT));
            CU_ASSERT_PTR_NULL(prices.backward_weight);
        }
        const double whole_s = prices.backward[0].time_s;
        c.plan.schedule = SCHEDULE_ZB_H1;
        assert_parts(&c);
        CU_ASSERT_TRUE(prices_of(&c).backward[0].time_s >= whole_s * (1 - 1e-12));
    }
    case_free(&c);
}

// Ties the two levels: all operators of a chunk's blocks on the streams of one rank take as long as
// the chunk is priced. Nothing is piecewise, sharded or slowed down here.
static void expanded_operators_give_the_chunks_seconds(void) {
    static const char *const PLANS[] = {
        "{}", "{\"tp\": 4, \"pp\": 2}",
        "{\"tp\": 4, \"sequence_parallel\": false, \"recompute\": \"full\"}",
        "{\"tp\": 2, \"cp\": 2, \"cp_method\": \"ulysses\", \"recompute\": \"selective\"}",
        ("{\"cp\": 2, \"cp_method\": \"all-gather\", \"pp\": 2, \"recompute\": \"full\", "
         "\"recompute_layers\": 1}")};
    for (int i = 0; i < 5; i++) {
        assert_expanded(MADE_UP_GPT, PLANS[i]);
        assert_expanded(MADE_UP_MOE, PLANS[i]);
        assert_expanded(MADE_UP_MLA, PLANS[i]);
    }
    assert_expanded(MADE_UP_MOE, "{\"tp\": 2, \"ep\": 4, \"etp\": 2}");
    assert_expanded(MADE_UP_MLA, "{\"pp\": 2, \"ep\": 8, \"tp\": 2}");
}

// Collectives that hide behind weight gradients, piece by piece too, lose that in a split backward.
static void split_backwards_are_never_shorter(void) {
    static const char *const STACKS[] = {"megatron-core", "torchtitan", "megatron-2021"};
    for (int i = 0; i < 3 * 4; i++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(&arena,
                                            "{\"seq_len\": 2048, \"global_batch\": 64, \"stack\": "
                                            "\"%s\", \"tp_comm_overlap\": %s}",
                                            STACKS[i % 3], i / 3 & 1 ? "true" : "false");
        if (case_make(&c, i / 6 ? MADE_UP_MOE : MADE_UP_GPT, 16, training,
                      "{\"tp\": 4, \"pp\": 2}")) {
            const double whole_s = prices_of(&c).backward[0].time_s;
            c.plan.schedule = SCHEDULE_ZB_H1;
            const Prices split = prices_of(&c);
            CU_ASSERT_TRUE(split.backward[0].time_s >= whole_s * (1 - 1e-12));
            CU_ASSERT_TRUE(split.backward_weight[0].time_s > 0);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// --- Terms

static double sum_of(const Price *price) {
    double sum = 0;
    for (int t = 0; t < NUM_TERMS; t++) {
        CU_ASSERT_TRUE(price->term_s[t] >= 0);
        sum += price->term_s[t];
    }
    return sum;
}

static void terms_add_up(void) {
    static const char *const STACKS[] = {"megatron-core", "torchtitan", "megatron-2021"};
    for (int i = 0; i < 3 * 4; i++) {
        Case c;
        Arena arena = {0};
        const char *training = arena_printf(
            &arena,
            "{\"seq_len\": 2048, \"global_batch\": 64, \"stack\": \"%s\", \"ep_overlap\": %s}",
            STACKS[i % 3], i / 3 & 1 ? "true" : "false");
        if (case_make(&c, MADE_UP_MOE, 16, training,
                      i / 6 ? "{\"tp\": 2, \"ep\": 4, \"cp\": 2}" : "{\"pp\": 2, \"ep\": 2}")) {
            const Prices prices = prices_of(&c);
            for (int k = 0; k < c.workload.num_chunks; k++) {
                ASSERT_CLOSE(prices.forward[k].time_s, sum_of(&prices.forward[k]));
                ASSERT_CLOSE(prices.backward[k].time_s, sum_of(&prices.backward[k]));
            }
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// Without groups, overlap and host there is nothing but compute.
static void one_gpu_only_computes(void) {
    Case c;
    if (case_make(&c, MADE_UP_MLA, 1, TRAINING, NULL)) {
        stack_bare(&c.scenario.execution.stack);
        const Prices prices = prices_of(&c);
        ASSERT_CLOSE(prices.forward[0].term_s[TERM_COMPUTE], prices.forward[0].time_s);
        ASSERT_CLOSE(prices.backward[0].term_s[TERM_COMPUTE], prices.backward[0].time_s);
    }
    case_free(&c);
}

// Only a forward whose dispatcher needs the counts of tokens on the host has it wait: each of two
// layers once more where it runs again.
static void hosts_wait_for_counts(void) {
    static const struct {
        const char *training, *parallel;
        double forward_waits, backward_waits;
    } CASES[] = {
        {"\"moe_dispatcher\": \"alltoall\"", "{\"ep\": 2}", 1, 0},
        {"\"moe_dispatcher\": \"deepep\"", "{\"ep\": 2, \"recompute\": \"full\"}", 1, 1},
        {"\"moe_dispatcher\": \"hybridep\"", "{\"ep\": 2}", 1, 0},
        {"\"moe_dispatcher\": \"hybridep\", \"capacity_factor\": 1", "{\"ep\": 2}", 0, 0},
        {"\"capacity_factor\": 1.25", "{\"ep\": 2}", 0, 0},
        {"\"ep_overlap\": true", "{\"ep\": 2}", 0, 0},
        {"\"cuda_graphs\": \"full\"", "{\"ep\": 2}", 0, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 8, %s}", CASES[i].training);
        if (case_make(&c, MADE_UP_MOE, 2, training, CASES[i].parallel)) {
            stack_bare(&c.scenario.execution.stack);
            const Prices before = prices_of(&c);
            c.scenario.execution.stack.launch.moe_sync_s = 10;
            const Prices after = prices_of(&c);
            const int layers = c.scenario.model.num_layers - 1; // the first is dense
            ASSERT_CLOSE(after.forward[0].time_s,
                         before.forward[0].time_s + 10 * layers * CASES[i].forward_waits);
            ASSERT_CLOSE(after.backward[0].time_s,
                         before.backward[0].time_s + 10 * layers * CASES[i].backward_waits);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

static double kernels_of(const Op *ops, int num_ops) {
    double sum = 0;
    for (int i = 0; i < num_ops; i++) sum += ops[i].num_kernels;
    return sum;
}

// A host that takes 1 s a kernel and 10 s a layer is all that counts; a captured graph needs none.
static void slow_hosts_bound_the_gpu(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 1, TRAINING, NULL)) {
        Stack *stack = &c.scenario.execution.stack;
        stack_bare(stack);
        const double free_s = prices_of(&c).forward[0].time_s;
        stack->launch.host_launch_s = 1;
        stack->launch.host_layer_s = 10;
        double expected_s = 4 * 10; // embedding, 2 layers, head
        for (int i = 0; i < MAX_BLOCKS; i++)
            expected_s +=
                c.workload.chunks[0].num_blocks[i] *
                kernels_of(c.workload.blocks[i].forward, c.workload.blocks[i].num_forward);
        const Price bound = prices_of(&c).forward[0];
        ASSERT_CLOSE(bound.time_s, expected_s);
        ASSERT_CLOSE(bound.term_s[TERM_OTHER], expected_s - free_s);
        c.scenario.execution.cuda_graphs = GRAPH_FULL;
        ASSERT_CLOSE(prices_of(&c).forward[0].time_s, free_s);
    }
    case_free(&c);
}

// Of the host's time what experts' products take of it: 2 of each expert in the forward and 4 in
// the backward, whatever else is captured, and none where one kernel is all experts'.
static void experts_take_time_of_the_host(void) {
    static const char *const KEYS[] = {"\"cuda_graphs\": \"none\"", "\"cuda_graphs\": \"attn\"",
                                       "\"cuda_graphs\": \"full\""};
    for (int i = 0; i < 3; i++) {
        Case c;
        Arena arena = {0};
        const char *training =
            arena_printf(&arena, "{\"seq_len\": 2048, \"global_batch\": 8, %s}", KEYS[i]);
        if (case_make(&c, MADE_UP_MOE, 2, training, "{\"ep\": 2}")) {
            stack_bare(&c.scenario.execution.stack);
            const Prices before = prices_of(&c);
            c.scenario.execution.stack.launch.host_expert_s = 1000;
            const Prices after = prices_of(&c);
            const FeedForward *ffn = model_ffn(&c.scenario.model);
            const double products = ffn->num_experts / 2.0 * (c.scenario.model.num_layers - 1);
            ASSERT_CLOSE(after.forward[0].time_s,
                         i == 2 ? before.forward[0].time_s : 1000 * 2 * products);
            ASSERT_CLOSE(after.backward[0].time_s,
                         i == 2 ? before.backward[0].time_s : 1000 * 4 * products);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

static double step_like_s(Case *c) {
    const Prices prices = prices_of(c);
    return prices.forward[0].time_s + prices.backward[0].time_s;
}

// Seconds of forward and backward of a chunk for a training and a plan.
static double seconds_of(const char *training, const char *parallel) {
    Case c;
    double time_s = 0;
    if (case_make(&c, MADE_UP_MOE, 16, training, parallel)) time_s = step_like_s(&c);
    case_free(&c);
    return time_s;
}

#define WITH(switch) "{\"seq_len\": 2048, \"global_batch\": 64, " switch "}"

static void overlap_and_keeping_save_time(void) {
    const char *tp = "{\"tp\": 4}", *ep = "{\"ep\": 8}";
    CU_ASSERT_TRUE(seconds_of(WITH("\"tp_comm_overlap\": true"), tp) < seconds_of(TRAINING, tp));
    CU_ASSERT_TRUE(seconds_of(WITH("\"ep_overlap\": true"), ep) < seconds_of(TRAINING, ep));
    const double none_s = seconds_of(TRAINING, "{}");
    const double selective_s = seconds_of(TRAINING, "{\"recompute\": \"selective\"}");
    const double full_s = seconds_of(TRAINING, "{\"recompute\": \"full\"}");
    CU_ASSERT_TRUE(none_s < selective_s && selective_s < full_s);
}

// A gather of D seconds piece by piece beside a product of P: the longer of both and one of 4
// pieces of the shorter; here against the same layer without overlap, whose D + P are paid in turn.
static void pieces_hide_all_but_one(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 16, WITH("\"tp_comm_overlap\": true"), "{\"tp\": 4}")) {
        stack_bare(&c.scenario.execution.stack);
        const Block *b = workload_layer_block(&c.workload, 0, PLAN_OWN);
        double expected_s = 0;
        for (int i = 0; i < b->num_forward; i++) {
            const Op *op = &b->forward[i];
            const double time_s = op_s(&c, op);
            expected_s += time_s;
            if (op->pipelined_with < 0) continue;
            expected_s -= 0.75 * fmin(time_s, op_s(&c, &b->forward[op->pipelined_with]));
        }
        const int one[MAX_BLOCKS] = {[BLOCK_FIRST_LAYER] = 1};
        const Chunk layer = {.num_blocks = one};
        CU_ASSERT_PTR_EQUAL(b, &c.workload.blocks[BLOCK_FIRST_LAYER]);
        c.workload.chunks = &layer;
        ASSERT_CLOSE(prices_of(&c).forward[0].time_s, expected_s);
    }
    case_free(&c);
}

// Where compute takes twice as long while a collective runs beside it, a chunk takes longer by what
// of its collectives is not exposed: here of tp and cp, backward.
static void hiding_slows_compute(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 16, TRAINING, "{\"tp\": 2, \"cp\": 2}")) {
        stack_bare(&c.scenario.execution.stack);
        const Block *b = workload_layer_block(&c.workload, 0, PLAN_OWN);
        const int one[MAX_BLOCKS] = {[BLOCK_FIRST_LAYER] = 1};
        const Chunk layer = {.num_blocks = one};
        c.workload.chunks = &layer;
        double collectives_s = 0;
        for (int i = 0; i < b->num_backward; i++)
            if (b->backward[i].kind == OP_COLLECTIVE) collectives_s += op_s(&c, &b->backward[i]);
        const Price before = prices_of(&c).backward[0];
        const double exposed_s = before.term_s[TERM_TP] + before.term_s[TERM_CP];
        CU_ASSERT_TRUE(before.term_s[TERM_TP] > 0 && before.term_s[TERM_CP] > 0);
        c.scenario.execution.stack.communication.overlap_slowdown_frac = 1;
        const Price after = prices_of(&c).backward[0];
        CU_ASSERT_TRUE(collectives_s > exposed_s);
        ASSERT_CLOSE(after.time_s, before.time_s + collectives_s - exposed_s);
    }
    case_free(&c);
}

// Half of the host's time for a micro-batch falls on the forward, half on the backward; what the
// device needs less than that is waited for.
static void micro_batches_cost_the_host(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 1, TRAINING, NULL)) {
        stack_bare(&c.scenario.execution.stack);
        const Prices before = prices_of(&c);
        c.scenario.execution.stack.training.host_microbatch_s = 2;
        const Prices after = prices_of(&c);
        CU_ASSERT_TRUE(before.backward[0].time_s < 1);
        ASSERT_CLOSE(after.forward[0].time_s, 1.0);
        ASSERT_CLOSE(after.backward[0].time_s, 1.0);
        ASSERT_CLOSE(after.forward[0].term_s[TERM_OTHER], 1 - before.forward[0].time_s);
        c.scenario.execution.stack.training.host_microbatch_s = before.forward[0].time_s;
        ASSERT_CLOSE(prices_of(&c).forward[0].time_s, before.forward[0].time_s);
    }
    case_free(&c);
}

// --- ZeRO-3

// With a network of which nothing is noticed only the first gather and last scatter of a chunk are
// exposed, here of the largest block. With one that takes longer than the work, all of it is.
static void sharding_hides_behind_compute(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 16, WITH("\"stack\": \"torchtitan\""), NULL)) {
        stack_bare(&c.scenario.execution.stack);
        const Block *layer = workload_layer_block(&c.workload, 0, PLAN_OWN);
        const Group all = plan_group(&c.plan, GROUP_ZERO);
        const Cluster *cluster = &c.scenario.cluster;
        const double gather_s = collective_s(machines_of(cluster), COLLECTIVE_ALL_GATHER, all,
                                             2 * layer->dense_parameters);
        Gpu *gpu = &test_pool(&c.scenario.cluster)
                        ->gpu; // first slow enough to hide all, the embedding too
        gpu->peak_flops_per_s[PRECISION_BF16] = 1e12;
        gpu->memory_bandwidth_bytes_per_s = 1e8;
        ASSERT_CLOSE(prices_of(&c).forward[0].term_s[TERM_DP], gather_s);
        gpu->peak_flops_per_s[PRECISION_BF16] = gpu->memory_bandwidth_bytes_per_s = 1e18;
        const Price price = prices_of(&c).forward[0];
        CU_ASSERT_TRUE(price.time_s >= 3 * gather_s &&
                       price.term_s[TERM_COMPUTE] < 1e-3 * gather_s);
    }
    case_free(&c);
}

// --- Beside the chunks

// 8 ranks share the optimizer of p parameters. Of its own eighth a rank reads gradients twice
// (norm, update), 2 x 4 bytes; reads and writes two moments, 16, and the master copy, 8; and writes
// the weight, 2. It clears 4 bytes of each gradient. In fp32 there is no copy: 2 x 4, 16, 8.
static void optimizer_moves_its_bytes(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, NULL)) {
        const double p = c.workload.chunks[0].dense_parameters;
        ASSERT_CLOSE(prices_of(&c).optimizer_s[0], (p / 8 * 34 + p * 4) / 1e12);
        c.scenario.parallel.zero_stage = 2;
        if (case_resolve(&c)) ASSERT_CLOSE(prices_of(&c).optimizer_s[0], p / 8 * 38 / 1e12);
        test_pool(&c.scenario.cluster)->gpu.efficiency.memory_frac = 0.5;
        ASSERT_CLOSE(prices_of(&c).optimizer_s[0], p / 8 * 38 / 5e11);
        test_pool(&c.scenario.cluster)->gpu.efficiency.memory_frac = 1;
        c.scenario.execution.precision = PRECISION_FP32;
        ASSERT_CLOSE(prices_of(&c).optimizer_s[0], p / 8 * 36 / 1e12);
    }
    case_free(&c);
}

CU_TestInfo price_tests[] = {
    {"expanded_operators_give_the_chunks_seconds", expanded_operators_give_the_chunks_seconds},
    {"split_backwards_are_never_shorter", split_backwards_are_never_shorter},
    {"terms_add_up", terms_add_up},
    {"one_gpu_only_computes", one_gpu_only_computes},
    {"hosts_wait_for_counts", hosts_wait_for_counts},
    {"experts_take_time_of_the_host", experts_take_time_of_the_host},
    {"slow_hosts_bound_the_gpu", slow_hosts_bound_the_gpu},
    {"overlap_and_keeping_save_time", overlap_and_keeping_save_time},
    {"pieces_hide_all_but_one", pieces_hide_all_but_one},
    {"hiding_slows_compute", hiding_slows_compute},
    {"micro_batches_cost_the_host", micro_batches_cost_the_host},
    {"sharding_hides_behind_compute", sharding_hides_behind_compute},
    {"optimizer_moves_its_bytes", optimizer_moves_its_bytes},
    CU_TEST_INFO_NULL,
};
