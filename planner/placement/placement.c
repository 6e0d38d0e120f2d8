#include "planner/placement/placement.h"

#include "base/share.h"
#include "config/cluster/leaves.h"
#include "planner/placement/placement_anneal.h"
#include "planner/placement/placement_bound.h"
#include "planner/placement/placement_start.h"

#include <math.h>
#include <string.h>

// The first chains begin at placements that were built, and stay cooler.
enum { NUM_CHAINS = 4, MAX_ROUNDS = 12, NUM_IDLE_ROUNDS = 2 };

// Moves of all chains for each node, at most: a few seconds of two cores for 256 nodes.
static const int64_t MOVES_PER_NODE = 12000;

static const double BUILT_HEAT = 0.05;

// How far the model may be below the estimator, and steps from each other, to be the same.
static const double SAME_FRAC = 1e-9;

static bool has_scarce_leaves(Machines machines) {
    const Leaves leaves = machines_leaves(machines);
    return machines.pool->oversubscription > 1 && leaves_exist(&leaves) &&
           leaves_block_of_node(&leaves, machines.pool->num_nodes - 1) > 0;
}

const char *placement_obstacle(const Scenario *scenario) {
    const Cluster *cluster = &scenario->cluster;
    if (scenario->parallel.num_placement > 0) return "the scenario states the placement";
    if (cluster->num_pools > 1) return "its groups are of different machines";
    if (!cluster->network.sites && !has_scarce_leaves(cluster_machines(cluster, 0)))
        return "the links between its nodes are alike";
    const Pool *pool = cluster_only_pool(cluster);
    if (pool->domain_gpus > pool->gpus_per_node) return "its scale-up domains span nodes";
    return NULL;
}

Scenario placement_scenario(const Scenario *scenario, const NodeOrder *order) {
    Scenario placed = *scenario;
    placed.cluster.network.order = order;
    return placed;
}

// --- Rounds

typedef struct {
    PlacementState state;
    int *best; // [num_nodes]
    PlacementCost cost;
    int64_t num_moves;
} Chain;

typedef struct {
    PlacementPricer pricer;
    PlacementModel model;
    Chain chains[NUM_CHAINS];
    AnnealOptions anneal; // of every chain
    int *best;            // [num_nodes] priced
    double best_s, bound_s;
    int64_t num_moves;
    Arena *arena;
} Search;

static void chain_build(void *context, int worker, int item) {
    (void)worker;
    Search *s = context;
    placement_start(s->pricer.links, &s->model, (PlacementBuild)item, s->anneal.seed,
                    s->chains[item].best);
}

static void chain_run(void *context, int worker, int item) {
    (void)worker;
    Search *s = context;
    Chain *chain = &s->chains[item];
    AnnealOptions options = s->anneal;
    options.chain = (uint32_t)item;
    if (item < NUM_BUILDS) options.heat *= BUILT_HEAT;
    chain->num_moves = placement_anneal(&options, &chain->state, chain->best, &chain->cost);
}

// Seconds of the step where a chain's best stands: its slowdowns, priced.
static double chain_price(Search *s, const Chain *chain) {
    const double step_s = placement_step_s(&s->pricer, chain->state.most);
    if (step_s > chain->cost.step_s * (1 + SAME_FRAC))
        placement_add_plane(&s->pricer, chain->state.most, s->arena, &s->model);
    if (step_s < s->best_s) {
        s->best_s = step_s;
        memcpy(s->best, chain->best, (size_t)s->pricer.links->num_blocks * sizeof *s->best);
    }
    return step_s;
}

// One after the other, each from where it stands or, where it fell behind, from the best.
static void chains_meet(Search *s) {
    double step_s[NUM_CHAINS];
    for (int i = 0; i < NUM_CHAINS; i++) {
        step_s[i] = chain_price(s, &s->chains[i]);
        s->num_moves += s->chains[i].num_moves;
    }
    for (int i = 0; i < NUM_CHAINS; i++)
        placement_state_reset(&s->chains[i].state, &s->model,
                              step_s[i] > s->best_s * 1.01 ? s->best : s->chains[i].best);
}

static bool ends_soon(const PlacementOptions *options) {
    return options->end_soon && atomic_load_explicit(options->end_soon, memory_order_relaxed);
}

static void rounds_run(Search *s, int64_t num_moves, const PlacementOptions *options) {
    const double enough_s = s->bound_s * (1 + SAME_FRAC);
    const int64_t round_moves = num_moves / 4 / NUM_CHAINS;
    int num_idle = 0;
    s->anneal.enough_s = enough_s;
    for (uint32_t round = 0; round < MAX_ROUNDS && s->best_s > enough_s; round++) {
        const int64_t left = (num_moves - s->num_moves) / NUM_CHAINS;
        s->anneal.round = round;
        s->anneal.num_moves = left < round_moves ? left : round_moves;
        s->anneal.heat = round == 0 ? 1 : 0.2;
        if (s->anneal.num_moves < 1 || ends_soon(options)) break;
        const double before_s = s->best_s;
        const int num_planes = s->model.num_planes;
        share_work(NUM_CHAINS, options->num_threads, chain_run, s);
        chains_meet(s);
        const bool learned = s->model.num_planes > num_planes;
        num_idle = s->best_s < before_s * (1 - SAME_FRAC) || learned ? 0 : num_idle + 1;
        if (num_idle == NUM_IDLE_ROUNDS) break;
    }
}

// --- The whole

// Without traffic that the step does not depend on, however slow it is.
static PlacementLinks links_that_matter(const PlacementPricer *pricer, Arena *arena) {
    const PlacementLinks *all = pricer->links;
    bool *keep = ARENA_ARRAY(arena, all->num_traffics, bool);
    double *slow = ARENA_ARRAY(arena, all->num_traffics, double);
    for (int i = 0; i < all->num_traffics; i++) slow[i] = 1;
    const double step_s = placement_step_s(pricer, slow);
    for (int i = 0; i < all->num_traffics; i++) {
        slow[i] = 1e6;
        keep[i] = placement_step_s(pricer, slow) > step_s;
        slow[i] = 1;
    }
    return placement_links_of(all, keep, arena);
}

// At placements that were built and in the nodes' own order, all of them priced.
static void chains_start(Search *s, int num_threads) {
    const PlacementLinks *links = s->pricer.links;
    int *order = ARENA_ARRAY(s->arena, links->num_blocks, int);
    for (int i = 0; i < links->num_blocks; i++) order[i] = i;
    s->best = ARENA_ARRAY(s->arena, links->num_blocks, int);
    memcpy(s->best, order, (size_t)links->num_blocks * sizeof *order);
    for (int i = 0; i < NUM_CHAINS; i++) {
        s->chains[i].best = ARENA_ARRAY(s->arena, links->num_blocks, int);
        s->chains[i].state = placement_state(links, &s->model, order, s->arena);
    }
    s->best_s = placement_step_s(&s->pricer, s->chains[0].state.most);
    placement_add_plane(&s->pricer, s->chains[0].state.most, s->arena, &s->model);
    share_work(NUM_BUILDS, num_threads, chain_build, s);
    for (int i = 0; i < NUM_CHAINS; i++) {
        Chain *chain = &s->chains[i];
        if (i >= NUM_BUILDS) memcpy(chain->best, order, (size_t)links->num_blocks * sizeof *order);
        placement_state_reset(&chain->state, &s->model, chain->best);
        chain->cost = placement_cost(&chain->state);
    }
    chains_meet(s);
}

static void bound_find(Search *s, PlacementResult *out) {
    const int num = s->pricer.links->num_traffics;
    double *slow = ARENA_ARRAY(s->arena, num, double);
    out->still_step_time_s = placement_step_s(&s->pricer, slow);
    s->bound_s = placement_bound_s(&s->pricer, slow);
    placement_add_plane(&s->pricer, slow, s->arena, &s->model); // at what the bound supposes
    out->bound_step_time_s = s->bound_s;
}

// Blocks of ranks that are a stage, or its neighbours in it; all of them where stages share nodes.
static int stage_blocks(const Cluster *cluster, const Plan *plan) {
    const int64_t num_gpus = plan_block_gpus(plan);
    const int node_gpus = cluster_only_pool(cluster)->gpus_per_node;
    return num_gpus % node_gpus ? cluster->num_nodes : (int)(num_gpus / node_gpus);
}

// The estimator has the last word: between groups it knows of latencies as well.
static Status result_price(const Scenario *scenario, const Plan *plan, const Search *s,
                           Arena *arena, PlacementResult *out) {
    Estimate own;
    TRY(estimate_plan(scenario, plan, arena, &own, NULL));
    out->default_step_time_s = own.step_time_s;
    out->plan = *plan;
    out->estimate = own;
    const NodeOrder *order = node_order_new(s->best, scenario->cluster.num_nodes, arena);
    const Scenario placed = placement_scenario(scenario, order);
    Plan moved = *plan;
    plan_derive(&placed, &moved);
    Estimate estimate;
    TRY(estimate_plan(&placed, &moved, arena, &estimate, NULL));
    if (estimate.step_time_s < own.step_time_s * (1 - SAME_FRAC)) {
        out->order = order;
        out->plan = moved;
        out->estimate = estimate;
    }
    out->gap_frac = fmax(0, out->estimate.step_time_s / out->bound_step_time_s - 1);
    return status_ok();
}

Status placement_search(const Scenario *scenario, const Plan *plan, const PlacementOptions *options,
                        Arena *arena, PlacementResult *out) {
    Arena scratch = {0}, prices = {0};
    *out = (PlacementResult){.num_nodes = scenario->cluster.num_nodes};
    const Workload workload = workload_build(scenario, plan, &scratch);
    const Program program = program_build(scenario, plan, &workload, &scratch);
    const PlacementLinks all = placement_links(scenario, plan, &program, &scratch);
    PlacementLinks links;
    Search s = {
        .pricer = {scenario, plan, &workload, &program, &all, &prices},
        .anneal = {.seed = options->seed, .stage_blocks = stage_blocks(&scenario->cluster, plan)},
        .arena = &scratch};
    links = links_that_matter(&s.pricer, &scratch);
    s.pricer.links = &links;
    s.model.num_traffics = links.num_traffics;
    bound_find(&s, out);
    if (links.num_traffics > 0) chains_start(&s, options->num_threads);
    const int64_t moves =
        options->num_moves ? options->num_moves : MOVES_PER_NODE * links.num_blocks;
    if (links.num_traffics > 0) rounds_run(&s, moves, options);
    out->num_moves = s.num_moves;
    const Status status = result_price(scenario, plan, &s, arena, out);
    arena_free(&prices);
    arena_free(&scratch);
    return status;
}
