// What is open in the dimensions of the space.
#include "planner/space_rules.h"

int space_zero_stages(const SpaceRules *rules, const Plan *plan, int stages[4]) {
    int given = rules->scenario->parallel.zero_stage;
    bool has_experts = rules->scenario->model.num_experts > 0;
    bool alone = plan->dp * plan->cp == 1 && (!has_experts || plan->expert_dp == 1);
    if (given != ABSENT || alone) {
        stages[0] = given != ABSENT ? given : rules->scenario->training.stack.default_zero_stage;
        return 1;
    }
    int num_stages = 0;
    unsigned open = plan->pp > 1 ? rules->stack->zero_stages_pipelined : rules->stack->zero_stages;
    for (int stage = 0; stage <= 3; stage++)
        if (open & 1u << stage) stages[num_stages++] = stage;
    return num_stages;
}

bool space_has_schedule(const SpaceRules *rules, const Plan *plan, int kind) {
    int given = rules->scenario->parallel.schedule;
    // The contract runs interleaved with one chunk a rank as 1f1b.
    if (given == SCHEDULE_INTERLEAVED && plan->vpp == 1) given = SCHEDULE_1F1B;
    if (given != ABSENT) return given == kind;
    if (plan->vpp == 1 && (plan->pp == 1 || plan->num_microbatches == 1))
        return kind == SCHEDULE_1F1B;
    if (!stack_has_schedule(rules->stack, (ScheduleKind)kind)) return false;
    if (kind == SCHEDULE_1F1B) return plan->vpp == 1; // else plan_check refuses it, at length
    if (kind == SCHEDULE_BREADTH_FIRST) return plan->vpp > 1;
    if (kind != SCHEDULE_INTERLEAVED) return true;
    bool whole = plan->num_microbatches % plan->pp == 0;
    return plan->vpp > 1 && (whole || !rules->stack->whole_groups);
}

bool space_has_first_layers(const SpaceRules *rules, const Plan *plan) {
    const ParallelSpec *spec = &rules->scenario->parallel;
    return spec->recompute == ABSENT && spec->recompute_layers == ABSENT &&
           !rules->scenario->cluster.groups && stack_has_first_layers(rules->stack, plan);
}

int space_most_layers(const SpaceRules *rules, const Plan *plan) {
    if (!space_has_first_layers(rules, plan)) return 0;
    return plan_fullest_rank(plan) - (rules->scenario->model.num_mtp_layers == 0);
}

bool space_has_method(const SpaceRules *rules, int cp, int method) {
    int given = rules->scenario->parallel.cp_method;
    if (given != ABSENT) return given == method;
    const Model *model = &rules->scenario->model;
    if (cp == 1 || !stack_has_any_cp(rules->stack, model)) return method == CP_RING; // cp was given
    return stack_has_cp(rules->stack, model, (CpMethod)method);
}
