// A vocabulary spread over the pipeline: memory, work and time of whole plans.
#include "costmodel/step/estimate.h"
#include "tests/costmodel/made_up.h"

#include <CUnit/CUnit.h>

#include <math.h>
#include <string.h>

#define ASSERT_CLOSE(actual, expected)                                                             \
    CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * fabs(expected) + 1e-3)

// Hidden size 64, 12 layers of 12 h^2 and more; the vocabulary is a multiple of 128 x 5 x 4 x 3.
#define MODEL(vocab, tied)                                                                         \
    "{\"model_type\": \"generic\", \"name\": \"twelve\", \"hidden_size\": 64,"                     \
    " \"intermediate_size\": 256, \"num_hidden_layers\": 12, \"num_attention_heads\": 4,"          \
    " \"position\": \"none\", \"tie_word_embeddings\": " tied ", \"vocab_size\": " #vocab "}"

// The schedule and what goes with it.
static const char *const SCHEDULES[] = {
    "\"gpipe\"", "\"1f1b\"",   "\"zb-h1\"", "\"zb-h2\"",    "\"breadth-first\", \"vpp\": 2",
    "\"zb-v\"",  "\"v-half\"", "\"v-min\"", "\"dualpipe\"", "\"interleaved\", \"vpp\": 2",
};
enum { NUM_NAMED = sizeof SCHEDULES / sizeof *SCHEDULES };

static bool spread_make(Case *c, const char *model, int num_gpus, int num_microbatches,
                        const char *parallel, Arena *arena) {
    const char *training =
        arena_printf(arena, "{\"seq_len\": 64, \"global_batch\": %d}", num_microbatches);
    return case_make(c, model, num_gpus, training,
                     arena_printf(arena, "{%s, \"vocab_parallel\": true}", parallel));
}

static void assert_closed_form(int pp, int num_microbatches, const char *rest) {
    Case c;
    Arena arena = {0};
    if (spread_make(&c, MODEL(7680, "false"), pp, num_microbatches,
                    arena_printf(&arena, "\"pp\": %d, %s", pp, rest), &arena)) {
        const Program program = program_build(&c.scenario, &c.plan, &c.workload, &c.arena);
        for (int r = 0; r < pp; r++) {
            const RankMemory sum =
                memory_running_sum(&c.scenario, &c.plan, &c.workload, &program, r);
            const RankMemory closed = memory_closed_form(&c.scenario, &c.plan, &c.workload, r);
            ASSERT_CLOSE(closed.activations_bytes, sum.activations_bytes);
            ASSERT_CLOSE(closed.peak_bytes, sum.peak_bytes);
        }
    }
    case_free(&c);
    arena_free(&arena);
}

static void closed_form_is_the_running_sum(void) {
    for (int i = 0; i < NUM_NAMED * 4 * 30 * 2; i++) {
        Arena arena = {0};
        const int k = i / NUM_NAMED, pp = 2 + k % 4, m = 1 + k / 4 % 30;
        const bool dual = strstr(SCHEDULES[i % NUM_NAMED], "dualpipe");
        if (dual && (pp % 2 || m % 2 || m < 2 * pp)) continue;
        assert_closed_form(pp, m,
                           arena_printf(&arena, "\"schedule\": %s, \"vocab_barriers\": %d",
                                        SCHEDULES[i % NUM_NAMED], 1 + k / 120));
        arena_free(&arena);
    }
    for (int m = 1; m <= 40; m++)
        assert_closed_form(4, m,
                           "\"recompute\": \"full\", \"stages\": [{\"layers\": 1}, "
                           "{\"layers\": 5}, {\"layers\": 2}, {\"layers\": 4}]");
}

static double parameters_of(const Case *c, int rank) {
    double sum = 0;
    for (int k = 0; k < plan_rank_chunks(&c->plan); k++)
        sum += c->workload.chunks[plan_rank_chunk(&c->plan, rank, k)].dense_parameters;
    return sum;
}

// 4000 rows of 64 on 4 ranks are padded to 4096: a rank holds 1024 of each matrix beside its
// layers; of a tied one once.
static void matrices_are_divided(void) {
    for (int tied = 0; tied < 2; tied++) {
        Case c;
        Arena arena = {0};
        if (spread_make(&c, tied ? MODEL(4000, "true") : MODEL(4000, "false"), 4, 8, "\"pp\": 4",
                        &arena)) {
            const double layers = 3 * c.workload.blocks[BLOCK_FIRST_LAYER].dense_parameters;
            const double rows = (tied ? 1 : 2) * 1024 * 64, norm = 2 * 64;
            for (int r = 0; r < 4; r++)
                ASSERT_CLOSE(parameters_of(&c, r), layers + rows + (r == 3 ? norm : 0));
        }
        case_free(&c);
        arena_free(&arena);
    }
}

// Dual pipelines hold 3 layers of each of two stages, but no rows twice.
static void dual_pipelines_share_the_matrices(void) {
    Case c;
    Arena arena = {0};
    if (spread_make(&c, MODEL(4000, "false"), 4, 8, "\"pp\": 4, \"schedule\": \"dualpipe\"",
                    &arena)) {
        const double layers = 6 * c.workload.blocks[BLOCK_FIRST_LAYER].dense_parameters;
        const double rows = 2 * 1024 * 64, norm = 2 * 64;
        for (int r = 0; r < 4; r++)
            ASSERT_CLOSE(parameters_of(&c, r), layers + rows + (r == 0 || r == 3 ? norm : 0));
    }
    case_free(&c);
    arena_free(&arena);
}

static double ops_flops(const Op *ops, int num_ops) {
    double sum = 0;
    for (int i = 0; i < num_ops; i++)
        if (ops[i].kind == OP_GEMM) sum += ops[i].flops;
    return sum;
}

// Products of all ranks for one micro-batch.
static double all_flops(const Case *c) {
    double sum = 0;
    for (int r = 0; r < c->plan.pp; r++)
        for (int k = 0; k < plan_rank_chunks(&c->plan); k++) {
            const Chunk *chunk = &c->workload.chunks[plan_rank_chunk(&c->plan, r, k)];
            for (int i = 0; i < MAX_BLOCKS; i++) {
                const Block *b = &c->workload.blocks[i];
                if (chunk->num_blocks[i] == 0) continue;
                sum += chunk->num_blocks[i] * (ops_flops(b->forward, b->num_forward) +
                                               ops_flops(b->backward, b->num_backward));
            }
        }
    return sum;
}

// 7680 rows are a multiple of 128 for every rank: nothing is padded, and the products of all ranks
// add up to those of the last rank alone.
static void work_adds_up(void) {
    static const char *const PARALLEL[] = {"\"pp\": 4", "\"pp\": 5", "\"pp\": 3, \"tp\": 4",
                                           "\"pp\": 4, \"schedule\": \"v-half\"",
                                           "\"pp\": 4, \"vpp\": 3"};
    static const int GPUS[] = {4, 5, 12, 4, 4};
    for (int i = 0; i < 5; i++) {
        Case c;
        Arena arena = {0};
        if (spread_make(&c, MODEL(7680, "false"), GPUS[i], 8, PARALLEL[i], &arena)) {
            const double spread = all_flops(&c);
            CU_ASSERT(c.plan.vocab_barriers == 1);
            c.scenario.parallel.vocab_parallel = 0;
            if (case_resolve(&c)) ASSERT_CLOSE(spread, all_flops(&c));
        }
        case_free(&c);
        arena_free(&arena);
    }
}

static void without_a_pipeline_nothing_is_spread(void) {
    Case c;
    Arena arena = {0};
    if (spread_make(&c, MODEL(7680, "false"), 2, 8, "\"pp\": 1, \"vocab_barriers\": 2", &arena)) {
        const double spread_s = case_estimate(&c, NULL).step_time_s;
        CU_ASSERT_EQUAL(c.plan.vocab_barriers, 0);
        c.scenario.parallel.vocab_parallel = 0;
        if (case_resolve(&c)) CU_ASSERT_EQUAL(case_estimate(&c, NULL).step_time_s, spread_s);
    }
    case_free(&c);
    arena_free(&arena);
}

// With a vocabulary that outweighs the layers a step is shorter by far, and no rank needs what the
// first and the last did. Dual pipelines had the output layer on two of the four ranks already:
// half of its work is the most that they gain.
static void a_huge_vocabulary_is_worth_spreading(void) {
    for (int i = 0; i < NUM_NAMED * 2; i++) {
        Case c;
        Arena arena = {0};
        const char *parallel =
            arena_printf(&arena, "\"pp\": 4, \"schedule\": %s, \"vocab_barriers\": %d",
                         SCHEDULES[i % NUM_NAMED], 1 + i / NUM_NAMED);
        if (spread_make(&c, MODEL(256000, "false"), 4, 64, parallel, &arena)) {
            stack_bare(&c.scenario.execution.stack);
            const Estimate spread = case_estimate(&c, NULL);
            c.scenario.parallel.vocab_parallel = 0;
            if (case_resolve(&c)) {
                const Estimate alone = case_estimate(&c, NULL);
                const double most = plan_is_dual(&c.plan) ? 0.6 : 0.5;
                CU_ASSERT(spread.step_time_s < most * alone.step_time_s);
                CU_ASSERT(spread.memory.peak_bytes < 0.6 * alone.memory.peak_bytes);
            }
        }
        case_free(&c);
        arena_free(&arena);
    }
}

static void answers_are_consistent(void) {
    for (int i = 0; i < NUM_NAMED * 3 * 2 * 2; i++) {
        Case c;
        Arena arena = {0};
        const int pp = 2 + i / NUM_NAMED % 3, tp = 1 + i / NUM_NAMED / 3 % 2;
        const char *schedule = SCHEDULES[i % NUM_NAMED];
        if (strstr(schedule, "dualpipe") && pp % 2) continue;
        const char *parallel =
            arena_printf(&arena, "\"pp\": %d, \"tp\": %d, \"schedule\": %s, \"vocab_barriers\": %d",
                         pp, tp, schedule, 1 + i / NUM_NAMED / 6);
        const int num_gpus = 2 * pp * tp;
        if (spread_make(&c, i % 2 ? MODEL(7680, "true") : MODEL(7680, "false"), num_gpus, 24,
                        parallel, &arena)) {
            EstimateParts parts;
            const Estimate e = case_estimate(&c, &parts);
            double terms = 0, shares = 0;
            for (int t = 0; t < NUM_TERMS; t++) {
                CU_ASSERT(e.term_s[t] >= 0);
                terms += e.term_s[t];
            }
            for (int k = 0; k < NUM_PARTS; k++) shares += e.part_s[k];
            CU_ASSERT_DOUBLE_EQUAL(terms, e.step_time_s, 1e-9 * e.step_time_s);
            CU_ASSERT_DOUBLE_EQUAL(shares, e.step_time_s, 1e-9 * e.step_time_s);
            CU_ASSERT(estimate_lower_bound_s(&c.scenario, &c.plan, &c.workload, &parts.prices) <=
                      e.step_time_s * (1 + 1e-9));
        }
        case_free(&c);
        arena_free(&arena);
    }
}

CU_TestInfo memory_vocab_tests[] = {
    {"closed_form_is_the_running_sum", closed_form_is_the_running_sum},
    {"matrices_are_divided", matrices_are_divided},
    {"dual_pipelines_share_the_matrices", dual_pipelines_share_the_matrices},
    {"work_adds_up", work_adds_up},
    {"without_a_pipeline_nothing_is_spread", without_a_pipeline_nothing_is_spread},
    {"a_huge_vocabulary_is_worth_spreading", a_huge_vocabulary_is_worth_spreading},
    {"answers_are_consistent", answers_are_consistent},
    CU_TEST_INFO_NULL,
};
