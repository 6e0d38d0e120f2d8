#include "planner/stages/split_bound.h"

#include "plan/layer_plans.h"
#include "planner/stages/interleaved_bound.h"
#include "workload/technique/technique.h"

#include <math.h>

// One chain of items, cut for ranks.
typedef struct {
    const StageMachine *machine;
    int num_items, num_ranks, num_chunks; // chunks of a rank
    int first_rank, last_rank;            // with the embedding, with the head
    int num_again;
    bool alike; // all items are
} Chain;

static double pass_s(const Chain *chain, StagePass pass, int rank, int from, int to) {
    const StageMachine *m = chain->machine;
    if (!m->device_s[pass]) return 0;
    double time_s = m->device_s[pass][to] - m->device_s[pass][from];
    double launch_s = m->host_s[pass][to] - m->host_s[pass][from];
    if (m->again_s[pass] && chain->num_again > 0) {
        const int end = chain->num_again < to - from ? from + chain->num_again : to;
        time_s += m->again_s[pass][end] - m->again_s[pass][from];
        launch_s += m->again_host_s[pass][end] - m->again_host_s[pass][from];
    }
    if (rank == chain->first_rank) {
        time_s += m->first_s[pass];
        launch_s += m->first_host_s[pass];
    }
    if (rank == chain->last_rank) {
        time_s += m->last_s[pass];
        launch_s += m->last_host_s[pass];
    }
    if (pass != PASS_WEIGHT) launch_s += chain->num_chunks * m->pass_host_s;
    // Of several chunks the host may set the pace of some: the sum of the larger is no less.
    return time_s > launch_s ? time_s : launch_s;
}

static double load_s(const Chain *chain, int rank, int from, int to) {
    double sum_s = 0;
    for (int pass = 0; pass < NUM_PASSES; pass++)
        sum_s += pass_s(chain, (StagePass)pass, rank, from, to);
    return sum_s;
}

// The last end up to which a rank holds items from `from` on; below `from` where it holds not even
// none.
static int last_end(const Chain *chain, int rank, int from, double limit_s) {
    int fits = from - 1, misses = chain->num_items + 1;
    while (misses - fits > 1) {
        const int middle = fits + (misses - fits + 1) / 2;
        if (load_s(chain, rank, from, middle) <= limit_s)
            fits = middle;
        else
            misses = middle;
    }
    return fits;
}

// Of items that are alike a rank holds as many wherever it begins, and all ranks between the first
// and the last as many.
static bool alike_are_enough(const Chain *chain, double limit_s) {
    const int first = chain->first_rank, last = chain->last_rank;
    const int num_ends = first == last ? 1 : 2;
    const int most_first = last_end(chain, first, 0, limit_s);
    const int most_last = num_ends == 2 ? last_end(chain, last, 0, limit_s) : 0;
    const int most = last_end(chain, -1, 0, limit_s);
    if (most_first < 0 || most_last < 0 || most < 0) return false;
    const long between = (long)(chain->num_ranks - num_ends) * most;
    return most_first + most_last + between >= chain->num_items;
}

// Whether ranks with loads up to this hold all items, each as many as it can.
static bool is_enough(const Chain *chain, double limit_s) {
    if (chain->alike) return alike_are_enough(chain, limit_s);
    int from = 0;
    for (int rank = 0; rank < chain->num_ranks; rank++) {
        const int end = last_end(chain, rank, from, limit_s);
        if (end < from) return false;
        from = end;
    }
    return from == chain->num_items;
}

// Of the whole model, on the device.
static double device_s(const Chain *chain) {
    const StageMachine *m = chain->machine;
    double sum_s = 0;
    for (int pass = 0; pass < NUM_PASSES; pass++)
        if (m->device_s[pass])
            sum_s += m->device_s[pass][chain->num_items] + m->first_s[pass] + m->last_s[pass];
    return sum_s;
}

enum { NUM_HALVINGS = 14 };

static double least_load_s(const Chain *chain) {
    double largest_s = 0, low_s = device_s(chain) / chain->num_ranks;
    if (is_enough(chain, low_s)) return low_s;
    for (int l = 0; l < chain->num_items; l++)
        largest_s = fmax(largest_s, load_s(chain, -1, l, l + 1));
    double high_s = low_s + largest_s;
    for (int i = 0; i < NUM_HALVINGS && !is_enough(chain, high_s); i++) {
        low_s = high_s;
        high_s *= 2;
    }
    for (int i = 0; i < NUM_HALVINGS; i++) {
        const double middle_s = low_s + (high_s - low_s) / 2;
        if (is_enough(chain, middle_s))
            high_s = middle_s;
        else
            low_s = middle_s;
    }
    return low_s;
}

// Whether the host may take longer to launch a pass over a stage with layers than the device to run
// it.
static bool host_may_lead(const Chain *chain) {
    const StageMachine *m = chain->machine;
    for (int pass = 0; pass < NUM_PASSES; pass++) {
        if (!m->device_s[pass]) continue;
        const double beside_s = chain->num_chunks * m->pass_host_s +
                                fmax(0, m->first_host_s[pass] - m->first_s[pass]) +
                                fmax(0, m->last_host_s[pass] - m->last_s[pass]);
        for (int l = 0; l < chain->num_items; l++) {
            const double device_s = m->device_s[pass][l + 1] - m->device_s[pass][l];
            const double host_s = m->host_s[pass][l + 1] - m->host_s[pass][l];
            if (host_s + beside_s > device_s) return true;
        }
    }
    return false;
}

static double frac_of(double there_s, double back_s) {
    return there_s > 0 ? there_s / (there_s + back_s) : 0;
}

// The largest part of a forward in forward and backward, on the device, over all that is on the
// chain.
static double forward_frac(const Chain *chain) {
    const StageMachine *m = chain->machine;
    const double *there_s = m->device_s[PASS_FORWARD], *back_s = m->device_s[PASS_BACKWARD];
    double most = fmax(frac_of(m->first_s[PASS_FORWARD], m->first_s[PASS_BACKWARD]),
                       frac_of(m->last_s[PASS_FORWARD], m->last_s[PASS_BACKWARD]));
    for (int l = 0; l < chain->num_items; l++)
        most = fmax(most, frac_of(there_s[l + 1] - there_s[l], back_s[l + 1] - back_s[l]));
    return most;
}

static Chain chain_of(const Scenario *scenario, const Plan *plan, const GroupCosts *costs) {
    return (Chain){.machine = &costs->machines[0],
                   .num_items = costs->num_items,
                   .num_ranks = plan->pp,
                   .num_chunks = plan->vpp,
                   .first_rank = plan_chunk_rank(plan, 0),
                   .last_rank = plan_chunk_rank(plan, plan->num_chunks - 1),
                   .num_again = plan_recomputes_first(plan) ? plan->recompute_layers : 0,
                   .alike = scenario->model.num_kinds == 1};
}

// Of a plan with one chunk a rank, what a bound is made of beside the load of the busiest.
typedef struct {
    double microbatches;
    double beside_s; // of all ranks
    // 1F1B: the whole model once and what follows, and how often the busiest's load comes on top;
    // where its host may lead that of the mean rank
    double through_s, busy_times;
    bool host_leads;
} Staged;

// Stages with one chunk. The busiest has work w, of which f forward; with 1F1B at most pp forwards
// run before its first backward, which all the rest of the model has come before:
//   model - w + f + n w - pp f >= model + (n - 1) w - (pp - 1) f
static Staged staged_of(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                        const Chain *chain) {
    const double n = (double)plan->num_microbatches;
    const double tail_s = group_tail_s(scenario, plan, costs, 0);
    Staged staged = {.microbatches = n, .beside_s = tail_s};
    if (group_runs_one_ahead(scenario, plan)) {
        const double ahead = fmin(n, plan->pp);
        staged.through_s = device_s(chain) + costs->behind_message_s[0] + tail_s;
        staged.busy_times = fmax(0, n - 1 - (ahead - 1) * forward_frac(chain));
        staged.host_leads = host_may_lead(chain);
    }
    if (!program_hides_messages(scenario, plan)) {
        double message_s = plan->pp > 1 ? INFINITY : 0;
        for (int r = 0; r + 1 < plan->pp; r++) message_s = fmin(message_s, costs->message_s[r]);
        staged.beside_s += (n - 1) * message_s;
    }
    return staged;
}

static double staged_bound_s(const Staged *staged, const Chain *chain, double load) {
    const double bound_s = staged->microbatches * load + staged->beside_s;
    const double busiest_s = staged->host_leads ? device_s(chain) / chain->num_ranks : load;
    return fmax(bound_s, staged->through_s + staged->busy_times * busiest_s);
}

// The largest load with which the bound is not above a limit; negative where there is none.
static double staged_load_s(const Staged *staged, const Chain *chain, double limit_s) {
    const double load_s = (limit_s - staged->beside_s) / staged->microbatches;
    const double left_s = limit_s - staged->through_s;
    if (staged->host_leads)
        return staged->busy_times * device_s(chain) / chain->num_ranks > left_s ? -1 : load_s;
    if (staged->busy_times > 0) return fmin(load_s, left_s / staged->busy_times);
    return left_s < 0 ? -1 : load_s;
}

// That of the plan asked for last is kept: plans that differ in ZeRO stage, group and schedule come
// one after the other.
static double known_load_s(const Chain *chain, LeastLoad *known) {
    const LeastLoad asked = {chain->num_ranks, chain->num_chunks, chain->first_rank,
                             chain->last_rank, chain->num_again,  0};
    if (known->num_ranks != asked.num_ranks || known->num_chunks != asked.num_chunks ||
        known->first_rank != asked.first_rank || known->last_rank != asked.last_rank ||
        known->num_again != asked.num_again) {
        *known = asked;
        known->load_s = least_load_s(chain);
    }
    return known->load_s;
}

// Of a plan with several chunks a rank, by the order of its schedule; 0 where nothing is known.
static double order_bound_s(const Scenario *scenario, const Plan *plan, const Chain *chain) {
    const StageMachine *m = chain->machine;
    const bool whole = plan->pp > 1 && plan->num_microbatches % plan->pp == 0;
    const Schedule *schedule = schedule_find(plan->schedule);
    if (!schedule || !schedule->takes_turns || plan->vpp < 2 || !whole || !chain->alike ||
        !step_traits(&scenario->execution).begins_together)
        return 0;
    double layers_s = 0, first_s = 0, last_s = 0;
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
        layers_s += m->device_s[pass][chain->num_items];
        first_s += m->first_s[pass];
        last_s += m->last_s[pass];
    }
    return interleaved_bound_s(plan->pp, plan->vpp, (double)plan->num_microbatches, layers_s,
                               first_s, last_s) +
           group_step_s(scenario);
}

double split_bound_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs) {
    const Chain chain = chain_of(scenario, plan, costs);
    const double load = known_load_s(&chain, costs->least_load);
    if (!group_plan_is_staged(plan))
        return fmax((double)plan_chunk_microbatches(plan) * load + group_step_s(scenario),
                    order_bound_s(scenario, plan, &chain));
    const Staged staged = staged_of(scenario, plan, costs, &chain);
    return staged_bound_s(&staged, &chain, load);
}

bool split_bound_exceeds(const Scenario *scenario, const Plan *plan, const GroupCosts *costs,
                         double limit_s) {
    if (split_quick_bound_s(scenario, plan, costs) > limit_s) return true;
    const Chain chain = chain_of(scenario, plan, costs);
    double load_s = (limit_s - group_step_s(scenario)) / (double)plan_chunk_microbatches(plan);
    if (group_plan_is_staged(plan)) {
        const Staged staged = staged_of(scenario, plan, costs, &chain);
        load_s = staged_load_s(&staged, &chain, limit_s);
    } else if (order_bound_s(scenario, plan, &chain) > limit_s) {
        return true;
    }
    return load_s < 0 || !is_enough(&chain, load_s);
}

double split_mean_bound_s(const Plan *plan, double model_s, double forward, bool one_ahead) {
    double times = (double)plan_chunk_microbatches(plan);
    if (one_ahead) {
        // The whole model once, and what the busiest rank has then still to run.
        const double ahead = fmin(times, plan->pp);
        times = fmax(times, plan->pp + fmax(0, times - 1 - (ahead - 1) * forward));
    }
    return times * model_s / plan->pp;
}

double split_quick_bound_s(const Scenario *scenario, const Plan *plan, const GroupCosts *costs) {
    const Chain chain = chain_of(scenario, plan, costs);
    const bool one_ahead = group_plan_is_staged(plan) && group_runs_one_ahead(scenario, plan);
    return split_mean_bound_s(plan, device_s(&chain), one_ahead ? forward_frac(&chain) : 0,
                              one_ahead) +
           group_step_s(scenario);
}
