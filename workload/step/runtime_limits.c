#include "workload/step/runtime_limits.h"

#include "plan/layer_plans.h"
#include "plan/rule_check.h"

#include <string.h>

// Not a rule of stacks/rules/runtime.json: recomputation is told of each layer.
static Status recompute_check(const Scenario *s, const Plan *p) {
    for (int i = 0; plan_mixes_recompute(p) && i < plan_num_strategies(p); i++) {
        const Strategy strategy = plan_strategy(p, i);
        if (strategy.recompute == RECOMPUTE_SELECTIVE &&
            strategy.recompute_modules != MODULE_CORE_ATTN)
            return status_at(STATUS_INVALID, s->file, "parallel",
                             "selective recomputation of more than the core attention: not run "
                             "yet");
    }
    return status_ok();
}

Status runtime_supports(const Scenario *s, const Plan *plan) {
    if (strcmp(s->execution.stack.name, "runtime") != 0)
        return status_at(STATUS_INVALID, s->file, "training.stack",
                         "meshwright-run executes plans of the stack \"runtime\", this one is of "
                         "\"%s\": plan again with training.stack runtime",
                         s->execution.stack.name);
    Arena arena = {0};
    const Rule *broken[RULES_MAX];
    Status status = status_ok();
    if (plan_broken_rules(s, NULL, plan, broken) > 0)
        status = rule_refusal(STATUS_INVALID, s, plan, broken[0], &arena);
    arena_free(&arena);
    TRY(status);
    TRY(plan_refuse_layers(s, plan, "the bundled runtime"));
    return recompute_check(s, plan);
}
