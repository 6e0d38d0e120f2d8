#include "planner/questions/switch_step.h"

#include "costmodel/step/estimate.h"
#include "costmodel/step/step_time.h"
#include "plan/rule_check.h"

#include <math.h>

double switch_step_s(const Scenario *limited, const Plan *plan, double limit_s, Arena *scratch) {
    if (plan_check(limited, plan).code != STATUS_OK) return INFINITY;
    RulesInForce rules;
    rules_in_force(limited, &rules);
    if (rules.never || !plan_obeys(limited, &rules, plan)) return INFINITY;
    const Workload workload = workload_build(limited, plan, scratch);
    double missing_bytes;
    estimate_memory(limited, plan, &workload, &missing_bytes);
    if (missing_bytes > 0) return INFINITY;
    const Prices prices = chunks_price(limited, plan, &workload, scratch);
    if (estimate_lower_bound_s(limited, plan, &workload, &prices) >= limit_s) return INFINITY;
    const double step_time_s = plan_step_time_s(limited, plan, &workload, &prices, scratch);
    if (isfinite(step_time_s)) return step_time_s;
    Estimate estimate; // an order that plan_step_time_s does not know
    if (estimate_plan(limited, plan, scratch, &estimate, NULL).code != STATUS_OK) return INFINITY;
    return estimate.step_time_s;
}
