// What a rank holds beside weights, gradients, moments and activations.
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

// A layer is 12 h^2 and two norms of 2h, the tied embedding h^2; gathered in bf16: two layers; the
// gradients of one in fp32. Without resharding all of the rank's weights stay gathered.
static void sharded_weights_have_room_to_be_gathered(void) {
    const double h2 = 1024 * 1024, layer = 12 * h2 + 4 * 1024;
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"torchtitan\"}", NULL)) {
        stack_bare(&c.scenario.execution.stack);
        ASSERT_CLOSE(account_of(&c, 0).buffers_bytes, 2 * 2 * layer + 4 * layer);
        c.scenario.parallel.reshard_after_forward = 0;
        if (case_resolve(&c))
            ASSERT_CLOSE(account_of(&c, 0).buffers_bytes,
                         2 * c.workload.chunks[0].dense_parameters + 4 * layer);
    }
    case_free(&c);
}

// A vocabulary of 50000 makes the embedding (50000 h) larger than a layer: the most that is
// gathered is it and a layer. On the second of two stages there is none, only the head: untied, and
// its norm.
static void the_largest_neighbours_are_gathered(void) {
    const char *model =
        "{\"model_type\": \"generic\", \"name\": \"wide\", \"hidden_size\": 1024,"
        " \"intermediate_size\": 4096, \"num_hidden_layers\": 2, \"position\": \"none\","
        " \"num_attention_heads\": 16, \"vocab_size\": 50000, \"linear_bias\": false,"
        " \"tie_word_embeddings\": false}";
    const double table = 50000 * 1024.0, layer = 12 * 1024 * 1024 + 4 * 1024, norm = 2 * 1024;
    Case c;
    if (case_make(&c, model, 8,
                  "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"torchtitan\"}",
                  "{\"pp\": 2}")) {
        stack_bare(&c.scenario.execution.stack);
        ASSERT_CLOSE(account_of(&c, 0).buffers_bytes, 2 * (layer + table) + 4 * table);
        ASSERT_CLOSE(account_of(&c, 1).buffers_bytes,
                     2 * (layer + table + norm) + 4 * (table + norm));
    }
    case_free(&c);
}

// Experts with one replica are not sharded, hence not gathered: ep 8 of 8 ranks.
static void whole_experts_are_not_gathered(void) {
    Case c;
    if (case_make(&c, MADE_UP_MOE, 8,
                  "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"torchtitan\"}",
                  "{\"ep\": 8}")) {
        stack_bare(&c.scenario.execution.stack);
        Model *model = &c.scenario.model;
        for (int k = 0; k < model->num_kinds; k++) // an expert is larger than a dense layer
            if (kind_is_moe(&model->kinds[k])) model->kinds[k].ffn.moe_intermediate_size = 1 << 16;
        case_resolve(&c);
        const double first = workload_layer_block(&c.workload, 0, PLAN_OWN)->dense_parameters;
        const RankMemory m = account_of(&c, 0);
        ASSERT_CLOSE(m.buffers_bytes, 2 * 2 * first + 4 * first);
        ASSERT_CLOSE(m.weights_bytes, 4 * (c.workload.chunks[0].dense_parameters / 8 +
                                           c.workload.chunks[0].expert_parameters));
    }
    case_free(&c);
}

// One placeholder of 2 bytes a weight for each shape: 3h x h, h x h, 4h x h and h x 4h. The head's
// gradient is held while it is made instead.
static void placeholders_are_one_for_each_shape(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, "{\"pp\": 2}")) {
        stack_bare(&c.scenario.execution.stack);
        const double h2 = 1024 * 1024;
        for (int rank = 0; rank < 2; rank++)
            ASSERT_CLOSE(account_of(&c, rank).buffers_bytes, 2 * 12 * h2);
        c.scenario.execution.stack.training.weight_gradient = WEIGHT_GRADIENT_SEPARATE;
        ASSERT_CLOSE(account_of(&c, 0).buffers_bytes, 0.0);
    }
    case_free(&c);
}

static const int NO_BLOCKS[MAX_BLOCKS] = {0};

// Stages that alternate, on the first of two ranks: four forwards, then one more before each
// backward. Where messages block, its output waits for the backward, to leave with what that makes;
// beside the compute it has left and is not asked yet, and the input of the next forward arrives.
static void messages_take_room(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, TRAINING, "{\"pp\": 2, \"vpp\": 2}")) {
        Stack *stack = &c.scenario.execution.stack;
        Chunk chunks[4];
        for (int k = 0; k < 4; k++)
            chunks[k] = (Chunk){.num_blocks = NO_BLOCKS,
                                .saved_bytes = 100,
                                .forward_peak_bytes = 110,
                                .backward_peak_bytes = 50};
        stack_bare(stack);
        c.workload.chunks = chunks;
        c.workload.boundary_bytes = 1;
        stack->communication.p2p_overlap = false;
        ASSERT_CLOSE(account_of(&c, 0).activations_bytes, 500 + 50 + 1.0);
        stack->communication.p2p_overlap = true;
        ASSERT_CLOSE(account_of(&c, 0).activations_bytes, 500 + 50 + 2.0);
    }
    case_free(&c);
}

// tp 2, 1024 tokens of 2 x 1024 bytes gathered: by the output layer of Megatron-Core, into a buffer
// that stays, on the last stage only; by all layers of its predecessor.
static void gathered_inputs_may_stay(void) {
    for (int all = 0; all < 2; all++) {
        Case c;
        if (case_make(&c, MADE_UP_GPT, 8, TRAINING, "{\"pp\": 2, \"tp\": 2}")) {
            Stack *stack = &c.scenario.execution.stack;
            stack_bare(stack);
            stack->training.weight_gradient = WEIGHT_GRADIENT_IN_PLACE;
            CU_ASSERT_EQUAL(stack->residency.lasting_gathers, LASTING_GATHERS_HEAD);
            if (all) stack->residency.lasting_gathers = LASTING_GATHERS_ALL;
            if (case_resolve(&c)) {
                ASSERT_CLOSE(account_of(&c, 0).buffers_bytes, all ? 1024 * 1024 * 2.0 : 0.0);
                ASSERT_CLOSE(account_of(&c, 1).buffers_bytes, 1024 * 1024 * 2.0);
            }
        }
        case_free(&c);
    }
}

// Grouped products of Transformer Engine have four workspaces of 32 MiB more, on ranks with
// experts.
static void experts_have_workspaces(void) {
    const char *const models[] = {MADE_UP_GPT, MADE_UP_MOE};
    for (int i = 0; i < 2; i++) {
        Case c;
        if (case_make(&c, models[i], 8, TRAINING, NULL)) {
            Stack *stack = &c.scenario.execution.stack;
            stack->training.weight_gradient = WEIGHT_GRADIENT_IN_PLACE;
            CU_ASSERT_EQUAL(stack->residency.grouped_workspace_bytes, 4 * 32 * 1024 * 1024);
            ASSERT_CLOSE(account_of(&c, 0).buffers_bytes,
                         stack->residency.workspace_bytes +
                             (i ? stack->residency.grouped_workspace_bytes : 0));
        }
        case_free(&c);
    }
}

// Where the peak is in PyTorch's loss, the place of the 16-bit logits is reserved and of no use: 2
// bytes of 1024 tokens x 100000 words. Beside a micro-batch's layers that need more than the loss,
// none of it shows.
static void holes_are_reserved(void) {
    const char *model = "{\"model_type\": \"generic\", \"name\": \"words\", \"hidden_size\": 64,"
                        " \"intermediate_size\": %d, \"num_hidden_layers\": 1,"
                        " \"num_attention_heads\": 1, \"vocab_size\": 100000}";
    for (int wide = 0; wide < 2; wide++) {
        Case c;
        Arena arena = {0};
        if (case_make(&c, arena_printf(&arena, model, wide ? 1 << 20 : 256), 8,
                      "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"torchtitan\"}",
                      NULL)) {
            stack_bare(&c.scenario.execution.stack);
            const RankMemory m = account_of(&c, 0);
            ASSERT_CLOSE(m.reserved_bytes - m.peak_bytes, wide ? 0.0 : 1024 * 100000 * 2.0);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// The head's own weights, gathered beside its loss, are no other block's need.
static void holes_are_there_beside_gathered_weights(void) {
    static const char MODEL[] =
        "{\"model_type\": \"generic\", \"name\": \"words\", \"hidden_size\": 64, "
        "\"intermediate_size\": 256, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, "
        "\"vocab_size\": 100000}";
    for (int stage = 1; stage <= 3; stage++) {
        Case c;
        Arena arena = {0};
        if (case_make(&c, MODEL, 8,
                      "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"runtime\", "
                      "\"cross_entropy_fused\": false}",
                      arena_printf(&arena, "{\"zero_stage\": %d}", stage))) {
            stack_bare(&c.scenario.execution.stack);
            const RankMemory m = account_of(&c, 0);
            ASSERT_CLOSE(m.reserved_bytes - m.peak_bytes, 1024 * 100000 * 2.0);
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// The floor of a family of plans, made of one that recomputes all layers, has no hole: layers that
// are kept may need more than the head, and use it.
static void floors_have_no_holes(void) {
    static const char MODEL[] =
        "{\"model_type\": \"generic\", \"name\": \"words\", \"hidden_size\": 64, "
        "\"intermediate_size\": 256, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, "
        "\"vocab_size\": 100000}";
    Case c;
    Arena arena = {0};
    if (case_make(&c, MODEL, 8,
                  "{\"seq_len\": 1024, \"global_batch\": 32, \"stack\": \"torchtitan\"}",
                  "{\"recompute\": \"full\"}")) {
        stack_bare(&c.scenario.execution.stack);
        CU_ASSERT(c.workload.chunks[0].unusable_bytes > 0);
        const Workload floor = workload_layers_floor(&c.scenario, &c.plan, &c.workload, &arena);
        const RankMemory m = memory_closed_form(&c.scenario, &c.plan, &floor, 0);
        ASSERT_CLOSE(m.reserved_bytes, m.peak_bytes);
        CU_ASSERT(m.peak_bytes <= account_of(&c, 0).peak_bytes);
    }
    case_free(&c);
    arena_free(&arena);
}

// Dense layers and layers of experts in turn, four a rank of which two are recomputed: `f` of
// "nffn". Ranks hold the same blocks, in another order, and keep as much, with another peak.
static void ranks_in_another_order_have_an_account_of_their_own(void) {
    static const char *const PATTERNS[] = {"nffn", "fnnf", "nnff"};
    static const char MODEL[] =
        "{\"model_type\": \"generic\", \"name\": \"mixed\", \"hidden_size\": 1024, "
        "\"intermediate_size\": 4096, \"num_hidden_layers\": 16, \"num_attention_heads\": 8, "
        "\"vocab_size\": 1024, \"norm\": \"rmsnorm\", \"linear_bias\": false, \"gated_mlp\": "
        "true, \"position\": \"rope\", \"num_experts\": 8, \"num_experts_per_tok\": 2, "
        "\"moe_intermediate_size\": 1024, \"decoder_sparse_step\": 2}";
    enum { NUM_PATTERNS = sizeof PATTERNS / sizeof *PATTERNS, RANKS = 4, LAYERS = 4 };
    int num_apart = 0;
    for (int number = 0; number < NUM_PATTERNS * NUM_PATTERNS; number++) {
        Case c;
        Arena arena = {0};
        const char *list = "", *const of_rank[RANKS] = {
                                   PATTERNS[0], PATTERNS[number % NUM_PATTERNS],
                                   PATTERNS[number / NUM_PATTERNS], PATTERNS[0]};
        for (int l = 0; l < RANKS * LAYERS; l++)
            if (of_rank[l / LAYERS][l % LAYERS] == 'f')
                list =
                    arena_printf(&arena, "%s%s{\"from\": %d, \"to\": %d, \"recompute\": \"full\"}",
                                 list, list[0] ? ", " : "", l, l);
        const char *parallel =
            arena_printf(&arena,
                         "{\"pp\": 4, \"micro_batch\": 4, \"schedule\": \"gpipe\", "
                         "\"zero_stage\": 3, \"layers\": [%s]}",
                         list);
        if (case_make(&c, MODEL, 8,
                      "{\"seq_len\": 4096, \"global_batch\": 32, \"stack\": \"runtime\"}",
                      parallel)) {
            double most = 0;
            int worst;
            for (int r = 0; r < RANKS; r++) most = fmax(most, account_of(&c, r).peak_bytes);
            ASSERT_CLOSE(memory_worst_rank(&c.scenario, &c.plan, &c.workload, &worst).peak_bytes,
                         most);
            num_apart += account_of(&c, 1).peak_bytes != account_of(&c, 2).peak_bytes;
        }
        case_free(&c);
        arena_free(&arena);
    }
    CU_ASSERT(num_apart > 0);
}

CU_TestInfo memory_buffers_tests[] = {
    {"sharded_weights_have_room_to_be_gathered", sharded_weights_have_room_to_be_gathered},
    {"the_largest_neighbours_are_gathered", the_largest_neighbours_are_gathered},
    {"whole_experts_are_not_gathered", whole_experts_are_not_gathered},
    {"holes_are_there_beside_gathered_weights", holes_are_there_beside_gathered_weights},
    {"floors_have_no_holes", floors_have_no_holes},
    {"placeholders_are_one_for_each_shape", placeholders_are_one_for_each_shape},
    {"messages_take_room", messages_take_room},
    {"gathered_inputs_may_stay", gathered_inputs_may_stay},
    {"experts_have_workspaces", experts_have_workspaces},
    {"holes_are_reserved", holes_are_reserved},
    {"ranks_in_another_order_have_an_account_of_their_own",
     ranks_in_another_order_have_an_account_of_their_own},
    CU_TEST_INFO_NULL,
};
