#include "workload/technique/technique.h"

#include "tests/workload/block_case.h"
#include "workload/pass/builder.h"
#include "workload/pass/expert_load.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define WITH(keys) "{\"seq_len\": 2048, \"global_batch\": 64" keys "}"

// A builder of the layer's block, before anything is collected.
static Builder builder_of(Case *c, int layer) {
    const Model *m = &c->scenario.model;
    const LayerWork work = {.model = m,
                            .gpu = &c->scenario.cluster.pools[0].gpu,
                            .execution = &c->scenario.execution,
                            .pass = text_pass(&c->scenario, &c->plan),
                            .split = plan_split(&c->plan)};
    Builder b;
    builder_start(&work, &m->kinds[m->layer_kind[layer]], &c->arena, &b);
    return b;
}

static void every_technique_rewrites_something(void) {
    for (TechniqueKind kind = 0; kind < NUM_TECHNIQUES; kind++) {
        const Technique *row = technique_find(kind);
        CU_ASSERT_PTR_NOT_NULL_FATAL(row);
        CU_ASSERT(row->source && strlen(row->source) > 0);
        CU_ASSERT(row->load || row->operators || row->list || row->step);
    }
    CU_ASSERT_PTR_NULL(technique_find(NUM_TECHNIQUES));
}

// --- The load of the experts

static ExpertLoad load_of(const char *training) {
    Case c;
    ExpertLoad load = {0};
    if (case_make(&c, MADE_UP_MOE, 8, training, "{\"ep\": 4}")) {
        const Builder b = builder_of(&c, 1);
        load = expert_load(&b);
    }
    case_free(&c);
    return load;
}

// 2048 tokens of a rank with 2 of 8 experts each: 4096 copies, of which a rank's 2 experts get as
// many. By all-to-all each travels, and the rank sorts what 4 ranks sent it.
static void without_technique_each_copy_travels(void) {
    const ExpertLoad load = load_of(WITH(""));
    CU_ASSERT_EQUAL(load.routed, 4096);
    CU_ASSERT_EQUAL(load.imbalance, 1);
    CU_ASSERT_EQUAL(load.dispatch, COLLECTIVE_ALL_TO_ALL);
    CU_ASSERT_EQUAL(load.combine, COLLECTIVE_ALL_TO_ALL);
    CU_ASSERT_EQUAL(load.carried_frac, 1);
    CU_ASSERT_FALSE(load.carries_all);
    CU_ASSERT_TRUE(load.sorted_by_expert);
    CU_ASSERT_TRUE(load.host_awaits_counts);
}

// A quarter more places than copies: 5120, whatever is routed.
static void a_capacity_is_what_experts_get(void) {
    const ExpertLoad load = load_of(WITH(", \"capacity_factor\": 1.25"));
    CU_ASSERT_EQUAL(load.routed, 5120);
    CU_ASSERT_FALSE(load.host_awaits_counts);
    CU_ASSERT_TRUE(load.sorted_by_expert);
}

// Of two different experts the second is on the rank of the first in 1 case of 7: of 2 copies
// 2 - 1/7 travel.
static void dispatchers_carry_copies_their_way(void) {
    const ExpertLoad deepep = load_of(WITH(", \"moe_dispatcher\": \"deepep\""));
    CU_ASSERT_EQUAL(deepep.routed, 4096);
    CU_ASSERT_EQUAL(deepep.dispatch, COLLECTIVE_DISPATCH);
    CU_ASSERT_EQUAL(deepep.combine, COLLECTIVE_COMBINE);
    CU_ASSERT_DOUBLE_EQUAL(deepep.carried_frac, (2 - 1.0 / 7) / 2, 1e-12);
    CU_ASSERT_FALSE(deepep.sorted_by_expert);
    CU_ASSERT_TRUE(deepep.host_awaits_counts);
    const ExpertLoad hybridep = load_of(WITH(", \"moe_dispatcher\": \"hybridep\""));
    CU_ASSERT_EQUAL(hybridep.dispatch, COLLECTIVE_DISPATCH);
    CU_ASSERT_EQUAL(hybridep.carried_frac, deepep.carried_frac);
    CU_ASSERT_FALSE(hybridep.sorted_by_expert);
    CU_ASSERT_TRUE(hybridep.host_awaits_counts);
    const ExpertLoad all = load_of(WITH(", \"moe_dispatcher\": \"allgather\""));
    CU_ASSERT_EQUAL(all.dispatch, COLLECTIVE_ALL_GATHER);
    CU_ASSERT_EQUAL(all.combine, COLLECTIVE_REDUCE_SCATTER);
    CU_ASSERT_TRUE(all.carries_all);
    CU_ASSERT_FALSE(all.sorted_by_expert);
    CU_ASSERT_TRUE(all.host_awaits_counts);
}

// --- Operators

// Of a column's gather, its product, an addition, a row's product and its scatter: gather and
// product, product and scatter run side by side, and nothing else does.
static void gathers_and_scatters_run_beside_their_product(void) {
    static const char *const KEYS[] = {WITH(""), WITH(", \"tp_comm_overlap\": true")};
    for (int on = 0; on < 2; on++) {
        Case c;
        if (case_make(&c, MADE_UP_GPT, 8, KEYS[on], "{\"tp\": 4}")) {
            Builder b = builder_of(&c, 0);
            build_linear(&b, "up", SPLIT_COLUMN, b.tokens, 4096, 1024, 0);
            build_residual(&b, b.tokens * 1024);
            build_linear(&b, "down", SPLIT_ROW, b.tokens, 1024, 4096, 0);
            CU_ASSERT_EQUAL_FATAL(b.num_units, 5);
            techniques_operators(&b);
            const int beside[5] = {1, -1, -1, -1, 3};
            for (int i = 0; i < 5; i++)
                CU_ASSERT_EQUAL(b.units[i].op.pipelined_with, on ? beside[i] : -1);
        }
        case_free(&c);
    }
}

// Operators of both lists for which the host is waited for.
static int num_awaited(const Block *b) {
    int num = 0;
    for (int i = 0; i < b->num_forward; i++) num += b->forward[i].awaited_by_host;
    for (int i = 0; i < b->num_backward; i++) num += b->backward[i].awaited_by_host;
    return num;
}

// The counts of a layer's tokens are waited for once, unless something else keeps the device busy,
// or what is launched is captured; overlap does so where there is an exchange.
static void the_host_is_waited_for_where_it_counts(void) {
    static const struct {
        const char *training, *parallel;
        int num;
    } CASES[] = {
        {WITH(""), "{\"ep\": 4}", 1},
        {WITH(", \"ep_overlap\": true"), "{\"ep\": 4}", 0},
        {WITH(", \"ep_overlap\": true"), "{\"ep\": 1}", 1},
        {WITH(", \"cuda_graphs\": \"layer\""), "{\"ep\": 4}", 0},
        {WITH(", \"cuda_graphs\": \"attn\""), "{\"ep\": 4}", 1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Case c;
        if (case_make(&c, MADE_UP_MOE, 8, CASES[i].training, CASES[i].parallel))
            CU_ASSERT_EQUAL(num_awaited(layer_block_of(&c, 1)), CASES[i].num);
        case_free(&c);
    }
}

// --- Lists

// Shards are gathered and scattered in the flow of the pass, or beside its other blocks.
static void shards_move_beside_blocks(void) {
    static const struct {
        const char *training;
        Beside gather, scatter;
    } CASES[] = {
        {WITH(", \"overlap_param_gather\": false, \"overlap_grad_reduce\": false"), BESIDE_NOTHING,
         BESIDE_NOTHING},
        {WITH(", \"overlap_param_gather\": true, \"overlap_grad_reduce\": false"), BESIDE_BLOCKS,
         BESIDE_NOTHING},
        {WITH(", \"overlap_param_gather\": false, \"overlap_grad_reduce\": true"), BESIDE_NOTHING,
         BESIDE_BLOCKS},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Case c;
        if (case_make(&c, MADE_UP_GPT, 8, CASES[i].training, "{\"zero_stage\": 3}")) {
            const Block *b = layer_block_of(&c, 0);
            const Op *there = op_named(b->forward, b->num_forward, "param_all_gather");
            const Op *again = op_named(b->backward, b->num_backward, "param_all_gather");
            const Op *back = op_named(b->backward, b->num_backward, "grad_reduce_scatter");
            CU_ASSERT_EQUAL(there->collective.beside, CASES[i].gather);
            CU_ASSERT_EQUAL(again->collective.beside, CASES[i].gather);
            CU_ASSERT_EQUAL(back->collective.beside, CASES[i].scatter);
        }
        case_free(&c);
    }
}

// --- Steps

// Half of what is left of a compiled pass's launches where a scope of it is captured.
static void steps_are_put_together_by_techniques(void) {
    Execution execution = {.stack.launch.host_compiled_frac = 0.25};
    StepTraits traits = step_traits(&execution);
    CU_ASSERT_FALSE(traits.gathers_beside || traits.reduces_beside);
    CU_ASSERT_TRUE(traits.begins_together);
    CU_ASSERT_EQUAL(traits.launched_frac, 1);
    execution.overlap_param_gather = execution.optimizer_post_validation = true;
    execution.compile = true;
    execution.cuda_graphs = GRAPH_ATTN;
    traits = step_traits(&execution);
    CU_ASSERT_TRUE(traits.gathers_beside);
    CU_ASSERT_FALSE(traits.reduces_beside);
    CU_ASSERT_FALSE(traits.begins_together);
    CU_ASSERT_EQUAL(traits.launched_frac, 0.125);
    execution.overlap_param_gather = false;
    execution.overlap_grad_reduce = true;
    execution.cuda_graphs = GRAPH_FULL;
    traits = step_traits(&execution);
    CU_ASSERT_FALSE(traits.gathers_beside);
    CU_ASSERT_TRUE(traits.reduces_beside);
    CU_ASSERT_EQUAL(traits.launched_frac, 0);
}

CU_TestInfo technique_tests[] = {
    {"every_technique_rewrites_something", every_technique_rewrites_something},
    {"without_technique_each_copy_travels", without_technique_each_copy_travels},
    {"a_capacity_is_what_experts_get", a_capacity_is_what_experts_get},
    {"dispatchers_carry_copies_their_way", dispatchers_carry_copies_their_way},
    {"gathers_and_scatters_run_beside_their_product",
     gathers_and_scatters_run_beside_their_product},
    {"the_host_is_waited_for_where_it_counts", the_host_is_waited_for_where_it_counts},
    {"shards_move_beside_blocks", shards_move_beside_blocks},
    {"steps_are_put_together_by_techniques", steps_are_put_together_by_techniques},
    CU_TEST_INFO_NULL,
};
