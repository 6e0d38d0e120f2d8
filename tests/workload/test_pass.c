// Passes of other jobs than training: what a layer's operators are then.
#include "tests/workload/block_case.h"
#include "workload/pass/builder.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs((double)(expected)) + 1e-6)

static LayerWork work_of(const Case *c, Pass pass) {
    return (LayerWork){.model = &c->scenario.model,
                       .gpu = &c->scenario.cluster.pools[0].gpu,
                       .execution = &c->scenario.execution,
                       .pass = pass,
                       .split = plan_split(&c->plan)};
}

static Pass inference(double sequences, double queries, double keys) {
    return (Pass){.sequences = sequences,
                  .queries = queries,
                  .keys = keys,
                  .causal = true,
                  .moe_imbalance = 1};
}

// Each of 4 queries sees the 6 keys before the first of them and those up to its own: 7 to 10. A
// window of 8 takes all from the second on at 8; one of 16 none.
static void queries_see_what_came_before_them(void) {
    const Pass chunk = inference(1, 4, 10), whole = inference(1, 4, 4);
    ASSERT_CLOSE(pass_average_keys(&chunk, 0), 8.5);
    ASSERT_CLOSE(pass_average_keys(&chunk, 16), 8.5);
    ASSERT_CLOSE(pass_average_keys(&chunk, 5), 5.0);
    ASSERT_CLOSE(pass_average_keys(&chunk, 8), 8 - 2.0 * 2 / (2 * 4)); // in a continuum
    ASSERT_CLOSE(pass_average_keys(&whole, 0), 2.5);
    const Pass step = inference(64, 1, 4096);
    ASSERT_CLOSE(pass_average_keys(&step, 0), 4096);
    ASSERT_CLOSE(pass_average_keys(&step, 128), 128);
    Pass both_ways = chunk;
    both_ways.causal = false;
    ASSERT_CLOSE(pass_average_keys(&both_ways, 0), 10);
}

// 64 sequences of 4096 keys, 16 heads of 64 over tp 2: 8 heads a rank.
static void a_step_of_decoding_reads_the_cache(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", "{\"tp\": 2}")) {
        const LayerWork work = work_of(&c, inference(64, 1, 4096));
        const Block b = layer_build(&work, &c.scenario.model.kinds[0], &c.arena);
        const Op *core = op_named(b.forward, b.num_forward, "core_attn");
        ASSERT_CLOSE(core->flops, 64.0 * 4096 * 8 * 2 * (64 + 64));
        ASSERT_CLOSE(core->bytes, 2 * (64.0 * 8 * 64 * 2 + 64.0 * 4096 * 8 * 64 * 2));
        // Query, key and value; output; two matrices of the MLP: 12 x hidden^2 a token, half here.
        ASSERT_CLOSE(gemm_flops(b.forward, b.num_forward), 2.0 * 64 * 12 * 1024 * 1024 / 2);
    }
    case_free(&c);
}

// The last layer of the text's pass.
static Block last_layer(Case *c, bool trains) {
    const Model *m = &c->scenario.model;
    Pass pass = text_pass(&c->scenario, &c->plan);
    pass.trains = trains;
    const LayerWork work = work_of(c, pass);
    return layer_build(&work, &m->kinds[m->layer_kind[m->num_layers - 1]], &c->arena);
}

// What a pass that trains keeps and runs behind it is not there, whatever it costs; the operators
// of the forward are the same ones, with the same work.
static void what_does_not_train_has_no_backward(void) {
    const char *const models[] = {MADE_UP_GPT, MADE_UP_MOE, MADE_UP_MLA};
    for (int i = 0; i < 3; i++) {
        const bool has_experts = i > 0;
        Case c;
        if (case_make(&c, models[i], 8, "{\"seq_len\": 2048, \"global_batch\": 8}",
                      "{\"tp\": 2}")) {
            const Block trained = last_layer(&c, true), read = last_layer(&c, false);
            CU_ASSERT_EQUAL(read.num_backward, 0);
            CU_ASSERT_EQUAL(read.saved_bytes, 0);
            CU_ASSERT_EQUAL(read.dense_parameters, trained.dense_parameters);
            CU_ASSERT_TRUE(read.forward_peak_bytes > 0);
            CU_ASSERT_TRUE(read.forward_peak_bytes < trained.forward_peak_bytes);
            if (!has_experts) CU_ASSERT_EQUAL_FATAL(read.num_forward, trained.num_forward);
            const Op *b = trained.forward;
            for (int k = 0; k < read.num_forward; k++) {
                const Op *a = &read.forward[k];
                if (b) b = &trained.forward[k];
                CU_ASSERT_EQUAL(a->saved_bytes, 0);
                if (a->kind == OP_EXPERTS) b = NULL;
                if (!b) continue; // from here on they are others (the next test)
                CU_ASSERT_STRING_EQUAL(a->name, b->name);
                CU_ASSERT_EQUAL(a->flops, b->flops);
                CU_ASSERT_EQUAL(a->bytes, b->bytes);
                CU_ASSERT_EQUAL(a->kind, b->kind);
                if (a->kind == OP_COLLECTIVE)
                    CU_ASSERT_EQUAL(a->collective.message_bytes, b->collective.message_bytes);
            }
        }
        case_free(&c);
    }
}

// An engine runs the experts as one operator, between the exchanges: the parameters and the
// products' FLOPs are those of training.
static void experts_that_are_served_are_one_operator(void) {
    static const char *const INSIDE[] = {"router_top_k", "permute", "experts_fc1", "experts_fc2",
                                         "unpermute"};
    const char *const splits[] = {"{}", "{\"ep\": 4}", "{\"tp\": 2, \"etp\": 2, \"ep\": 2}"};
    for (int i = 0; i < 3; i++) {
        Case c;
        if (case_make(&c, MADE_UP_MOE, 8, "{\"seq_len\": 2048, \"global_batch\": 8}", splits[i])) {
            const Block trained = last_layer(&c, true), read = last_layer(&c, false);
            const Op *experts = op_named(read.forward, read.num_forward, "experts");
            const Op *fc1 = op_named(trained.forward, trained.num_forward, "experts_fc1");
            const Op *fc2 = op_named(trained.forward, trained.num_forward, "experts_fc2");
            ASSERT_CLOSE(experts->flops, fc1->flops + fc2->flops);
            CU_ASSERT_EQUAL(read.expert_parameters, trained.expert_parameters);
            ASSERT_CLOSE(experts->experts.tokens * experts->experts.experts_per_token,
                         fc1->gemm.groups * fc1->gemm.m * c.plan.ep);
            for (int k = 0; k < read.num_forward; k++)
                for (int j = 0; j < 5; j++)
                    CU_ASSERT_STRING_NOT_EQUAL(read.forward[k].name, INSIDE[j]);
            for (CollectiveKind k = 0; k < NUM_COLLECTIVES; k++)
                for (GroupKind g = 0; g < NUM_GROUPS; g++)
                    ASSERT_CLOSE(collective_bytes(read.forward, read.num_forward, k, g),
                                 collective_bytes(trained.forward, trained.num_forward, k, g));
        }
        case_free(&c);
    }
}

// Dropout is of training alone.
static void what_does_not_train_drops_nothing_out(void) {
    Case c;
    if (case_make(&c, MADE_UP_GPT, 8,
                  "{\"seq_len\": 2048, \"global_batch\": 8, \"stack\": \"megatron-2021\", "
                  "\"attention\": \"unfused\"}",
                  "{\"tp\": 2}")) {
        Pass pass = text_pass(&c.scenario, &c.plan);
        const LayerWork training = work_of(&c, pass);
        pass.trains = false;
        const LayerWork reading = work_of(&c, pass);
        const Block trained = layer_build(&training, &c.scenario.model.kinds[0], &c.arena);
        const Block read = layer_build(&reading, &c.scenario.model.kinds[0], &c.arena);
        int num_trained = 0, num_read = 0;
        for (int i = 0; i < trained.num_forward; i++)
            num_trained += strstr(trained.forward[i].name, "dropout") != NULL;
        for (int i = 0; i < read.num_forward; i++)
            num_read += strstr(read.forward[i].name, "dropout") != NULL;
        CU_ASSERT_EQUAL(num_trained, 3);
        CU_ASSERT_EQUAL(num_read, 0);
    }
    case_free(&c);
}

CU_TestInfo pass_tests[] = {
    {"queries_see_what_came_before_them", queries_see_what_came_before_them},
    {"a_step_of_decoding_reads_the_cache", a_step_of_decoding_reads_the_cache},
    {"what_does_not_train_has_no_backward", what_does_not_train_has_no_backward},
    {"experts_that_are_served_are_one_operator", experts_that_are_served_are_one_operator},
    {"what_does_not_train_drops_nothing_out", what_does_not_train_drops_nothing_out},
    CU_TEST_INFO_NULL,
};
