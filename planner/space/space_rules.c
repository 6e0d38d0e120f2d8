// What is open in the dimensions of the space.
#include "planner/space/space_rules.h"

#include "plan/plan_orders.h"

void rule_levels_start(const RulesInForce *rules, RuleLevels *out) {
    out->values = rules->values;
    out->known[0] = rules->values.known;
    for (int group = 0; group < NUM_RULE_GROUPS; group++)
        out->groups[group] = rule_group_set(group);
    out->lists[0].num_rules = rules->list.num_rules;
    for (int i = 0; i < rules->list.num_rules; i++) out->lists[0].rules[i] = rules->list.rules[i];
}

bool rule_levels_enter(RuleLevels *levels, const Scenario *scenario, const Plan *plan, int group) {
    const RuleList *before = &levels->lists[group];
    levels->lists[group + 1].num_rules = 0;
    if (before->num_rules == 0) return true; // all is decided
    levels->values.known = levels->known[group];
    rule_values_add(scenario, plan, group, &levels->values);
    levels->known[group + 1] = levels->values.known;
    return !rules_narrow(before, &levels->values, levels->groups[group], &levels->lists[group + 1]);
}

// Whether a group's values leave no rule broken that only they and what is known decide.
static bool may_enter(RuleLevels *levels, const Scenario *scenario, const Plan *plan, int group) {
    RuleList ignored;
    levels->values.known = levels->known[RULE_GROUP_LAYOUT + 1];
    rule_values_add(scenario, plan, group, &levels->values);
    return !rules_narrow(&levels->lists[RULE_GROUP_LAYOUT + 1], &levels->values,
                         levels->groups[group], &ignored);
}

int space_zero_groups(const Scenario *scenario, const Plan *plan, int zero_stage, int *groups) {
    const int all = plan->dp * plan->cp;
    const bool over_cp = scenario->execution.stack.training.shards_over_cp && plan->cp > 1;
    int num = 0;
    groups[num++] = plan_zero_group(scenario, plan->dp, plan->cp);
    if (scenario->parallel.zero_group != ABSENT || zero_stage == 0) return num;
    for (int parts = 2; parts <= all / 2 && num < SPACE_MAX_ZERO_GROUPS; parts++) {
        const int group = all / parts;
        if (all % parts != 0) continue;
        if (over_cp && (group % plan->cp != 0 || group == plan->dp)) continue;
        groups[num++] = group;
    }
    return num;
}

// Whether a level of ZeRO is a configuration of its own. Only FSDP may keep what it gathered where
// the scenario says nothing of it; that is stage 2 of the one that shards parameter by parameter.
static bool level_is_open(const Scenario *scenario, int level) {
    const int stated = scenario->parallel.reshard_after_forward;
    const Stack *stack = &scenario->execution.stack;
    if (level == ZERO_LEVEL_KEPT) return stated == ABSENT ? stack_keeps_gathered(stack) : !stated;
    if (level == ZERO_LEVEL_RESHARDED) return stated != 0;
    return level < 2 || stack->training.sharding != SHARDING_PER_PARAMETER;
}

static void zeros_find(const Scenario *scenario, RuleLevels *levels, const Plan *base,
                       SpaceOpen *out) {
    const int given = scenario->parallel.zero_stage;
    const bool has_experts = model_is_moe(&scenario->model);
    const int expert_dp = base->tp * base->cp * base->dp / (base->ep * base->etp);
    const bool alone = base->dp * base->cp == 1 && (!has_experts || expert_dp == 1);
    const int only = plan_zero_stage(scenario, base->dp, base->cp);
    int groups[SPACE_MAX_ZERO_GROUPS];
    for (int level = 0; level < NUM_ZERO_LEVELS; level++) {
        Plan plan = *base;
        plan_set_zero_level(&plan, level);
        if ((given != ABSENT || alone) && plan.zero_stage != only) continue;
        if (!level_is_open(scenario, level)) continue;
        const int num_groups = space_zero_groups(scenario, base, plan.zero_stage, groups);
        for (int g = 0; g < num_groups; g++) {
            plan.zero_group = groups[g];
            if ((!alone || given != ABSENT) && !may_enter(levels, scenario, &plan, RULE_GROUP_ZERO))
                continue;
            out->zeros[out->num_zeros].level = level;
            out->zeros[out->num_zeros++].group = groups[g];
        }
    }
}

// Whether the values of one group of the inner dimensions decide a rule of a split.
static bool is_of_one_group(const RuleLevels *levels, const Rule *rule) {
    static const int GROUPS[] = {RULE_GROUP_METHOD, RULE_GROUP_RECOMPUTE, RULE_GROUP_ZERO,
                                 RULE_GROUP_SCHEDULE};
    const RuleSet known = levels->known[RULE_GROUP_LAYOUT + 1];
    for (size_t i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++)
        if (rule_set_holds(rule_set_union(known, levels->groups[GROUPS[i]]), rule->holds.reads))
            return true;
    return false;
}

static void one_group_rules_drop(RuleLevels *levels) {
    RuleList *list = &levels->lists[RULE_GROUP_LAYOUT + 1];
    int num = 0;
    for (int i = 0; i < list->num_rules; i++)
        if (!is_of_one_group(levels, list->rules[i])) list->rules[num++] = list->rules[i];
    list->num_rules = num;
}

void space_open_find(const Scenario *scenario, RuleLevels *levels, const Plan *base,
                     SpaceOpen *out) {
    const ParallelSpec *spec = &scenario->parallel;
    Plan plan = *base;
    out->scenario = scenario;
    out->num_zeros = 0;
    zeros_find(scenario, levels, base, out);
    for (int kind = 0; kind < NUM_SCHEDULES; kind++) {
        plan.schedule = (ScheduleKind)kind;
        const bool open =
            spec->schedule == ABSENT || spec->schedule == kind ||
            schedule_with_chunks((ScheduleKind)spec->schedule, 1) == (ScheduleKind)kind;
        out->schedules[kind] = open && may_enter(levels, scenario, &plan, RULE_GROUP_SCHEDULE);
    }
    for (int method = 0; method < NUM_CP_METHODS; method++) {
        plan.cp_method = (CpMethod)method;
        const bool open = spec->cp_method != ABSENT ? spec->cp_method == method
                                                    : base->cp > 1 || method == CP_RING;
        out->methods[method] = open && may_enter(levels, scenario, &plan, RULE_GROUP_METHOD);
    }
    for (int recompute = 0; recompute < NUM_RECOMPUTES; recompute++) {
        plan.recompute = (Recompute)recompute;
        plan.recompute_modules = space_modules(scenario, recompute);
        const bool open = spec->recompute == ABSENT || spec->recompute == recompute;
        out->recomputes[recompute] =
            open && may_enter(levels, scenario, &plan, RULE_GROUP_RECOMPUTE);
    }
    one_group_rules_drop(levels);
    out->first_layers = spec->recompute == ABSENT && spec->recompute_layers == ABSENT &&
                        scenario->cluster.num_pools == 1;
}

int space_modules(const Scenario *scenario, int recompute) {
    const int stated = scenario->parallel.recompute_modules;
    if (recompute != RECOMPUTE_SELECTIVE) return 0;
    return stated == ABSENT ? plan_default_modules(scenario) : stated;
}

bool space_has_schedule(const SpaceOpen *open, const Plan *plan, int kind) {
    int given = open->scenario->parallel.schedule;
    if (!open->schedules[kind]) return false;
    if (given != ABSENT && plan->vpp == 1)
        given = (int)schedule_with_chunks((ScheduleKind)given, 1);
    if (given != ABSENT) return given == kind;
    if (plan->vpp == 1 && (plan->pp == 1 || plan->num_microbatches == 1))
        return kind == (int)schedule_default(1);
    const int num_chunks = schedule_find((ScheduleKind)kind)->num_chunks;
    if (num_chunks == 0) return plan->vpp > 1;
    return plan->vpp == num_chunks || (num_chunks > 1 && plan->pp == 1);
}

bool space_has_dual(const SpaceOpen *open) {
    for (int kind = 0; kind < NUM_SCHEDULES; kind++)
        if (open->schedules[kind] && schedule_find((ScheduleKind)kind)->placement == PLACEMENT_DUAL)
            return true;
    return false;
}

int space_most_layers(const SpaceOpen *open, RuleLevels *levels, const Plan *plan) {
    if (!open->first_layers || plan->recompute == RECOMPUTE_NONE) return 0;
    const RuleList *list = &levels->lists[RULE_GROUP_LAYERS];
    bool may = true;
    levels->values.value[RULE_SOME_LAYERS] = true;
    for (int i = 0; i < list->num_rules && may; i++)
        may = !rule_set_has(list->rules[i]->holds.reads, RULE_SOME_LAYERS) ||
              rule_condition_holds(&list->rules[i]->holds, &levels->values) != RULE_FALSE;
    levels->values.value[RULE_SOME_LAYERS] = false;
    if (!may) return 0;
    return plan_fullest_rank(plan) - (open->scenario->model.num_mtp_layers == 0);
}
