#include "planner/space/space.h"

#include "config/model/model_front.h"
#include "planner/space/space_rules.h"

#include <string.h>

typedef struct {
    const Scenario *scenario;
    RuleLevels rules;
    Plan plan;             // what is decided of a layout
    PlanOrder given_order; // or the default
    Arena *arena;
    SpaceSplit *splits;
    int num_splits, capacity;
} SplitList;

static bool may_be(int given, int value) {
    return given == ABSENT || given == value;
}

// Of the pools' the smallest.
static int domain_gpus(const Cluster *cluster) {
    int least = cluster->pools[0].domain_gpus;
    for (int i = 1; i < cluster->num_pools; i++)
        if (cluster->pools[i].domain_gpus < least) least = cluster->pools[i].domain_gpus;
    return least;
}

static void split_add(SplitList *list, SpaceSplit split) {
    if (list->num_splits == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 64;
        SpaceSplit *grown = ARENA_ARRAY(list->arena, capacity, SpaceSplit);
        if (list->num_splits) memcpy(grown, list->splits, (size_t)list->num_splits * sizeof *grown);
        list->splits = grown;
        list->capacity = capacity;
    }
    list->splits[list->num_splits++] = split;
}

// Whether stages that alternate are elsewhere in the network than others: with all GPUs in one
// domain, and with tp that fills domains, they are as near to one another; but domains of a node
// may share its NICs.
static bool order_matters(Machines machines, int tp) {
    const Pool *pool = machines.pool;
    if (machines.network->sites || pool->wires || pool->oversubscription > 1) return true;
    if (pool->num_gpus <= pool->domain_gpus) return false;
    return tp % pool->domain_gpus != 0 ||
           (pool->domain_gpus < pool->gpus_per_node && pool->nics_per_node < pool->gpus_per_node);
}

static bool stages_may_alternate(const SplitList *list, const SpaceSplit *split) {
    const Cluster *cluster = &list->scenario->cluster;
    if (cluster->num_pools > 1 || split->pp == 1 || split->dp == 1 || split->cp > 1) return false;
    return order_matters(cluster_machines(cluster, 0), split->tp);
}

static void order_add(SplitList *list, SpaceSplit split, PlanOrder order) {
    split.order = list->plan.order = order;
    if (rule_levels_enter(&list->rules, list->scenario, &list->plan, RULE_GROUP_LAYOUT))
        split_add(list, split);
}

static void add_orders(SplitList *list, SpaceSplit split) {
    list->plan.ep = split.ep;
    list->plan.etp = split.etp;
    if (!rule_levels_enter(&list->rules, list->scenario, &list->plan, RULE_GROUP_EXPERTS)) return;
    order_add(list, split, list->given_order);
    if (!list->scenario->parallel.order && stages_may_alternate(list, &split))
        order_add(list, split, ORDER_PP_DP);
}

static void add_experts(SplitList *list, SpaceSplit split) {
    const Scenario *scenario = list->scenario;
    const ParallelSpec *spec = &scenario->parallel;
    int num_experts = model_ffn(&scenario->model)->num_experts,
        domain = domain_gpus(&scenario->cluster);
    int64_t ranks = (int64_t)split.tp * split.cp * split.dp;
    int most_ep = num_experts ? num_experts : 1, most_etp = num_experts ? domain : 1;
    if (spec->ep != ABSENT) most_ep = spec->ep;
    if (spec->etp != ABSENT) most_etp = spec->etp;
    for (split.ep = 1; split.ep <= most_ep && split.ep <= ranks; split.ep++) {
        if (!may_be(spec->ep, split.ep) || ranks % split.ep != 0) continue;
        if (num_experts && num_experts % split.ep != 0) continue;
        for (split.etp = 1; split.etp <= most_etp && split.ep * split.etp <= ranks; split.etp++)
            if (may_be(spec->etp, split.etp) && ranks / split.ep % split.etp == 0)
                add_orders(list, split);
    }
}

// Encoder and decoder stand on one stage, and no cp cuts their sequences (plan_check).
static bool has_encoder(const Model *model) {
    return model->front && model->front->kind == FRONT_ENCODER;
}

static bool cp_is_open(const SplitList *list, int cp) {
    const Scenario *scenario = list->scenario;
    int given = scenario->parallel.cp;
    if (given != ABSENT) return given == cp;
    if (cp > 1 && has_encoder(&scenario->model)) return false;
    return cp == 1 || scenario->training.seq_len / cp >= SPACE_MIN_CP_TOKENS;
}

static bool tp_is_open(const SplitList *list, int tp) {
    int given = list->scenario->parallel.tp;
    if (given != ABSENT) return given == tp;
    return tp <= domain_gpus(&list->scenario->cluster);
}

static bool pp_is_open(const SplitList *list, int pp) {
    int given = list->scenario->parallel.pp;
    if (given != ABSENT) return given == pp;
    return pp == 1 || !has_encoder(&list->scenario->model);
}

static void add_replicas(SplitList *list, int replicas) {
    const Scenario *scenario = list->scenario;
    Plan *plan = &list->plan;
    for (int cp = 1; cp <= replicas; cp++) {
        if (replicas % cp != 0 || !cp_is_open(list, cp)) continue;
        plan->cp = cp;
        plan->dp = replicas / cp;
        if (!may_be(scenario->parallel.dp, plan->dp)) continue;
        if (scenario->training.global_batch % plan->dp != 0) continue;
        if (rule_levels_enter(&list->rules, scenario, plan, RULE_GROUP_REPLICAS))
            add_experts(list,
                        (SpaceSplit){.tp = plan->tp, .pp = plan->pp, .cp = cp, .dp = plan->dp});
    }
}

void space_build(const Scenario *scenario, Arena *arena, Space *out) {
    RulesInForce *rules = ARENA_NEW(arena, RulesInForce);
    rules_in_force(scenario, rules);
    SplitList *list = ARENA_NEW(arena, SplitList);
    list->scenario = scenario;
    list->arena = arena;
    list->plan.reshard_after_forward = scenario->parallel.reshard_after_forward != 0;
    rule_levels_start(rules, &list->rules);
    if (plan_order_find(scenario, &list->given_order).code != STATUS_OK)
        list->given_order = ORDER_DP_PP;
    const int num_gpus = rules->never ? 0 : scenario->cluster.num_gpus;
    const int most_pp = model_own_layers(&scenario->model) + 2;
    for (int tp = 1; tp <= num_gpus; tp++) {
        if (num_gpus % tp != 0 || !tp_is_open(list, tp)) continue;
        list->plan.tp = tp;
        list->plan.sequence_parallel = plan_splits_sequence(scenario, tp);
        if (!rule_levels_enter(&list->rules, scenario, &list->plan, RULE_GROUP_TP)) continue;
        for (int pp = 1; pp <= num_gpus / tp && pp <= most_pp; pp++) {
            if (num_gpus / tp % pp != 0 || !pp_is_open(list, pp)) continue;
            list->plan.pp = pp;
            if (rule_levels_enter(&list->rules, scenario, &list->plan, RULE_GROUP_PP))
                add_replicas(list, num_gpus / tp / pp);
        }
    }
    *out = (Space){.scenario = scenario,
                   .rules = rules,
                   .splits = list->splits,
                   .num_splits = list->num_splits};
}

const Scenario *space_narrow(const Scenario *scenario, bool reshards, Arena *arena) {
    Scenario *one = ARENA_NEW(arena, Scenario);
    *one = *scenario;
    if (!one->parallel.order) one->parallel.order = PLAN_ORDER_NAMES[ORDER_DP_PP];
    if (one->parallel.reshard_after_forward == ABSENT)
        one->parallel.reshard_after_forward = reshards;
    return one;
}
