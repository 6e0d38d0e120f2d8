// The best of all splits of a configuration's layers: beside every split, splits drawn at random
// and an integer program that GLPK solves.
#include "planner/harvest/split_search.h"

#include "costmodel/step/estimate.h"
#include "planner/stages/split_bound.h"
#include "tests/planner/lp_referee.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int draw(uint64_t *state, int num_values) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)(*state >> 33) % num_values;
}

// A job with a pipeline whose memory is tight: a model, a batch and a vocabulary of any size; of
// what the default split needs of its fullest GPU between 90 and 105 % is there.
typedef struct {
    Scenario scenario;
    Plan plan;
    Arena arena;
} Job;

static const char *model_draw(uint64_t *state, Arena *arena) {
    const int heads = 8 << draw(state, 2), layers = 8 + draw(state, 41);
    const char *experts = draw(state, 4) > 0
                              ? ""
                              : ", \"num_experts\": 8, \"num_experts_per_tok\": 2, "
                                "\"moe_intermediate_size\": 2048, \"first_k_dense_replace\": 2";
    return arena_printf(arena,
                        "{\"model_type\": \"generic\", \"hidden_size\": %d, "
                        "\"intermediate_size\": %d, \"num_hidden_layers\": %d, "
                        "\"num_attention_heads\": %d, \"vocab_size\": %d, \"gated_mlp\": true, "
                        "\"norm\": \"rmsnorm\", \"position\": \"rope\", \"linear_bias\": false, "
                        "\"tie_word_embeddings\": false%s}",
                        128 * heads, 128 * heads * (2 + draw(state, 3)), layers, heads,
                        32000 * (1 + draw(state, 8)), experts);
}

static void memory_tighten(Job *job, uint64_t *state) {
    Arena scratch = {0};
    double missing;
    const Workload workload = workload_build(&job->scenario, &job->plan, &scratch);
    const RankMemory memory = estimate_memory(&job->scenario, &job->plan, &workload, &missing);
    test_pool(&job->scenario.cluster)->gpu.memory_available_bytes =
        memory.counted_bytes * (0.9 + 0.15 * draw(state, 1000) / 1000);
    arena_free(&scratch);
}

static Status job_open(int number, Job *job) {
    static const char *const RECOMPUTES[] = {"none", "full", "selective"};
    uint64_t state = (uint64_t)number * 7919 + 5;
    draw(&state, 2);
    *job = (Job){.arena = {0}};
    const int pp = 2 << draw(&state, 3), gpus = 8;
    const char *model = model_draw(&state, &job->arena);
    const char *training =
        arena_printf(&job->arena, "{\"seq_len\": %d, \"global_batch\": %d}",
                     1024 << draw(&state, 3), (gpus / pp) * (pp + draw(&state, 64)));
    const bool some = draw(&state, 3) == 0;
    const char *parallel = arena_printf(
        &job->arena, "{\"tp\": 1, \"pp\": %d, \"micro_batch\": 1, \"recompute\": \"%s\"%s}", pp,
        some ? "full" : RECOMPUTES[draw(&state, 3)],
        some ? arena_printf(&job->arena, ", \"recompute_layers\": %d", 1 + draw(&state, 4)) : "");
    TRY(scenario_of(scenario_text(&job->arena, model, "\"dgx-h100:1\"", training, parallel),
                    &job->arena, &job->scenario));
    TRY(plan_resolve(&job->scenario, &job->arena, &job->plan));
    memory_tighten(job, &state);
    return status_ok();
}

// The step of a split; INFINITY where it does not fit.
static double split_step_s(Job *job, GroupPricing *pricing, const int *layers) {
    Arena scratch = {0};
    Plan plan = job->plan;
    plan.chunks = chain_chunks(pricing, &plan, layers, &scratch);
    Estimate estimate;
    const Status status = estimate_plan(&job->scenario, &plan, &scratch, &estimate, NULL);
    CU_ASSERT_EQUAL(status.code, STATUS_OK);
    arena_free(&scratch);
    return estimate.memory.counted_bytes <=
                   job->scenario.cluster.pools[0].gpu.memory_available_bytes
               ? estimate.step_time_s
               : INFINITY;
}

static GroupSplit best_of(Job *job, GroupPricing *pricing) {
    Deadline none;
    GroupSplit best;
    deadline_start(&none, 0, NULL);
    const SplitTask task = {.limit_s = INFINITY, .deadline = &none};
    CU_ASSERT_EQUAL_FATAL(split_search(pricing, &job->plan, &task, &job->arena, &best).code,
                          STATUS_OK);
    if (best.verdict == GROUP_PRICED)
        CU_ASSERT_EQUAL(case_num_layers(&best.plan), job->scenario.model.num_layers);
    return best;
}

// Any cuts, near the default ones or not.
static void layers_draw(const Job *job, uint64_t *state, int *layers) {
    const int pp = job->plan.pp;
    const bool near = draw(state, 2);
    for (int c = 0; c < pp; c++) layers[c] = near ? job->plan.chunks[c].num_layers : 0;
    for (int i = near ? job->scenario.model.num_layers - 2 - draw(state, 6) : 0;
         i < job->scenario.model.num_layers; i++) {
        const int from = draw(state, pp), to = draw(state, pp);
        if (!near) layers[to]++;
        if (!near || layers[from] == 0) continue;
        layers[from]--;
        layers[to]++;
    }
}

// --- Splits at random

typedef struct {
    int num_faster, num_above, num_unfit, num_tight, num_drawn;
} Found;

static void draws_compare(Job *job, GroupPricing *pricing, const GroupSplit *best, int number,
                          int num_draws, Found *found) {
    uint64_t state = (uint64_t)number * 104729 + 3;
    int layers[16];
    const GroupCosts *costs = group_costs_of(pricing, &job->plan);
    Arena scratch = {0};
    const double cheap_s = split_bound_s(&job->scenario, &job->plan, costs);
    const StageProblem problem = group_stage_problem(&job->scenario, &job->plan, costs, &scratch);
    for (int i = 0; i < num_draws; i++) {
        layers_draw(job, &state, layers);
        const double step_s = split_step_s(job, pricing, layers);
        if (step_s == INFINITY) continue;
        found->num_drawn++;
        found->num_unfit += best->verdict != GROUP_PRICED;
        found->num_faster += step_s < best->step_time_s * (1 - 1e-9);
        found->num_above += stage_split_bound_s(&problem, layers) > step_s * (1 + 1e-9);
        found->num_above += cheap_s > stage_split_bound_s(&problem, layers) * (1 + 1e-9);
    }
    arena_free(&scratch);
}

static void no_split_drawn_at_random_is_faster(void) {
    Found found = {0};
    const int num_jobs = getenv("MESHWRIGHT_TEST_FULL") ? 300 : 30;
    for (int number = 0; number < num_jobs; number++) {
        Job job;
        CU_ASSERT_EQUAL_FATAL(job_open(number, &job).code, STATUS_OK);
        GroupPricing pricing = group_pricing_start(&job.scenario);
        const GroupSplit best = best_of(&job, &pricing);
        const int faster = found.num_faster;
        draws_compare(&job, &pricing, &best, number, 200, &found);
        if (found.num_faster > faster)
            printf("    job %d: %d of 200 are faster\n", number, found.num_faster - faster);
        int own[16];
        for (int c = 0; c < job.plan.pp; c++) own[c] = job.plan.chunks[c].num_layers;
        found.num_tight += split_step_s(&job, &pricing, own) == INFINITY;
        group_pricing_free(&pricing);
        arena_free(&job.arena);
    }
    CU_ASSERT_EQUAL(found.num_faster, 0);
    CU_ASSERT_EQUAL(found.num_above, 0);
    CU_ASSERT_EQUAL(found.num_unfit, 0);
    CU_ASSERT(found.num_tight > num_jobs / 3);
    CU_ASSERT(found.num_drawn > 20 * num_jobs);
}

// --- Every split

static double every_split_s(Job *job, GroupPricing *pricing, int stage, int left, int *layers) {
    double least_s = INFINITY;
    if (stage == job->plan.pp - 1) {
        layers[stage] = left;
        return split_step_s(job, pricing, layers);
    }
    for (layers[stage] = 0; layers[stage] <= left; layers[stage]++) {
        const int own = layers[stage];
        least_s = fmin(least_s, every_split_s(job, pricing, stage + 1, left - own, layers));
        layers[stage] = own;
    }
    return least_s;
}

// Two and four stages of at most 16 layers: 969 splits at most. A step is at most 0.1 % longer than
// that of the best of all, and nothing fits only where none does.
static void it_is_the_best_of_every_split(void) {
    int num_jobs = 0, num_none = 0, num_exact = 0;
    for (int number = 0; number < case_count(240); number++) {
        Job job;
        int layers[16];
        CU_ASSERT_EQUAL_FATAL(job_open(1000 + number, &job).code, STATUS_OK);
        const int num_layers = job.scenario.model.num_layers;
        if (num_layers <= 16 && job.plan.pp <= 4) {
            test_pool(&job.scenario.cluster)->gpu.memory_available_bytes *= number % 3 ? 1 : 0.9;
            GroupPricing pricing = group_pricing_start(&job.scenario);
            const GroupSplit best = best_of(&job, &pricing);
            const double least_s = every_split_s(&job, &pricing, 0, num_layers, layers);
            CU_ASSERT_EQUAL(best.verdict == GROUP_NO_ROOM, least_s == INFINITY);
            CU_ASSERT_EQUAL(split_fits(&pricing, &job.plan, 0, NULL, NULL), least_s < INFINITY);
            if (least_s < INFINITY) CU_ASSERT(best.step_time_s <= least_s * 1.001);
            CU_ASSERT(fmin(best.open_s, best.step_time_s) <= least_s * (1 + 1e-9));
            num_exact += least_s == INFINITY || best.step_time_s <= least_s * (1 + 1e-9);
            num_none += least_s == INFINITY;
            num_jobs++;
            group_pricing_free(&pricing);
        }
        arena_free(&job.arena);
    }
    CU_ASSERT(num_jobs > case_count(240) / 12 && num_none > 0);
    CU_ASSERT(num_exact >= num_jobs * 0.95);
}

// --- The integer program

// The busiest stage's work, where stages take intervals that fit: minimise T over x.
static void terms_write(FILE *file, const StageProblem *p, int r, bool work) {
    for (int from = 0; from <= p->num_layers; from++)
        for (int to = from; to <= p->num_layers; to++) {
            const bool ends =
                (r > 0 || from == 0) && (r < p->num_stages - 1 || to == p->num_layers);
            if (!ends || to > p->most[r][from]) continue;
            fprintf(file, " + %.17g x_%d_%d_%d\n", work ? stage_work_s(p, r, from, to) : 1, r, from,
                    to);
        }
}

static void cut_write(FILE *file, const StageProblem *p, int r, int cut) {
    const int last = p->num_stages - 1;
    fprintf(file, " cut_%d_%d: z\n", r, cut);
    for (int from = 0; from <= cut; from++)
        if ((r > 0 || from == 0) && cut <= p->most[r][from])
            fprintf(file, " + x_%d_%d_%d\n", r, from, cut);
    for (int to = cut; to <= p->num_layers; to++)
        if ((r + 1 < last || to == p->num_layers) && to <= p->most[r + 1][cut])
            fprintf(file, " - x_%d_%d_%d\n", r + 1, cut, to);
    fprintf(file, " = 0\n");
}

static void program_write(FILE *file, const StageProblem *p) {
    fprintf(file, "Minimize\n T\nSubject To\n");
    for (int r = 0; r < p->num_stages; r++) {
        fprintf(file, " busiest_%d: - T\n", r);
        terms_write(file, p, r, true);
        fprintf(file, " <= 0\n take_%d: z\n", r);
        terms_write(file, p, r, false);
        fprintf(file, " = 1\n");
    }
    for (int r = 0; r + 1 < p->num_stages; r++)
        for (int cut = 0; cut <= p->num_layers; cut++) cut_write(file, p, r, cut);
    fprintf(file, "Bounds\n z = 0\nBinary\n");
    for (int r = 0; r < p->num_stages; r++)
        for (int from = 0; from <= p->num_layers; from++)
            for (int to = from; to <= p->most[r][from] && to <= p->num_layers; to++)
                if ((r > 0 || from == 0) && (r < p->num_stages - 1 || to == p->num_layers))
                    fprintf(file, " x_%d_%d_%d\n", r, from, to);
    fprintf(file, "End\n");
}

// What the busiest stage of GLPK's split does, and how many layers each of its stages has.
static double referee_s(const StageProblem *problem, int *layers) {
    char path[] = "/tmp/split-search-XXXXXX";
    const int handle = mkstemp(path);
    FILE *file = handle >= 0 ? fdopen(handle, "w") : NULL;
    if (!file) return -1;
    program_write(file, problem);
    fclose(file);
    char names[LP_REFEREE_NAMES_SIZE];
    const double least_s = lp_referee_ones(path, names);
    remove(path);
    for (const char *name = strstr(names, "x_"); name; name = strstr(name + 1, "x_")) {
        int stage, from, to;
        if (sscanf(name, "x_%d_%d_%d", &stage, &from, &to) == 3) layers[stage] = to - from;
    }
    return least_s;
}

// What GLPK finds is the least work of a busiest stage. Were only that counted, the step took all
// micro-batches through it: no step is shorter. The step of the split itself is no shorter than
// that of ours either.
static void an_integer_program_finds_no_faster_split(void) {
    int num_solved = 0, num_compared = 0, num_slower = 0;
    const bool all_jobs = getenv("MESHWRIGHT_TEST_FULL") != NULL;
    const int most = all_jobs ? 300 : 30;
    for (int number = 0; number < most; number++) {
        Job job;
        CU_ASSERT_EQUAL_FATAL(job_open(number, &job).code, STATUS_OK);
        GroupPricing pricing = group_pricing_start(&job.scenario);
        const GroupSplit best = best_of(&job, &pricing);
        const GroupCosts *costs = group_costs_of(&pricing, &job.plan);
        StageProblem problem = group_stage_problem(&job.scenario, &job.plan, costs, &job.arena);
        const StageBounds all = stage_bounds_solve(&problem, &job.arena);
        problem.most = group_stage_room(&pricing, &job.plan, &all, &job.arena);
        int layers[16] = {0};
        const bool small = all_jobs || job.plan.pp * job.scenario.model.num_layers <= 160;
        const double least_s = small ? referee_s(&problem, layers) : -1;
        if (least_s >= 0) {
            CU_ASSERT_EQUAL(least_s == INFINITY, best.verdict == GROUP_NO_ROOM);
            if (best.verdict == GROUP_PRICED)
                CU_ASSERT(best.step_time_s >= problem.num_microbatches * least_s * (1 - 1e-6));
            num_solved++;
        }
        if (least_s >= 0 && least_s < INFINITY) {
            const double step_s = split_step_s(&job, &pricing, layers);
            CU_ASSERT(step_s >= best.step_time_s * (1 - 1e-9));
            num_slower += step_s > best.step_time_s * (1 + 1e-9);
            num_compared += isfinite(step_s);
        }
        group_pricing_free(&pricing);
        arena_free(&job.arena);
    }
    CU_ASSERT(num_solved >= (all_jobs ? most : most / 3) && num_compared >= most / 4);
    CU_ASSERT(num_slower > 0); // ours knows more than the busiest stage
}

// --- A user's job

// Qwen3-8B on eight cards of 24 GB: with even stages nothing fits with eight of them.
static void stages_that_balance_memory_are_found(void) {
    Arena arena = {0};
    Scenario scenario;
    Status status = case_preset("qwen3-8b", "rtx4090-node", 4096, 128, "{\"tp\": 1, \"pp\": 8}",
                                &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const PlannerResult found = case_search(
        &scenario, &(PlannerOptions){.top = 1, .fit_probability_frac = 0.5, .brief = true}, &arena);
    CU_ASSERT_EQUAL_FATAL(found.num_entries, 1);
    CU_ASSERT(found.entries[0].estimate.step_time_s <= 43.2);
    CU_ASSERT(found.stats.any_split && found.stats.optimal);
    scenario.parallel.stages = (const StageSpec[]){{.layers = 4, .embedding = true},
                                                   {.layers = 4},
                                                   {.layers = 5},
                                                   {.layers = 5},
                                                   {.layers = 5},
                                                   {.layers = 5},
                                                   {.layers = 4},
                                                   {.layers = 4, .loss = true}};
    scenario.parallel.num_stages = 8;
    const PlannerResult even = case_search(
        &scenario, &(PlannerOptions){.top = 1, .fit_probability_frac = 0.5, .brief = true}, &arena);
    CU_ASSERT_EQUAL(even.num_entries, 0);
    arena_free(&arena);
}

CU_TestInfo split_search_tests[] = {
    {"no_split_drawn_at_random_is_faster", no_split_drawn_at_random_is_faster},
    {"it_is_the_best_of_every_split", it_is_the_best_of_every_split},
    {"an_integer_program_finds_no_faster_split", an_integer_program_finds_no_faster_split},
    {"stages_that_balance_memory_are_found", stages_that_balance_memory_are_found},
    CU_TEST_INFO_NULL,
};
