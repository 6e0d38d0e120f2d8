#include "planner/placement/placement.h"

#include "costmodel/network/site_links.h"
#include "costmodel/step/estimate.h"
#include "planner/placement/placement_state.h"
#include "tests/planner/placement_case.h"
#include "tests/planner/planner_case.h"
#include "tests/support.h"

#include <CUnit/CUnit.h>

#include <stdlib.h>

typedef struct {
    Arena arena;
    Scenario scenario;
    Plan plan;
    MatrixCase matrix;
    int groups[2];
} PlacementCase;

// A plan on so many nodes of 8 GPUs with a matrix; stages of so many nodes.
static PlacementCase *case_new(int num_nodes, MatrixKind kind, uint64_t seed, const char *parallel,
                               int stage) {
    PlacementCase *c = calloc(1, sizeof *c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    const char *cluster = arena_printf(&c->arena, "dgx-h100:%d", num_nodes);
    CU_ASSERT_EQUAL_FATAL(
        case_preset("llama-3.1-8b", cluster, 4096, 384, parallel, &c->arena, &c->scenario).code,
        STATUS_OK);
    CU_ASSERT_EQUAL_FATAL(plan_resolve(&c->scenario, &c->arena, &c->plan).code, STATUS_OK);
    matrix_case(&c->matrix, kind, seed, stage, &c->scenario.cluster);
    return c;
}

// The same nodes in two groups, every other node in one of them.
static void case_make_groups(PlacementCase *c, int num_first) {
    ClusterSites *sites = &c->matrix.sites;
    for (int i = 0; i < sites->num_nodes; i++) c->matrix.site_of_node[i] = i >= num_first;
    c->groups[0] = num_first;
    c->groups[1] = sites->num_nodes - num_first;
    for (int i = 0; i < 4; i++) c->matrix.bytes_per_s[i] = 5e10;
    sites->kind = SITE_GROUP;
    sites->num_sites = 2;
    sites->num_nodes_of = c->groups;
    sites->latency_s = 1e-5;
}

static void case_free(PlacementCase *c) {
    arena_free(&c->arena);
    free(c);
}

static double step_of(PlacementCase *c, const int *nodes) {
    const NodeOrder *order =
        nodes ? node_order_new(nodes, c->scenario.cluster.num_nodes, &c->arena) : NULL;
    const Scenario placed = placement_scenario(&c->scenario, order);
    Estimate estimate;
    CU_ASSERT_EQUAL(estimate_plan(&placed, &c->plan, &c->arena, &estimate, NULL).code, STATUS_OK);
    return estimate.step_time_s;
}

static PlacementResult searched(PlacementCase *c, const PlacementOptions *options) {
    PlacementResult result;
    CU_ASSERT_EQUAL_FATAL(
        placement_search(&c->scenario, &c->plan, options, &c->arena, &result).code, STATUS_OK);
    return result;
}

// --- Optima

// Of what the placement changes, the planted optimum is missed by at most 1 %.
static void check_planted(int num_nodes, MatrixKind kind, uint64_t seed, const char *parallel,
                          int stage) {
    PlacementCase *c = case_new(num_nodes, kind, seed, parallel, stage);
    const PlacementResult r = searched(c, &(PlacementOptions){.num_threads = 2});
    const double planted_s = step_of(c, c->matrix.planted) - r.still_step_time_s;
    const double found_s = r.estimate.step_time_s - r.still_step_time_s;
    const double own_s = r.default_step_time_s - r.still_step_time_s;
    CU_ASSERT(planted_s > 0 && own_s > 1.05 * planted_s);
    CU_ASSERT(found_s <= 1.01 * planted_s);
    CU_ASSERT(r.bound_step_time_s <= r.estimate.step_time_s * (1 + 1e-9));
    CU_ASSERT_PTR_NOT_NULL(r.order);
    case_free(c);
}

static void planted_optima_of_16_nodes_are_found(void) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        for (int kind = MATRIX_RACKS; kind <= MATRIX_NEEDLE; kind++) {
            check_planted(16, (MatrixKind)kind, seed, "{\"tp\": 8, \"pp\": 4}", 4);
            check_planted(16, (MatrixKind)kind, seed, "{\"tp\": 8}", 16);
        }
    }
}

static void planted_optima_of_256_nodes_are_found(void) {
    check_planted(256, MATRIX_RACKS, 1, "{\"tp\": 8, \"pp\": 16}", 16);
    check_planted(256, MATRIX_NEEDLE, 2, "{\"tp\": 8, \"pp\": 4}", 64);
}

// The next permutation in lexical order; false after the last.
static bool permute(int *order, int n) {
    int i = n - 2, k = n - 1;
    while (i >= 0 && order[i] > order[i + 1]) i--;
    if (i < 0) return false;
    while (order[k] < order[i]) k--;
    int kept = order[i];
    order[i] = order[k];
    order[k] = kept;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        kept = order[a];
        order[a] = order[b];
        order[b] = kept;
    }
    return true;
}

static void check_exhaustive(PlacementCase *c) {
    const int n = c->scenario.cluster.num_nodes;
    int order[8];
    for (int i = 0; i < n; i++) order[i] = i;
    double best_s = INFINITY;
    do {
        best_s = fmin(best_s, step_of(c, order));
    } while (permute(order, n));
    const PlacementResult r = searched(c, &(PlacementOptions){0});
    CU_ASSERT_DOUBLE_EQUAL(r.estimate.step_time_s, best_s, 1e-9 * best_s);
    CU_ASSERT(r.bound_step_time_s <= best_s * (1 + 1e-9));
    CU_ASSERT(r.still_step_time_s <= r.bound_step_time_s);
    CU_ASSERT_EQUAL(r.default_step_time_s, step_of(c, NULL));
    if (r.order) CU_ASSERT_EQUAL(step_of(c, r.order->node), r.estimate.step_time_s);
}

static void of_few_nodes_the_best_of_all_orders_is_found(void) {
    static const char *const PLANS[] = {
        "{\"tp\": 8, \"pp\": 2}",
        "{\"tp\": 8}",
        "{\"tp\": 4, \"pp\": 6}",
        "{\"tp\": 8, \"pp\": 3, \"vpp\": 2, \"schedule\": \"interleaved\"}",
        "{\"tp\": 8, \"pp\": 2, \"order\": \"tp-cp-ep-pp-dp\"}",
        "{\"tp\": 4, \"pp\": 4, \"order\": \"tp-cp-ep-pp-dp\"}",
        "{\"tp\": 8, \"zero_stage\": 3}",
        "{\"tp\": 8, \"cp\": 2}",
    };
    for (uint64_t seed = 1; seed <= sizeof PLANS / sizeof *PLANS; seed++) {
        const char *plan = PLANS[seed - 1];
        PlacementCase *c = case_new(6, MATRIX_LOG_NORMAL, seed, plan, 3);
        check_exhaustive(c);
        case_free(c);
    }
}

// Two groups of 2 and 4 nodes: stages of 3.
static void groups_are_kept_together(void) {
    PlacementCase *c = case_new(6, MATRIX_LOG_NORMAL, 1, "{\"tp\": 8, \"pp\": 2}", 3);
    case_make_groups(c, 2);
    check_exhaustive(c);
    case_free(c);
}

// 6 nodes on leaves of 4 and 2 with an eighth of their uplinks: a stage of three fits on the first.
static void rings_stay_on_their_leaves(void) {
    PlacementCase *c = case_new(6, MATRIX_LOG_NORMAL, 1, "{\"tp\": 8, \"pp\": 2}", 3);
    c->scenario.cluster.network.sites = NULL;
    test_pool(&c->scenario.cluster)->topology = TOPOLOGY_FAT_TREE;
    CU_ASSERT_STRING_EQUAL(placement_obstacle(&c->scenario),
                           "the links between its nodes are alike");
    test_pool(&c->scenario.cluster)->oversubscription = 8;
    CU_ASSERT_PTR_NULL(placement_obstacle(&c->scenario));
    check_exhaustive(c);
    case_free(c);
}

// --- Laws

static void no_order_is_below_the_bound_nor_the_answer_above_their_own(void) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        PlacementCase *c = case_new(16, MATRIX_LOG_NORMAL, seed, "{\"tp\": 8, \"pp\": 4}", 4);
        const PlacementResult r = searched(c, &(PlacementOptions){.num_moves = 20000});
        CU_ASSERT(r.num_moves <= 20000);
        CU_ASSERT(r.estimate.step_time_s <= r.default_step_time_s);
        CU_ASSERT(r.gap_frac >= 0);
        for (int k = 0; k < 20; k++) {
            int order[16];
            for (int i = 0; i < 16; i++) {
                const int at = (int)case_draw(seed, i, 100 + k, (uint32_t)i + 1);
                order[i] = order[at];
                order[at] = i;
            }
            CU_ASSERT(step_of(c, order) >= r.bound_step_time_s * (1 - 1e-9));
        }
        case_free(c);
    }
}

static void check_same(const PlacementResult *a, const PlacementResult *b, int num_nodes) {
    CU_ASSERT_EQUAL(a->estimate.step_time_s, b->estimate.step_time_s);
    CU_ASSERT_EQUAL(a->num_moves, b->num_moves);
    CU_ASSERT_EQUAL_FATAL(a->order == NULL, b->order == NULL);
    for (int i = 0; a->order && i < num_nodes; i++)
        CU_ASSERT_EQUAL(a->order->node[i], b->order->node[i]);
}

static void threads_change_nothing_and_a_seed_says_all(void) {
    PlacementCase *c = case_new(16, MATRIX_LOG_NORMAL, 3, "{\"tp\": 8, \"pp\": 4}", 4);
    const PlacementOptions options = {.seed = 5, .num_moves = 40000};
    const PlacementResult one = searched(c, &options);
    for (int threads = 1; threads <= 4; threads++) {
        PlacementOptions more = options;
        more.num_threads = threads;
        const PlacementResult other = searched(c, &more);
        check_same(&one, &other, 16);
    }
    case_free(c);
}

// --- The state

static void check_state(const PlacementState *state, PlacementState *fresh) {
    placement_state_reset(fresh, state->model, state->node_of_block);
    const PlacementCost a = placement_cost(state), b = placement_cost(fresh);
    CU_ASSERT_DOUBLE_EQUAL(a.step_s, b.step_s, 1e-9 * b.step_s);
    CU_ASSERT_DOUBLE_EQUAL(a.guide_s, b.guide_s, 1e-9 * b.guide_s);
    for (int i = 0; i < state->links->num_traffics; i++)
        CU_ASSERT_DOUBLE_EQUAL(state->most[i], fresh->most[i], 1e-9 * fresh->most[i]);
}

// Moves of 3 blocks, every second of them undone. What each traffic takes is what the estimator
// says of it.
static void check_moves(PlacementCase *c) {
    const int n = c->scenario.cluster.num_nodes;
    Arena *arena = &c->arena;
    const Workload workload = workload_build(&c->scenario, &c->plan, arena);
    const Program program = program_build(&c->scenario, &c->plan, &workload, arena);
    const PlacementLinks links = placement_links(&c->scenario, &c->plan, &program, arena);
    PlacementModel model = {.num_traffics = links.num_traffics, .num_planes = 2, .base_s = {1, 2}};
    for (int k = 0; k < 2; k++) {
        model.slope_s[k] = ARENA_ARRAY(arena, links.num_traffics, double);
        for (int i = 0; i < links.num_traffics; i++)
            model.slope_s[k][i] = (double)case_draw(9, i, k, 100);
    }
    PlacementState state = placement_state(&links, &model, c->matrix.planted, arena);
    PlacementState fresh = placement_state(&links, &model, c->matrix.planted, arena);
    for (int move = 0; move < 200; move++) {
        const int a = (int)case_draw(1, move, 0, (uint32_t)n), b = (a + 1) % n, d = (a + 2) % n;
        const int node = state.node_of_block[a];
        placement_begin(&state);
        placement_put(&state, a, state.node_of_block[b]);
        placement_put(&state, b, state.node_of_block[d]);
        placement_put(&state, d, node);
        placement_end(&state);
        check_state(&state, &fresh);
        if (move % 2) placement_undo(&state);
        check_state(&state, &fresh);
    }
    Cluster placed = c->scenario.cluster;
    placed.network.order = node_order_new(state.node_of_block, n, arena);
    for (int i = 0; i < links.num_traffics; i++)
        CU_ASSERT_DOUBLE_EQUAL(
            state.most[i],
            fmax(links.traffics[i].floor, traffic_slowdown(&placed, &links.traffics[i].traffic)),
            1e-9 * state.most[i]);
}

static void a_move_costs_what_the_whole_says(void) {
    static const char *const PLANS[] = {
        "{\"tp\": 8, \"pp\": 4}", "{\"tp\": 4, \"cp\": 4, \"pp\": 2}", "{\"tp\": 4, \"pp\": 8}",
        "{\"tp\": 4, \"pp\": 8, \"order\": \"tp-cp-ep-pp-dp\"}"};
    for (int plan = 0; plan < 4; plan++) {
        for (int groups = 0; groups < 2; groups++) {
            PlacementCase *c = case_new(16, MATRIX_LOG_NORMAL, 1, PLANS[plan], 4);
            if (groups) case_make_groups(c, 5);
            check_moves(c);
            case_free(c);
        }
    }
}

// --- Where there is nothing to place

static void obstacles_are_named(void) {
    PlacementCase *c = case_new(4, MATRIX_LOG_NORMAL, 1, "{\"tp\": 8, \"pp\": 2}", 2);
    Scenario other = c->scenario;
    CU_ASSERT_PTR_NULL(placement_obstacle(&other));
    other.parallel.num_placement = 4;
    CU_ASSERT_STRING_EQUAL(placement_obstacle(&other), "the scenario states the placement");
    other = c->scenario;
    other.cluster.network.sites = NULL;
    CU_ASSERT_STRING_EQUAL(placement_obstacle(&other), "the links between its nodes are alike");
    other = c->scenario;
    test_pool(&other.cluster)->domain_gpus = 16;
    CU_ASSERT_STRING_EQUAL(placement_obstacle(&other), "its scale-up domains span nodes");
    other = c->scenario;
    const Pool two[2] = {c->scenario.cluster.pools[0], c->scenario.cluster.pools[0]};
    other.cluster = cluster_of_pools("two", two, 2, &c->scenario.cluster.network);
    CU_ASSERT_STRING_EQUAL(placement_obstacle(&other), "its groups are of different machines");
    case_free(c);
}

// All pairs as fast as the NICs: the nodes' own order is as good as any, without a move.
static void an_even_matrix_needs_no_move(void) {
    PlacementCase *c = case_new(8, MATRIX_LOG_NORMAL, 1, "{\"tp\": 8, \"pp\": 2}", 4);
    for (int i = 0; i < 64; i++) c->matrix.bytes_per_s[i] = 1e12;
    const PlacementResult r = searched(c, &(PlacementOptions){0});
    CU_ASSERT_PTR_NULL(r.order);
    CU_ASSERT_EQUAL(r.num_moves, 0);
    CU_ASSERT_EQUAL(r.estimate.step_time_s, r.default_step_time_s);
    case_free(c);
}

CU_TestInfo placement_tests[] = {
    {"planted_optima_of_16_nodes_are_found", planted_optima_of_16_nodes_are_found},
    {"planted_optima_of_256_nodes_are_found", planted_optima_of_256_nodes_are_found},
    {"of_few_nodes_the_best_of_all_orders_is_found", of_few_nodes_the_best_of_all_orders_is_found},
    {"groups_are_kept_together", groups_are_kept_together},
    {"rings_stay_on_their_leaves", rings_stay_on_their_leaves},
    {"no_order_is_below_the_bound_nor_the_answer_above_their_own",
     no_order_is_below_the_bound_nor_the_answer_above_their_own},
    {"threads_change_nothing_and_a_seed_says_all", threads_change_nothing_and_a_seed_says_all},
    {"a_move_costs_what_the_whole_says", a_move_costs_what_the_whole_says},
    {"obstacles_are_named", obstacles_are_named},
    {"an_even_matrix_needs_no_move", an_even_matrix_needs_no_move},
    CU_TEST_INFO_NULL,
};
