#include "launch/plan_lines.h"

void plan_lines_add(Script *script, const Scenario *scenario, const Plan *plan) {
    if (plan->idle_gpus > 0)
        script_add(script, PLAN_LINE PLAN_LINE_IDLE " %d of %d\n", plan->idle_gpus,
                   cluster_total_gpus(&scenario->cluster));
    if (!plan->node_order) return;
    script_add(script, PLAN_LINE PLAN_LINE_PLACEMENT);
    for (int i = 0; i < plan->node_order->num_nodes; i++)
        script_add(script, " %d", plan->node_order->node[i]);
    script_add(script, "\n");
}
