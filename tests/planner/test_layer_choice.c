#include "planner/layerwise/layer_choice.h"

#include "plan/layer_plans.h"
#include "planner/layerwise/layer_search.h"
#include "tests/planner/lp_referee.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PLANS = 64 };

// A job and the strategies of one combination.
typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plans[MAX_PLANS];
    int num_plans;
} Job;

static bool job_open(Job *job, const char *model, const char *cluster, int seq_len) {
    *job = (Job){0};
    const Status status =
        case_preset(model, cluster, seq_len, 64, NULL, &job->arena, &job->scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    return true;
}

// Adds a plan of tp x cp x dp GPUs a stage and `sequences` in a micro-batch of all of them; false
// where it is not legal.
static bool strategy_add(Job *job, int tp, int pp, int zero_stage, Recompute recompute,
                         int sequences) {
    Plan plan = {.tp = tp, .pp = pp, .cp = 1, .ep = 1, .etp = 1, .vpp = 1};
    plan.dp = job->scenario.cluster.num_gpus / (tp * pp);
    if (sequences % plan.dp != 0) return false;
    plan.micro_batch = sequences / plan.dp;
    plan.zero_stage = zero_stage;
    plan.zero_group = plan.dp;
    plan.reshard_after_forward = true;
    plan.sequence_parallel = tp > 1;
    plan.recompute = recompute;
    if (recompute == RECOMPUTE_SELECTIVE)
        plan.recompute_modules = plan_default_modules(&job->scenario);
    plan.recompute_layers = ABSENT;
    plan.num_chunks = pp;
    plan.schedule = SCHEDULE_1F1B;
    CU_ASSERT_EQUAL_FATAL(
        plan_default_chunks(&job->scenario.model, pp, &job->arena, &plan.chunks).code, STATUS_OK);
    plan_derive(&job->scenario, &plan);
    if (plan_check(&job->scenario, &plan).code != STATUS_OK) return false;
    job->plans[job->num_plans++] = plan;
    return true;
}

static void job_strategies(Job *job, int most_tp, int pp, int sequences) {
    for (int tp = 1; tp <= most_tp; tp *= 2)
        for (int zero = 1; zero <= (pp == 1 ? 3 : 1); zero++)
            for (int recompute = 0; recompute < NUM_RECOMPUTES; recompute++)
                strategy_add(job, tp, pp, zero, (Recompute)recompute, sequences);
}

// Memory between what two strategies need throughout, so that some layers have to run the leaner.
static void memory_between(Job *job, int lean, int rich) {
    double bytes = 0, missing;
    for (int i = 0; i < 2; i++) {
        const Plan *plan = &job->plans[i ? rich : lean];
        const Workload workload = workload_build(&job->scenario, plan, &job->arena);
        bytes += estimate_memory(&job->scenario, plan, &workload, &missing).counted_bytes / 2;
    }
    test_pool(&job->scenario.cluster)->gpu.memory_available_bytes = bytes;
}

// --- The stage's problem says what the estimator says

// One strategy throughout needs what the memory account says, where its layout is the base's; under
// another layout the base's buffers are counted as well.
static void one_strategy_throughout_needs_what_the_account_says(void) {
    static const char *const MODELS[] = {"llama-3.1-8b", "deepseek-v2-lite", "gemma-2-9b", "t5-3b"};
    int num_checked = 0;
    for (size_t m = 0; m < sizeof MODELS / sizeof *MODELS; m++) {
        for (int pp = 1; pp <= 2; pp++) {
            Job job;
            job_open(&job, MODELS[m], "dgx-h100:1", 4096);
            job_strategies(&job, 2, pp, 8);
            if (job.num_plans == 0) { // an encoder has no pipeline
                arena_free(&job.arena);
                continue;
            }
            const LayerMenu menu = layer_menu(&job.scenario, job.plans, job.num_plans, &job.arena);
            for (int rank = 0; rank < pp; rank++) {
                const LayerStage stage = layer_stage(&menu, 0, rank, &job.arena);
                for (int s = 0; s < job.num_plans; s++) {
                    int rows[256];
                    for (int l = 0; l < stage.problem.num_layers; l++) rows[l] = 0;
                    for (int l = 0; l < stage.num_rows; l++) rows[stage.first_row + l] = s;
                    const double bytes = layer_stage_counted_bytes(
                        &stage, layerwise_memory_bytes(&stage.problem, rows));
                    Scenario caches = menu.scenario;
                    const RankMemory account =
                        memory_closed_form(&caches, &menu.plans[s], &menu.workloads[s], rank);
                    if (s == 0) CU_ASSERT_DOUBLE_EQUAL(bytes / account.counted_bytes, 1, 1e-9);
                    // Embedding and head keep to the base, whose ZeRO stage and tp are the least
                    // sharded: never below the account.
                    CU_ASSERT(bytes >= account.counted_bytes * (1 - 1e-9));
                    if (menu.plans[s].tp == 1 && menu.plans[s].zero_stage == 1)
                        CU_ASSERT_DOUBLE_EQUAL(bytes / account.counted_bytes, 1, 0.002);
                    num_checked++;
                }
            }
            arena_free(&job.arena);
        }
    }
    CU_ASSERT(num_checked > 60);
}

// The layers' prices add up to the chunk's: what the estimator runs.
static void layers_add_up_to_the_chunk(void) {
    Job job;
    job_open(&job, "deepseek-v2-lite", "dgx-h100:1", 4096);
    Stack *stack = &job.scenario.execution.stack;
    stack->training.host_microbatch_s = stack->launch.host_layer_s = stack->launch.host_launch_s =
        stack->launch.host_expert_s = 0;
    job_strategies(&job, 2, 1, 8);
    const LayerMenu menu = layer_menu(&job.scenario, job.plans, job.num_plans, &job.arena);
    const Model *model = &job.scenario.model;
    for (int s = 0; s < job.num_plans; s++) {
        const Plan *plan = &menu.plans[s];
        const Workload *w = &menu.workloads[s];
        const Prices prices = chunks_price(&job.scenario, plan, w, &job.arena);
        double forward_s = 0, backward_s = 0, edge_s = 0;
        for (int l = 0; l < model->num_layers; l++) {
            const LayerCost *cost = &menu.costs[s * model->num_kinds + model->layer_kind[l]];
            forward_s += cost->forward.time_s;
            backward_s += cost->backward.time_s;
            edge_s = fmax(edge_s, cost->edge_s);
        }
        for (int b = BLOCK_EMBEDDING; b <= BLOCK_HEAD; b += BLOCK_HEAD - BLOCK_EMBEDDING) {
            const LayerCost cost = layer_cost(&job.scenario, plan, &w->blocks[b]);
            forward_s += cost.forward.time_s;
            backward_s += cost.backward.time_s;
            edge_s = fmax(edge_s, cost.edge_s);
        }
        const double chunk_s = prices.forward[0].time_s + prices.backward[0].time_s;
        CU_ASSERT_DOUBLE_EQUAL((forward_s + backward_s + edge_s) / chunk_s, 1, 1e-6);
    }
    arena_free(&job.arena);
}

// So do those of a plan whose layers differ in tp, with the changes of layout between them.
static void changes_add_up_to_the_chunk(void) {
    Job job;
    job_open(&job, "llama-3.1-8b", "dgx-h100:1", 4096);
    Stack *stack = &job.scenario.execution.stack;
    stack->training.host_microbatch_s = stack->launch.host_layer_s = stack->launch.host_launch_s =
        stack->launch.host_expert_s = 0;
    for (int tp = 1; tp <= 4; tp *= 2) strategy_add(&job, tp, 1, 1, RECOMPUTE_NONE, 8);
    const LayerMenu menu = layer_menu(&job.scenario, job.plans, job.num_plans, &job.arena);
    Plan own[32], plan = job.plans[1]; // tp 2, then 4, then 1
    double expected_s =
        menu.change_s[1 * 3 + 2] + menu.change_s[2 * 3 + 0] + menu.change_s[0 * 3 + 1];
    for (int l = 0; l < 32; l++) {
        const int s = l < 8 ? 1 : l < 20 ? 2 : 0;
        own[l] = job.plans[s];
        expected_s += menu.costs[s].forward.time_s + menu.costs[s].backward.time_s;
    }
    plan_set_layers(&plan, own, 32, &job.arena);
    const Workload w = workload_build(&job.scenario, &plan, &job.arena);
    const Prices prices = chunks_price(&job.scenario, &plan, &w, &job.arena);
    for (int b = BLOCK_EMBEDDING; b <= BLOCK_HEAD; b += BLOCK_HEAD - BLOCK_EMBEDDING) {
        const LayerCost cost = layer_cost(&job.scenario, &job.plans[1], &w.blocks[b]);
        expected_s += cost.forward.time_s + cost.backward.time_s;
    }
    CU_ASSERT(menu.change_s[1 * 3 + 2] > 1e-5);
    CU_ASSERT_DOUBLE_EQUAL((prices.forward[0].time_s + prices.backward[0].time_s) / expected_s, 1,
                           1e-9);
    arena_free(&job.arena);
}

// --- Choices

// Recomputation alone: no choice of "the first k of each stage fully, the rest not" that fits is
// faster by the estimator, where the stages' times are what decides (pp 1).
static void no_mix_of_recomputation_is_faster(void) {
    Job job;
    job_open(&job, "llama-3.1-8b", "dgx-h100:1", 8192);
    for (int r = 0; r < NUM_RECOMPUTES; r++) strategy_add(&job, 2, 1, 1, (Recompute)r, 8);
    memory_between(&job, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE);
    LayerChoice choice;
    CU_ASSERT_TRUE_FATAL(
        layer_choose(&job.scenario, job.plans, job.num_plans, INFINITY, NULL, &job.arena, &choice));
    CU_ASSERT_TRUE_FATAL(choice.optimal && choice.estimate.fits);
    CU_ASSERT(choice.estimate.step_time_s < 0.99 * choice.uniform_step_s); // a mix is worth it
    CU_ASSERT(fabs(choice.cost_error_frac) < 0.002);
    int num_fitting = 0;
    for (int full = 0; full <= 32; full++)
        for (int selective = 0; full + selective <= 32; selective++) {
            Plan plan = job.plans[0], own[32];
            for (int l = 0; l < 32; l++) {
                own[l] = plan;
                own[l].recompute_modules = plan_default_modules(&job.scenario);
                own[l].recompute = l < full               ? RECOMPUTE_FULL
                                   : l < full + selective ? RECOMPUTE_SELECTIVE
                                                          : RECOMPUTE_NONE;
            }
            Arena scratch = {0};
            plan_set_layers(&plan, own, 32, &scratch);
            Estimate estimate;
            CU_ASSERT_EQUAL(estimate_plan(&job.scenario, &plan, &scratch, &estimate, NULL).code,
                            STATUS_OK);
            arena_free(&scratch);
            if (!estimate.fits) continue;
            num_fitting++;
            CU_ASSERT(estimate.step_time_s >= choice.estimate.step_time_s * (1 - 1e-9));
        }
    CU_ASSERT(num_fitting > 20);
    arena_free(&job.arena);
}

// The first stage holds most micro-batches: it recomputes, the last does not.
static void stages_recompute_by_what_they_hold(void) {
    Job job;
    job_open(&job, "llama-3.1-8b", "dgx-h100:1", 16384);
    for (int r = 0; r < NUM_RECOMPUTES; r++) strategy_add(&job, 2, 4, 1, (Recompute)r, 1);
    memory_between(&job, RECOMPUTE_FULL, RECOMPUTE_NONE);
    LayerChoice choice;
    CU_ASSERT_TRUE_FATAL(
        layer_choose(&job.scenario, job.plans, job.num_plans, INFINITY, NULL, &job.arena, &choice));
    CU_ASSERT_TRUE_FATAL(choice.estimate.fits);
    int recomputed[2] = {0};
    for (int l = 0; l < 16; l++) {
        recomputed[0] += choice.layers[l].recompute != RECOMPUTE_NONE;
        recomputed[1] += choice.layers[16 + l].recompute != RECOMPUTE_NONE;
    }
    CU_ASSERT(recomputed[0] > recomputed[1]);
    CU_ASSERT(choice.estimate.step_time_s <= choice.uniform_step_s);
    arena_free(&job.arena);
}

// tp, ZeRO stage and recomputation together: never slower than one strategy throughout.
static void a_choice_is_never_slower_than_one_strategy(void) {
    static const char *const MODELS[] = {"llama-3.1-8b", "deepseek-v2-lite", "gemma-2-9b"};
    int num_faster = 0;
    for (size_t m = 0; m < sizeof MODELS / sizeof *MODELS; m++)
        for (int pp = 1; pp <= 2; pp++) {
            Job job;
            job_open(&job, MODELS[m], "dgx-h100:1", 8192);
            job_strategies(&job, 4, pp, 8);
            LayerChoice choice;
            if (layer_choose(&job.scenario, job.plans, job.num_plans, INFINITY, NULL, &job.arena,
                             &choice)) {
                CU_ASSERT(choice.optimal);
                CU_ASSERT(choice.estimate.step_time_s <= choice.uniform_step_s);
                CU_ASSERT(choice.estimate.fits);
                num_faster += choice.estimate.step_time_s < 0.999 * choice.uniform_step_s;
            }
            arena_free(&job.arena);
        }
    CU_ASSERT(num_faster >= 3);
}

// Where layers differ in tp, the costs that chose them say what the estimate of the plan does:
// changes of layout, other groups and shards are one account. Gathers alone hide otherwise.
static void costs_say_what_the_estimate_does(void) {
    int num_mixed = 0;
    for (int pp = 1; pp <= 2; pp++) {
        Job job;
        job_open(&job, "gemma-2-9b", "dgx-h100:1", 8192);
        for (int tp = 2; tp <= 4; tp *= 2)
            for (int r = 0; r < NUM_RECOMPUTES; r++) strategy_add(&job, tp, pp, 1, (Recompute)r, 4);
        memory_between(&job, 0, job.num_plans - 1);
        LayerChoice choice;
        if (layer_choose(&job.scenario, job.plans, job.num_plans, INFINITY, NULL, &job.arena,
                         &choice)) {
            CU_ASSERT(choice.estimate.fits);
            CU_ASSERT(fabs(choice.cost_error_frac) < 0.005);
            num_mixed += choice.plan.layers != NULL;
            Estimate again;
            CU_ASSERT_EQUAL(
                estimate_plan(&job.scenario, &choice.plan, &job.arena, &again, NULL).code,
                STATUS_OK);
            CU_ASSERT_EQUAL(again.step_time_s, choice.estimate.step_time_s);
        }
        arena_free(&job.arena);
    }
    CU_ASSERT(num_mixed > 0);
}

// The file that --write-lp writes has the optimum that its first lines state.
static void the_written_program_has_the_optimum_it_states(void) {
    Job job;
    job_open(&job, "llama-3.2-1b", "dgx-h100:1", 32768);
    for (int r = 0; r < NUM_RECOMPUTES; r++) strategy_add(&job, 2, 1, 1, (Recompute)r, 8);
    memory_between(&job, RECOMPUTE_FULL, RECOMPUTE_NONE);
    LayerChoice choice;
    CU_ASSERT_TRUE_FATAL(
        layer_choose(&job.scenario, job.plans, job.num_plans, INFINITY, NULL, &job.arena, &choice));
    char path[] = "/tmp/meshwright-choice-XXXXXX";
    const int file = mkstemp(path);
    CU_ASSERT_FATAL(file >= 0);
    close(file);
    CU_ASSERT_EQUAL(
        layer_choice_write_lp(&job.scenario, job.plans, job.num_plans, &choice, path).code,
        STATUS_OK);
    FILE *stream = fopen(path, "r");
    char text[512] = "";
    const size_t size = stream ? fread(text, 1, sizeof text - 1, stream) : 0;
    if (stream) fclose(stream);
    const char *stated = size > 0 ? strstr(text, "Optimum: ") : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(stated);
    CU_ASSERT_DOUBLE_EQUAL(lp_referee(path) / atof(stated + strlen("Optimum: ")), 1, 1e-6);
    unlink(path);
    arena_free(&job.arena);
}

// --- The search

static Status searched(const char *parallel, Arena *arena, LayerResult *out) {
    Scenario scenario;
    TRY(case_preset("llama-3.1-8b", "dgx-h100:1", 8192, 64, parallel, arena, &scenario));
    const PlannerOptions options = {.top = 3};
    return layer_search(&scenario, &options, arena, out);
}

static void threads_change_nothing(void) {
    Arena arena = {0};
    Scenario scenario;
    CU_ASSERT_EQUAL_FATAL(case_preset("llama-3.1-8b", "dgx-h100:1", 8192, 64,
                                      "{\"cp\": 1, \"zero_stage\": 1}", &arena, &scenario)
                              .code,
                          STATUS_OK);
    LayerResult one, two;
    PlannerOptions options = {.top = 3, .num_threads = 1};
    CU_ASSERT_EQUAL_FATAL(layer_search(&scenario, &options, &arena, &one).code, STATUS_OK);
    options.num_threads = 2;
    CU_ASSERT_EQUAL_FATAL(layer_search(&scenario, &options, &arena, &two).code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(one.num_entries, 3);
    CU_ASSERT_EQUAL_FATAL(two.num_entries, 3);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(one.entries[i].choice.estimate.step_time_s,
                        two.entries[i].choice.estimate.step_time_s);
        if (i > 0)
            CU_ASSERT(one.entries[i].choice.estimate.step_time_s >=
                      one.entries[i - 1].choice.estimate.step_time_s);
    }
    CU_ASSERT(one.has_uniform);
    arena_free(&arena);
}

// Nothing of what is searched with one strategy throughout is faster than the first entry: of the
// last job the best has several chunks a rank, which no strategy has.
static void the_answer_is_never_slower_than_one_strategy(void) {
    static const struct {
        const char *model, *parallel;
        int global_batch;
        bool is_uniform;
    } CASES[] = {
        {"deepseek-v2-lite", "{\"tp\": 1, \"cp\": 1, \"pp\": 1}", 64, false},
        {"llama-3.1-8b", "{\"tp\": 2}", 64, false},
        {"llama-3.1-8b", "{\"tp\": 1, \"cp\": 1, \"pp\": 8, \"recompute\": \"full\"}", 8, true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        Scenario scenario;
        LayerResult result;
        CU_ASSERT_EQUAL_FATAL(case_preset(CASES[i].model, "dgx-h100:1", 16384,
                                          CASES[i].global_batch, CASES[i].parallel, &arena,
                                          &scenario)
                                  .code,
                              STATUS_OK);
        for (int top = 1; top <= 2; top++) {
            const PlannerOptions options = {.top = top};
            CU_ASSERT_EQUAL_FATAL(layer_search(&scenario, &options, &arena, &result).code,
                                  STATUS_OK);
            CU_ASSERT_FATAL(result.has_uniform && result.num_entries > 0);
            const LayerChoice *best = &result.entries[0].choice;
            CU_ASSERT(best->estimate.step_time_s <= result.uniform_estimate.step_time_s);
            CU_ASSERT_EQUAL(best->is_uniform, CASES[i].is_uniform);
            CU_ASSERT(!best->is_uniform || best->plan.vpp > 1);
        }
        arena_free(&arena);
    }
}

static void what_cannot_be_chosen_is_refused(void) {
    static const struct {
        const char *parallel, *path;
    } CASES[] = {
        {"{\"vpp\": 2, \"pp\": 2}", "parallel.vpp"},
        {"{\"recompute\": \"full\", \"recompute_layers\": 2}", "parallel.recompute_layers"},
        {"{\"pp\": 2, \"schedule\": \"zb-h1\"}", "parallel.schedule"},
        {"{\"pp\": 2, \"vocab_parallel\": true}", "parallel.vocab_parallel"},
        {"{\"layers\": [{\"from\": 0, \"to\": 1, \"recompute\": \"full\"}]}", "parallel.layers"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        Arena arena = {0};
        LayerResult result;
        const Status status = searched(CASES[i].parallel, &arena, &result);
        CU_ASSERT_EQUAL(status.code, STATUS_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(status.text, CASES[i].path));
        arena_free(&arena);
    }
}

CU_TestInfo layer_choice_tests[] = {
    {"one_strategy_throughout_needs_what_the_account_says",
     one_strategy_throughout_needs_what_the_account_says},
    {"layers_add_up_to_the_chunk", layers_add_up_to_the_chunk},
    {"changes_add_up_to_the_chunk", changes_add_up_to_the_chunk},
    {"no_mix_of_recomputation_is_faster", no_mix_of_recomputation_is_faster},
    {"stages_recompute_by_what_they_hold", stages_recompute_by_what_they_hold},
    {"a_choice_is_never_slower_than_one_strategy", a_choice_is_never_slower_than_one_strategy},
    {"costs_say_what_the_estimate_does", costs_say_what_the_estimate_does},
    {"the_written_program_has_the_optimum_it_states",
     the_written_program_has_the_optimum_it_states},
    {"threads_change_nothing", threads_change_nothing},
    {"the_answer_is_never_slower_than_one_strategy", the_answer_is_never_slower_than_one_strategy},
    {"what_cannot_be_chosen_is_refused", what_cannot_be_chosen_is_refused},
    CU_TEST_INFO_NULL,
};
