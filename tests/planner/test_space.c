#include "planner/space/space.h"

#include "plan/plan_orders.h"
#include "tests/planner/space_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>
#include <string.h>

static int num_repeated(const SpaceWalk *walk) {
    int repeated = 0;
    for (int i = 1; i < walk->num_keys; i++)
        repeated += strcmp(walk->keys[i - 1], walk->keys[i]) == 0;
    return repeated;
}

static void every_configuration_is_legal_and_comes_once(void) {
    for (int number = 0; number < 40; number++) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        const SpaceWalk *walk = space_walk(&scenario, &arena);
        CU_ASSERT(walk->num_keys > 0);
        CU_ASSERT_EQUAL(walk->num_illegal, 0);
        CU_ASSERT_EQUAL(num_repeated(walk), 0);
        CU_ASSERT_EQUAL(walk->num_out_of_order, 0);
        arena_free(&arena);
    }
}

// Counts the plans with default chunks by trying every number in every field, in the words of
// planner/space/space.h; the stack `runtime` has no rules of its own.
static int count_layers(const Scenario *s, const Plan *p) {
    if (p->recompute == RECOMPUTE_NONE) return 1;
    const PlanChunk *even;
    Arena arena = {0};
    int most = 0;
    Status status = plan_default_chunks(&s->model, plan_num_stages(p), &arena, &even);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    for (int rank = 0; rank < p->pp; rank++) {
        int num_layers = 0;
        for (int c = 0; c < p->pp * p->vpp; c++)
            if (plan_chunk_rank(p, c) == rank)
                num_layers += even[c % plan_num_stages(p)].num_layers;
        if (num_layers > most) most = num_layers;
    }
    arena_free(&arena);
    return most > 0 ? most : 1; // 1 to one less than all, and all
}

static int count_groups(const Plan *p) {
    int count = 0;
    for (int group = 2; group <= p->dp * p->cp; group++) count += p->dp * p->cp % group == 0;
    return p->zero_stage == 0 || count == 0 ? 1 : count;
}

static int count_options(const Scenario *s, Plan *p) {
    int count = 0;
    bool alone =
        p->dp * p->cp == 1 && (model_ffn(&s->model)->num_experts == 0 || p->expert_dp == 1);
    for (p->recompute = 0; p->recompute < NUM_RECOMPUTES; p->recompute++)
        for (p->zero_stage = 0; p->zero_stage <= 3; p->zero_stage++)
            for (int kind = 0; kind < NUM_SCHEDULES; kind++)
                for (int method = 0; method < NUM_CP_METHODS; method++) {
                    p->schedule = (ScheduleKind)kind;
                    p->cp_method = (CpMethod)method;
                    if (!schedule_find(p->schedule)) continue;
                    if (p->cp == 1 && method != CP_RING) continue;
                    if (alone && p->zero_stage != s->execution.stack.defaults.default_zero_stage)
                        continue;
                    bool one_order = p->vpp == 1 && (p->pp == 1 || p->num_microbatches == 1);
                    if (one_order && kind != SCHEDULE_1F1B) continue;
                    bool alternates =
                        kind == SCHEDULE_INTERLEAVED || kind == SCHEDULE_BREADTH_FIRST;
                    if (alternates && p->vpp == 1) continue;
                    if (plan_check(s, p).code == STATUS_OK)
                        count += count_groups(p) * count_layers(s, p);
                }
    return count;
}

static int count_chunks(const Scenario *s, Plan *p) {
    int count = 0, layers = s->model.num_layers;
    // Of the two chunks of dual pipelines one is a copy.
    for (p->vpp = 1; p->vpp <= 2 || p->vpp * p->pp <= layers + 2; p->vpp++) {
        int chunks = p->vpp * p->pp;
        if (p->vpp > 1 && p->pp == 1) continue;
        if (p->vpp > SPACE_MAX_UNEVEN_VPP && layers % chunks && (layers + 2) % chunks) continue;
        p->num_chunks = chunks;
        for (p->micro_batch = 1; p->micro_batch <= SPACE_MAX_MICRO_BATCH; p->micro_batch++) {
            if (s->training.global_batch % (p->dp * p->micro_batch) != 0) continue;
            plan_derive(s, p);
            count += count_options(s, p);
        }
    }
    return count;
}

// Of the orders both where stages that alternate are elsewhere: not in one domain, which these
// networks have no switchless ones of, and not where tp fills it; with cp only where it is stated.
static int count_orders(const Scenario *s, Plan *p) {
    const bool alike = p->pp == 1 || p->dp == 1 || p->cp > 1 ||
                       s->cluster.num_gpus == s->cluster.pools[0].domain_gpus ||
                       p->tp % s->cluster.pools[0].domain_gpus == 0;
    int count = 0;
    for (int order = 0; order < (alike ? 1 : NUM_PLAN_ORDERS); order++) {
        p->order = (PlanOrder)order;
        count += count_chunks(s, p);
    }
    return count;
}

static int count_from(const Scenario *s, Plan *p) {
    int count = 0, n = s->cluster.num_gpus;
    for (p->tp = 1; p->tp <= s->cluster.pools[0].domain_gpus; p->tp++)
        for (p->pp = 1; p->pp <= n; p->pp++)
            for (p->cp = 1; p->cp <= n; p->cp++) {
                if (n % (p->tp * p->pp * p->cp) != 0) continue;
                if (p->cp > 1 && s->training.seq_len / p->cp < SPACE_MIN_CP_TOKENS) continue;
                p->dp = n / (p->tp * p->pp * p->cp);
                if (s->training.global_batch % p->dp != 0) continue;
                p->zero_group = p->dp * p->cp;
                p->sequence_parallel = plan_splits_sequence(s, p->tp);
                for (p->ep = 1; p->ep <= n; p->ep++)
                    for (p->etp = 1; p->etp <= s->cluster.pools[0].domain_gpus; p->etp++)
                        if (p->tp * p->cp * p->dp % (p->ep * p->etp) == 0)
                            count += count_orders(s, p);
            }
    return count;
}

static void nothing_legal_is_left_out(void) {
    int num_cases = 0;
    for (int number = 0; number < 60; number++) {
        Arena arena = {0};
        Scenario scenario;
        Status status = case_scenario(number, &arena, &scenario);
        CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
        if (strcmp(scenario.execution.stack.name, "runtime") == 0) {
            Plan plan = {.recompute_layers = ABSENT};
            CU_ASSERT_EQUAL(space_walk(&scenario, &arena)->num_default_chunks,
                            count_from(&scenario, &plan));
            num_cases++;
        }
        arena_free(&arena);
    }
    CU_ASSERT(num_cases > 10);
}

static double step_time_of(const char *cluster, const char *degrees, const char *order) {
    Arena arena = {0};
    Scenario scenario;
    Plan plan;
    Estimate estimate;
    const char *parallel = arena_printf(&arena, "{%s, \"order\": \"tp-cp-ep-%s\"}", degrees, order);
    Status status = case_preset("llama-3.1-8b", cluster, 4096, 576, parallel, &arena, &scenario);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&scenario, &arena, &plan).code, STATUS_OK);
    status = estimate_plan(&scenario, &plan, &arena, &estimate, NULL);
    CU_ASSERT_EQUAL_FATAL(status.code, STATUS_OK);
    arena_free(&arena);
    return estimate.step_time_s;
}

// Inside one domain, with tp that fills domains, without a pipeline and with one replica.
static void an_order_that_is_left_out_makes_no_difference(void) {
    static const char *const ALIKE[][2] = {
        {"dgx-h100:1", "\"tp\": 2, \"pp\": 2"}, {"gb200-nvl72:1", "\"tp\": 2, \"pp\": 4"},
        {"dgx-h100:4", "\"tp\": 8, \"pp\": 2"}, {"dgx-h100:4", "\"tp\": 2, \"cp\": 2, \"pp\": 1"},
        {"dgx-h100:2", "\"tp\": 2, \"pp\": 8"},
    };
    for (size_t i = 0; i < sizeof ALIKE / sizeof *ALIKE; i++)
        CU_ASSERT_EQUAL(step_time_of(ALIKE[i][0], ALIKE[i][1], "pp-dp"),
                        step_time_of(ALIKE[i][0], ALIKE[i][1], "dp-pp"));
    CU_ASSERT(step_time_of("dgx-h100:4", "\"tp\": 4, \"pp\": 2", "pp-dp") !=
              step_time_of("dgx-h100:4", "\"tp\": 4, \"pp\": 2", "dp-pp"));
}

// Domains of two GPUs in a node of eight with two NICs: which stages share one depends on the
// order, though tp fills the domains, and the search has both.
static void domains_that_share_nics_are_not_alike(void) {
    Arena arena = {0};
    Scenario scenario;
    PlannerResult found;
    const char *cluster = "{\"gpu\": \"h100-sxm-80g\", \"num_gpus\": 16, \"gpus_per_node\": 8, "
                          "\"scale_up\": {\"link\": \"nvlink4\", \"domain_gpus\": 2}, "
                          "\"scale_out\": {\"nics_per_node\": 2, \"nic_bytes_per_s\": 5e10, "
                          "\"topology\": \"fat-tree\"}}";
    const char *text =
        scenario_text(&arena, "\"llama-3.1-8b\"", cluster,
                      "{\"seq_len\": 4096, \"global_batch\": 64}", "{\"tp\": 2, \"pp\": 4}");
    const PlannerOptions options = {.top = 1};
    CU_ASSERT_EQUAL_FATAL(scenario_of(text, &arena, &scenario).code, STATUS_OK);
    CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &found).code, STATUS_OK);
    const double free_s = found.entries[0].estimate.step_time_s;
    double stated_s[NUM_PLAN_ORDERS];
    for (int order = 0; order < NUM_PLAN_ORDERS; order++) {
        scenario.parallel.order = PLAN_ORDER_NAMES[order];
        CU_ASSERT_EQUAL(planner_search(&scenario, &options, &arena, &found).code, STATUS_OK);
        stated_s[order] = found.entries[0].estimate.step_time_s;
    }
    CU_ASSERT(stated_s[ORDER_PP_DP] < stated_s[ORDER_DP_PP]);
    CU_ASSERT_EQUAL(free_s, stated_s[ORDER_PP_DP]);
    arena_free(&arena);
}

static void what_is_given_is_kept(void) {
    static const char *const GIVEN[] = {
        "{\"tp\": 4}",
        "{\"tp\": 16}", // beyond the scale-up domain
        "{\"pp\": 4}",
        "{\"vpp\": 2}",
        "{\"dp\": 2, \"cp\": 2}",
        "{\"micro_batch\": 2, \"recompute\": \"full\"}",
        "{\"zero_stage\": 2}",
        "{\"zero_stage\": 1, \"zero_group\": 4}",
        "{\"recompute\": \"full\", \"recompute_layers\": 3}",
        "{\"zero_stage\": 3, \"pp\": 2}",
        "{\"schedule\": \"gpipe\"}",
        "{\"order\": \"tp-cp-ep-pp-dp\"}",
        "{\"schedule\": \"dualpipe\"}",
        "{\"schedule\": \"interleaved\", \"vpp\": 4}",
        "{\"cp_method\": \"all-gather\"}",
        "{\"sequence_parallel\": false}",
        "{\"pp\": 2, \"stages\": " SPACE_CASE_STAGES "}",
    };
    for (size_t i = 0; i < sizeof GIVEN / sizeof *GIVEN; i++) {
        Arena arena = {0};
        const SpaceWalk *walk = space_walk_given(GIVEN[i], &arena);
        CU_ASSERT(walk->num_keys > 0);
        CU_ASSERT_EQUAL(walk->num_not_kept, 0);
        arena_free(&arena);
    }
}

static void given_stages_are_the_only_chunks(void) {
    Arena arena = {0};
    const SpaceWalk *walk = space_walk_given("{\"stages\": " SPACE_CASE_STAGES "}", &arena);
    CU_ASSERT(walk->num_keys > 0);
    for (int i = 0; i < walk->num_keys; i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(walk->keys[i], "chunks 15 17"));
    arena_free(&arena);
}

CU_TestInfo space_tests[] = {
    {"every_configuration_is_legal_and_comes_once", every_configuration_is_legal_and_comes_once},
    {"nothing_legal_is_left_out", nothing_legal_is_left_out},
    {"domains_that_share_nics_are_not_alike", domains_that_share_nics_are_not_alike},
    {"an_order_that_is_left_out_makes_no_difference",
     an_order_that_is_left_out_makes_no_difference},
    {"what_is_given_is_kept", what_is_given_is_kept},
    {"given_stages_are_the_only_chunks", given_stages_are_the_only_chunks},
    CU_TEST_INFO_NULL,
};
