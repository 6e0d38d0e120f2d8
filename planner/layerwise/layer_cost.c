#include "planner/layerwise/layer_cost.h"

#include "costmodel/memory/memory_static.h"
#include "costmodel/network/collective.h"
#include "costmodel/pass/list_price.h"
#include "workload/pass/bytes.h"
#include "workload/pass/split.h"
#include "workload/technique/technique.h"

#include <math.h>

void layer_price_add(Price *sum, const Price *part, double times) {
    for (int t = 0; t < NUM_TERMS; t++) sum->term_s[t] += times * part->term_s[t];
    for (int k = 0; k < NUM_PARTS; k++) sum->part_s[k] += times * part->part_s[k];
    sum->time_s = terms_sum(sum->term_s);
}

Price layer_pass_price(const PricingContext *context, const Block *block, bool forward,
                       double *edge_s) {
    const int backward = 1 << PHASE_BACKWARD_INPUT | 1 << PHASE_BACKWARD_WEIGHT;
    const ListPrice list = list_price(&(OpList){
        .context = context,
        .ops = forward ? block->forward : block->backward,
        .num_ops = forward ? block->num_forward : block->num_backward,
        .num_forward = block->num_forward,
        .phases = forward ? 1 << PHASE_FORWARD : backward,
    });
    Price price = list.price;
    *edge_s += list.edge_s;
    const double waits_s = list.host_s - price.time_s;
    if (waits_s <= 0) return price;
    price.term_s[TERM_OTHER] += waits_s;
    price.part_s[PART_HOST] += waits_s;
    price.time_s = terms_sum(price.term_s);
    return price;
}

static double group_collective_s(const Scenario *scenario, Machines machines, const Plan *plan,
                                 CollectiveKind collective, GroupKind group, double bytes) {
    const Group ranks = plan_group(plan, group);
    return collective_s(machines, collective, ranks, bytes) *
           part_factor(scenario->calibration, group_part(machines.pool, ranks));
}

// Reduction of the gradients of parameters of one sort (workload/step/program_sync.h has the
// rules).
static double reduction_s(const Scenario *scenario, Machines machines, const Plan *plan,
                          double parameters, bool expert) {
    const GroupKind zero = expert ? GROUP_EZERO : GROUP_ZERO;
    const GroupKind replica = expert ? GROUP_EREPLICA : GROUP_REPLICA;
    const double bytes = parameters * reduced_gradient_bytes(&scenario->execution);
    if (plan->zero_stage == 0 ||
        (plan->zero_stage == 1 && scenario->execution.stack.training.weights_by_broadcast))
        return group_collective_s(scenario, machines, plan, COLLECTIVE_ALL_REDUCE,
                                  expert ? GROUP_EDP : GROUP_DP, bytes);
    double time_s = group_collective_s(scenario, machines, plan, COLLECTIVE_ALL_REDUCE, replica,
                                       bytes / plan_group(plan, zero).size);
    if (!plan_scatters_gradients(plan))
        time_s +=
            group_collective_s(scenario, machines, plan, COLLECTIVE_REDUCE_SCATTER, zero, bytes);
    return time_s;
}

static double gathering_s(const Scenario *scenario, Machines machines, const Plan *plan,
                          double parameters, bool expert) {
    if (plan->zero_stage != 1 && plan->zero_stage != 2) return 0;
    return group_collective_s(scenario, machines, plan, COLLECTIVE_ALL_GATHER,
                              expert ? GROUP_EZERO : GROUP_ZERO,
                              parameters * gathered_weight_bytes(&scenario->execution));
}

// Its part of the one sum over tp of all partial gradients of a rank, at the end of a step.
static double partial_sum_s(const Scenario *scenario, Machines machines, const Plan *plan,
                            double parameters) {
    const double bytes =
        partial_sum_bytes(&scenario->execution, plan_num_scattered(plan), parameters);
    if (bytes <= 1) return 0;
    const double all_s =
        group_collective_s(scenario, machines, plan, COLLECTIVE_ALL_REDUCE, GROUP_TP, bytes);
    return all_s - group_collective_s(scenario, machines, plan, COLLECTIVE_ALL_REDUCE, GROUP_TP, 1);
}

// What a collective adds to a step of which compute_s may run beside it.
static double exposed_s(double time_s, double compute_s, bool overlaps, double slowdown_frac) {
    if (!overlaps) return time_s;
    return fmax(0, time_s - compute_s) + slowdown_frac * fmin(time_s, compute_s);
}

static double sync_s(const Scenario *scenario, Machines machines, const Plan *plan,
                     const Block *block, double forward_s, double backward_s) {
    const Execution *execution = &scenario->execution;
    const double parameters[2] = {block->dense_parameters, block->expert_parameters};
    double reduce_s = 0, gather_s = 0;
    for (int expert = 0; expert < 2; expert++) {
        reduce_s += reduction_s(scenario, machines, plan, parameters[expert], expert);
        gather_s += gathering_s(scenario, machines, plan, parameters[expert], expert);
    }
    const StepTraits traits = step_traits(execution);
    const double slowdown = execution->stack.communication.overlap_slowdown_frac;
    return exposed_s(reduce_s, backward_s, traits.reduces_beside, slowdown) +
           exposed_s(gather_s, forward_s, traits.gathers_beside, slowdown) +
           partial_sum_s(scenario, machines, plan, block->partial_parameters);
}

// Bytes of weights, gradients and optimizer (Rajbhandari et al. 2020, as
// costmodel/memory/memory_static.c).
static double parameters_state_bytes(const Scenario *scenario, const Plan *plan, double dense,
                                     double expert) {
    const StateBytes state = state_bytes(&scenario->execution, scenario->training.optimizer);
    const double all = dense + expert;
    const double own =
        dense / plan_group(plan, GROUP_ZERO).size + expert / plan_group(plan, GROUP_EZERO).size;
    return (plan->zero_stage >= 3 ? own : all) * state.weight +
           held_gradients_bytes(plan, &state, all, own) +
           (plan->zero_stage >= 1 ? own : all) * (state.master + state.moments);
}

// Frozen weights count as so many trained ones as they have bytes. Of ZeRO 3's gathered gradients,
// which they do not have, that is too many.
static double frozen_parameters(const Scenario *scenario, double bytes) {
    return bytes * frozen_gathered_frac(&scenario->execution, &scenario->training.tuning) /
           gathered_weight_bytes(&scenario->execution);
}

static double frozen_state_bytes(const Plan *plan, FrozenBytes frozen) {
    if (plan->zero_stage < 3) return frozen.dense + frozen.expert;
    return frozen.dense / plan_group(plan, GROUP_ZERO).size +
           frozen.expert / plan_group(plan, GROUP_EZERO).size;
}

LayerCost layer_cost(const Scenario *scenario, const Plan *plan, const Block *block) {
    const Machines machines = cluster_machines(&scenario->cluster, 0);
    LayerCost cost = {
        .update_s = optimizer_update_s(scenario, plan, &machines.pool->gpu, block->dense_parameters,
                                       block->expert_parameters),
        .state_bytes = parameters_state_bytes(scenario, plan, block->dense_parameters,
                                              block->expert_parameters) +
                       frozen_state_bytes(plan, block->frozen),
        .saved_bytes = block->saved_bytes,
        .peak_bytes = fmax(block->forward_peak_bytes,
                           block->saved_bytes + block->unusable_bytes + block->backward_peak_bytes),
        .gathered =
            plan->zero_stage < 3
                ? 0
                : plan_sharded_parameters(
                      plan,
                      block->dense_parameters + frozen_parameters(scenario, block->frozen.dense),
                      block->expert_parameters + frozen_parameters(scenario, block->frozen.expert)),
    };
    const PricingContext context = pricing_context(scenario, plan, 0, NULL);
    cost.forward = layer_pass_price(&context, block, true, &cost.edge_s);
    cost.backward = layer_pass_price(&context, block, false, &cost.edge_s);
    cost.sync_s =
        sync_s(scenario, machines, plan, block, cost.forward.time_s, cost.backward.time_s);
    return cost;
}

double layer_step_s(const LayerCost *cost, double num_microbatches) {
    return num_microbatches * (cost->forward.time_s + cost->backward.time_s) + cost->sync_s +
           cost->update_s;
}
