// The step time alone is that of the whole estimate, over configurations of all kinds.
#include "costmodel/step/step_time.h"

#include "config/cluster/node_order.h"
#include "costmodel/step/estimate.h"
#include "plan/layer_plans.h"
#include "planner/harvest/harvest.h"
#include "tests/planner/placement_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <math.h>

// Doubles that are added up one after the other lose more than ticks do.
static const double SAME_FRAC = 1e-12;

// Kinds of configurations that were compared, and those that plan_step_time_s does not know.
typedef struct {
    int num, num_experts, num_interleaved, num_blocking, num_split, num_uneven, num_tied;
    int num_cp, num_sharded, num_repeating, num_unknown, num_wrong;
    int num_limited, num_cut; // asked for with a limit below it; of these, found to be above
    int num_spaces;           // looked at
} Seen;

static bool is_uneven(const Plan *plan) {
    for (int c = 1; c < plan->num_chunks; c++)
        if (plan->chunks[c].num_layers != plan->chunks[0].num_layers) return true;
    return false;
}

static bool repeats(const Plan *plan) {
    const ScheduleShape shape = schedule_shape(plan->pp, plan->vpp, (int)plan->num_microbatches);
    const Schedule *schedule = schedule_find(plan->schedule);
    return plan->pp > 1 && schedule->steady && schedule->steady(&shape, 0).num_periods > 2;
}

static void kind_note(const Scenario *scenario, const Plan *plan, Seen *seen) {
    seen->num++;
    seen->num_experts += plan->ep > 1;
    seen->num_interleaved += plan->vpp > 1;
    seen->num_blocking += plan->pp > 1 && !program_hides_messages(scenario, plan);
    seen->num_split += plan->pp > 1 && plan_schedule_traits(plan).splits_backward;
    seen->num_uneven += is_uneven(plan);
    seen->num_tied += plan->pp > 1 && scenario->model.tie_word_embeddings;
    seen->num_cp += plan->cp > 1;
    seen->num_sharded += plan->zero_stage == 3 && plan->dp > 1;
    seen->num_repeating += repeats(plan);
}

// With a limit the time is the same, or above it.
static void limits_compare(const Scenario *scenario, const Plan *plan, const Workload *workload,
                           const Prices *prices, double time_s, Arena *arena, Seen *seen) {
    static const double FRACS[] = {0.5, 0.9, 0.999, 1, 1.01};
    for (size_t i = 0; i < sizeof FRACS / sizeof *FRACS; i++) {
        const double limit_s = FRACS[i] * time_s;
        const double found_s =
            plan_step_time_below_s(scenario, plan, workload, prices, limit_s, arena);
        seen->num_wrong += found_s != time_s && (found_s != INFINITY || FRACS[i] >= 1);
        seen->num_limited += FRACS[i] < 1;
        seen->num_cut += found_s == INFINITY;
    }
}

static void plan_compare(const Scenario *scenario, const Plan *plan, Seen *seen) {
    Arena arena = {0};
    Estimate estimate;
    EstimateParts parts;
    Status status = estimate_plan(scenario, plan, &arena, &estimate, &parts);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    const Prices prices = chunks_price(scenario, plan, &parts.workload, &arena);
    const double time_s = plan_step_time_s(scenario, plan, &parts.workload, &prices, &arena);
    if (isnan(time_s))
        seen->num_unknown++;
    else
        kind_note(scenario, plan, seen);
    if (!isnan(time_s))
        limits_compare(scenario, plan, &parts.workload, &prices, time_s, &arena, seen);
    seen->num_wrong += fabs(time_s / estimate.step_time_s - 1) > SAME_FRAC;
    arena_free(&arena);
}

static void scenario_make(const char *model, const char *cluster, const char *training,
                          const char *parallel, Arena *arena, Scenario *out) {
    const char *text = scenario_text(arena, model, cluster, training, parallel);
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, arena, out).code, STATUS_OK);
    Pool *pools = test_pool(&out->cluster);
    for (int i = 0; i < out->cluster.num_pools; i++) pools[i].gpu.memory_available_bytes = 1e15;
}

// Compares about `wanted` configurations of a scenario's space. Recomputed are all layers, or every
// other time the first two of each stage: numbers in between would be most of the space.
static void configurations_compare(const Scenario *job, size_t wanted, Seen *seen) {
    Arena arena = {0};
    Space space;
    Scenario own = *job;
    const Scenario *scenario = &own;
    own.parallel.recompute_layers = seen->num_spaces++ % 2 ? 2 : job->model.num_layers;
    space_build(scenario, &arena, &space);
    const HarvestTask task = {.space = &space, .goal = HARVEST_BOUND, .value_limit = INFINITY};
    Harvest *harvests = ARENA_ARRAY(&arena, space.num_splits, Harvest);
    size_t num = 0;
    for (int i = 0; i < space.num_splits; i++) {
        harvest_split(&task, i, &harvests[i]);
        num += harvests[i].num_candidates;
    }
    const size_t every = num / wanted + 1;
    size_t number = 0;
    for (int i = 0; i < space.num_splits; i++) {
        for (size_t k = 0; k < harvests[i].num_candidates; k++)
            if (number++ % every == 0)
                plan_compare(scenario, &harvests[i].candidates[k].plan, seen);
        harvest_free(&harvests[i]);
    }
    arena_free(&arena);
}

static void space_compare(const char *model, const char *cluster, const char *training,
                          const char *parallel, size_t wanted, Seen *seen) {
    Arena arena = {0};
    Scenario scenario;
    scenario_make(model, cluster, training, parallel, &arena, &scenario);
    configurations_compare(&scenario, wanted, seen);
    arena_free(&arena);
}

static const char DENSE[] =
    "{\"model_type\": \"generic\", \"hidden_size\": 512, \"intermediate_size\": 2048, "
    "\"num_hidden_layers\": 10, \"num_attention_heads\": 8, \"vocab_size\": 32000, "
    "\"max_position_embeddings\": 4096}"; // its embeddings are tied
static const char EXPERTS[] =
    "{\"model_type\": \"generic\", \"hidden_size\": 512, \"intermediate_size\": 2048, "
    "\"num_hidden_layers\": 9, \"num_attention_heads\": 8, \"vocab_size\": 32000, "
    "\"max_position_embeddings\": 4096, \"tie_word_embeddings\": false, \"num_experts\": 8, "
    "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 1024, \"first_k_dense_replace\": 1}";

#define TRAINING(more) "{\"seq_len\": 1024, \"global_batch\": 96" more "}"

static void it_is_that_of_the_estimate(void) {
    static const struct {
        const char *model, *training, *parallel;
    } JOBS[] = {
        {DENSE, TRAINING(""), NULL},
        {DENSE, TRAINING(", \"stack\": \"megatron-2021\""), "{\"recompute\": \"none\"}"},
        {DENSE, TRAINING(", \"stack\": \"torchtitan\""), NULL},
        {DENSE, TRAINING(", \"stack\": \"pytorch-fsdp\""), NULL},
        {DENSE, TRAINING(", \"stack\": \"runtime\""), "{\"micro_batch\": 1}"},
        {DENSE, TRAINING(", \"overlap_grad_reduce\": false, \"overlap_param_gather\": false"),
         NULL},
        {EXPERTS, TRAINING(""), NULL},
        {EXPERTS, TRAINING(", \"stack\": \"runtime\""), "{\"micro_batch\": 1}"},
    };
    Seen seen = {0};
    for (size_t i = 0; i < sizeof JOBS / sizeof *JOBS; i++)
        space_compare(JOBS[i].model, "\"dgx-h100:2\"", JOBS[i].training, JOBS[i].parallel, 100,
                      &seen);
    CU_ASSERT_EQUAL(seen.num_wrong, 0);
    CU_ASSERT(seen.num > 300);
    CU_ASSERT(seen.num_cut > seen.num_limited / 10);
    const int kinds[] = {seen.num_experts, seen.num_interleaved, seen.num_blocking,
                         seen.num_split,   seen.num_uneven,      seen.num_tied,
                         seen.num_cp,      seen.num_sharded,     seen.num_repeating,
                         seen.num_unknown};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) CU_ASSERT(kinds[i] > 5);
}

// Of 4,096 micro-batches all but the first and the last few periods are left out.
static void a_long_step_is_its_period_repeated(void) {
    static const char *const PARALLEL[] = {"{\"pp\": 2, \"micro_batch\": 1, \"dp\": 1}",
                                           "{\"pp\": 4, \"micro_batch\": 1, \"dp\": 2}"};
    Seen seen = {0};
    for (int i = 0; i < 2; i++)
        space_compare(DENSE, "\"dgx-h100:1\"", "{\"seq_len\": 256, \"global_batch\": 8192}",
                      PARALLEL[i], 12, &seen);
    CU_ASSERT_EQUAL(seen.num_wrong, 0);
    CU_ASSERT_EQUAL(seen.num_repeating, seen.num);
    CU_ASSERT(seen.num > 10);
}

// Layers that are recomputed, or split and sharded, each in its own way, of one chunk a rank and of
// two.
static void it_is_so_where_layers_differ(void) {
    static const char *const LAYERS[] = {
        "\"layers\": [{\"from\": 0, \"to\": 2, \"recompute\": \"full\"}, "
        "{\"from\": 5, \"to\": 6, \"recompute\": \"selective\"}]",
        "\"layers\": [{\"from\": 0, \"to\": 2, \"tp\": 2, \"zero_stage\": 3}, "
        "{\"from\": 5, \"to\": 6, \"tp\": 1, \"cp\": 2, \"zero_stage\": 0}], \"micro_batch\": 4"};
    static const char *const DEGREES[] = {"\"pp\": 1, \"tp\": 2", "\"pp\": 2, \"tp\": 4",
                                          "\"pp\": 2, \"vpp\": 2, \"tp\": 1",
                                          "\"pp\": 4, \"recompute\": \"full\""};
    Seen seen = {0};
    for (size_t k = 0; k < 2 * (sizeof DEGREES / sizeof *DEGREES); k++) {
        Arena arena = {0};
        Scenario scenario;
        Plan plan;
        const char *parallel = arena_printf(&arena, "{%s, %s}", DEGREES[k / 2], LAYERS[k % 2]);
        const char *text = scenario_text(&arena, DENSE, "\"dgx-h100:1\"", TRAINING(""), parallel);
        CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
        CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
        CU_ASSERT_EQUAL(plan_mixes_recompute(&plan), k % 2 == 0);
        CU_ASSERT(plan.layers != NULL);
        plan_compare(&scenario, &plan, &seen);
        arena_free(&arena);
    }
    CU_ASSERT_EQUAL(seen.num_wrong, 0);
    CU_ASSERT_EQUAL(seen.num, 8);
}

// Every stage has its own links where those between nodes differ: of a measured matrix, of groups
// and of leaves, with the nodes in their order and in another.
static void it_is_so_where_links_between_nodes_differ(void) {
    static const int ORDER[] = {2, 0, 3, 5, 1, 4};
    static const char HALF[] =
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 24, \"gpus_per_node\": 8, "
        "\"scale_up\": {\"link\": \"nvlink4\"}, \"scale_out\": "
        "{\"nics_per_node\": 8, \"nic_bytes_per_s\": 5e10}}";
    Seen seen = {0};
    Arena arena = {0};
    const char *clusters[] = {
        "\"dgx-h100:6\"",
        arena_printf(&arena,
                     "{\"groups\": [%s, %s], \"between\": {\"bytes_per_s\": 1e10, "
                     "\"latency_s\": 1e-5}}",
                     HALF, HALF),
        "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 48, \"gpus_per_node\": 8, "
        "\"scale_up\": {\"link\": \"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, "
        "\"nic_bytes_per_s\": 5e10, \"topology\": \"fat-tree\", \"oversubscription\": 8}}"};
    MatrixCase *matrix = ARENA_NEW(&arena, MatrixCase);
    for (int i = 0; i < 6; i++) {
        Scenario scenario;
        scenario_make(i % 2 ? EXPERTS : DENSE, clusters[i / 2],
                      "{\"seq_len\": 1024, \"global_batch\": 96}", NULL, &arena, &scenario);
        if (i < 2) matrix_case(matrix, MATRIX_LOG_NORMAL, 7, 2, &scenario.cluster);
        const int before = seen.num;
        configurations_compare(&scenario, 60, &seen);
        scenario.cluster.network.order = node_order_new(ORDER, 6, &arena);
        configurations_compare(&scenario, 60, &seen);
        CU_ASSERT(seen.num > before + 20);
    }
    CU_ASSERT_EQUAL(seen.num_wrong, 0);
    CU_ASSERT(seen.num_sharded > 0 && seen.num_interleaved > 0);
    arena_free(&arena);
}

// Every stage has its own prices and links on groups of different machines.
static void it_is_so_on_groups_of_different_machines(void) {
    static const char CLUSTER[] =
        "{\"groups\": [{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 8, \"gpus_per_node\": 8, "
        "\"scale_up\": {\"link\": \"nvlink4\"}, \"scale_out\": {\"nics_per_node\": 8, "
        "\"nic_bytes_per_s\": 5e10}}, {\"gpu\": \"a100-sxm-80g\", \"num_gpus\": 16, "
        "\"gpus_per_node\": 4, \"scale_up\": {\"link\": \"nvlink3\"}, \"scale_out\": "
        "{\"nics_per_node\": 2, \"nic_bytes_per_s\": 2.5e10}}], \"between\": {\"bytes_per_s\": "
        "5e9, \"latency_s\": 1e-4}}";
    Seen seen = {0};
    space_compare(DENSE, CLUSTER, TRAINING(""), NULL, 100, &seen);
    space_compare(EXPERTS, CLUSTER, TRAINING(""), NULL, 100, &seen);
    space_compare(DENSE, CLUSTER, TRAINING(", \"stack\": \"runtime\""), "{\"micro_batch\": 1}", 100,
                  &seen);
    CU_ASSERT_EQUAL(seen.num_wrong, 0);
    CU_ASSERT(seen.num > 100);
    const int kinds[] = {seen.num_experts, seen.num_interleaved, seen.num_blocking, seen.num_split,
                         seen.num_uneven,  seen.num_tied,        seen.num_repeating};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) CU_ASSERT(kinds[i] > 5);
}

CU_TestInfo step_time_tests[] = {
    {"it_is_that_of_the_estimate", it_is_that_of_the_estimate},
    {"it_is_so_where_layers_differ", it_is_so_where_layers_differ},
    {"it_is_so_where_links_between_nodes_differ", it_is_so_where_links_between_nodes_differ},
    {"a_long_step_is_its_period_repeated", a_long_step_is_its_period_repeated},
    {"it_is_so_on_groups_of_different_machines", it_is_so_on_groups_of_different_machines},
    CU_TEST_INFO_NULL,
};
