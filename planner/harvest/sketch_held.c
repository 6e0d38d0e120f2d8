#include "planner/harvest/sketch_held.h"

#include "costmodel/memory/memory_interval.h"
#include "costmodel/memory/memory_static.h"
#include "plan/plan_orders.h"
#include "workload/pass/group.h"

#include <math.h>
#include <string.h>

SketchHeld sketch_held(const Scenario *scenario, const Plan *plan) {
    const Stack *stack = &scenario->execution.stack;
    return (SketchHeld){
        .state = state_bytes(&scenario->execution, scenario->training.optimizer),
        .zero_stage = plan->zero_stage,
        .dense_parts = plan_group(plan, GROUP_ZERO).size,
        .expert_parts = plan_group(plan, GROUP_EZERO).size,
        .outside_bytes = stack->residency.context_bytes + memory_num_communicators(plan, NULL, 0) *
                                                              stack->residency.comm_bytes_per_group,
        .counted_factor = exp(scenario->fit_deviates * memory_spread(scenario, plan)),
        .reduces_once = plan->reduces_once,
        .num_replicas = plan->dp * plan->cp,
        .anew = !stack->training.keeps_gradients && plan->num_microbatches * plan->vpp <= 1,
    };
}

// The sums of memory_static_account and of what follows from them in costmodel/memory/memory.c.
double sketch_held_bytes(const Scenario *scenario, const SketchHeld *held, double dense_parameters,
                         double expert_parameters, double activation_bytes) {
    const Stack *stack = &scenario->execution.stack;
    const double dense = dense_parameters, expert = expert_parameters, all = dense + expert;
    const double shard = dense / held->dense_parts + expert / held->expert_parts;
    const Plan plan = {.zero_stage = held->zero_stage,
                       .reduces_once = held->reduces_once,
                       .dp = held->num_replicas,
                       .cp = 1};
    const double gradients = held_gradients_bytes(&plan, &held->state, all, shard);
    double bytes =
        (held->zero_stage >= 3 ? shard : all) * held->state.weight +
        (held->zero_stage >= 1 ? shard : all) * (held->state.master + held->state.moments) +
        stack->residency.workspace_bytes +
        (expert > 0 ? stack->residency.grouped_workspace_bytes : 0);
    bytes += held->anew ? fmax(gradients, activation_bytes) : gradients + activation_bytes;
    bytes *= 1 + stack->residency.allocator_slack_frac * CACHED_NEEDED_FRAC;
    return (bytes + held->outside_bytes) * held->counted_factor;
}

bool sketch_units_held(const Plan *plan, int rank, int *units) {
    const Schedule *schedule = schedule_find(plan->schedule);
    const int m = (int)plan->num_microbatches, pp = plan->pp;
    const ScheduleShape shape = schedule_shape(pp, plan->vpp, m);
    for (int k = 0; k < plan->vpp; k++) units[k] = 1;
    if (!schedule->holds_in_groups) return false;
    int left = schedule->in_flight(&shape, rank);
    if (plan->vpp == 1) units[0] = left;
    if (plan->vpp == 1 || pp == 1) return plan->vpp == 1;
    // Groups of pp micro-batches through one chunk, then the next.
    memset(units, 0, (size_t)plan->vpp * sizeof *units);
    for (int first = 0; first < m && left > 0; first += pp) {
        const int group = m - first < pp ? m - first : pp;
        for (int k = 0; k < plan->vpp && left > 0; k++) {
            units[k] += left < group ? left : group;
            left -= left < group ? left : group;
        }
    }
    return true;
}
