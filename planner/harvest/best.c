#include "planner/harvest/best.h"

#include "config/cluster/node_order.h"

#include <limits.h>
#include <math.h>
#include <string.h>

// Bounds and prices are sums of the same seconds in another order: a bound counts as worse only
// beyond their rounding.
static const double ROUNDING_FRAC = 1e-9;

static int compare_doubles(double a, double b) {
    return (a > b) - (a < b);
}

static int compare_priced(const Priced *a, const Priced *b) {
    int order = compare_doubles(a->value, b->value);
    if (order == 0) order = compare_doubles(a->estimate.step_time_s, b->estimate.step_time_s);
    if (order == 0)
        order = compare_doubles(a->estimate.memory.device_bytes, b->estimate.memory.device_bytes);
    if (order == 0) order = a->candidate.index < b->candidate.index ? -1 : 1;
    return order;
}

static bool splits_are_like(const Plan *a, const Plan *b) {
    return a->tp == b->tp && a->pp == b->pp && a->cp == b->cp && a->dp == b->dp && a->ep == b->ep &&
           a->etp == b->etp && a->micro_batch == b->micro_batch;
}

bool plans_are_variants(const Plan *a, const Plan *b) {
    return splits_are_like(a, b) && a->recompute == b->recompute;
}

// Of one family: in full or not at all, or selectively.
static bool recompute_alike(const Plan *a, const Plan *b) {
    return (a->recompute == RECOMPUTE_SELECTIVE) == (b->recompute == RECOMPUTE_SELECTIVE);
}

// Whether the same nodes play the same ranks.
static bool nodes_are_alike(const NodeOrder *a, const NodeOrder *b) {
    if (a == b) return true;
    if (!a || !b || a->num_nodes != b->num_nodes) return false;
    return memcmp(a->node, b->node, (size_t)a->num_nodes * sizeof *a->node) == 0;
}

static bool plans_are_like(const Plan *a, const Plan *b) {
    return splits_are_like(a, b) && a->vpp == b->vpp && plan_zero_level(a) == plan_zero_level(b) &&
           a->zero_group == b->zero_group && a->schedule == b->schedule &&
           a->cp_method == b->cp_method && a->order == b->order &&
           nodes_are_alike(a->node_order, b->node_order);
}

bool plans_differ_in_layers(const Plan *a, const Plan *b) {
    if (!plans_are_like(a, b) || !recompute_alike(a, b) || a->num_chunks != b->num_chunks)
        return false;
    for (int c = 0; c < a->num_chunks; c++)
        if (a->chunks[c].num_layers != b->chunks[c].num_layers) return false;
    return true;
}

// How many layers a plan recomputes, as an order.
static int layers_rank(const Plan *plan) {
    if (plan->recompute == RECOMPUTE_NONE) return 0;
    return plan->recompute_layers == ABSENT ? INT_MAX : plan->recompute_layers;
}

static int compare_rounded(double a, double b) {
    return fabs(a - b) <= ROUNDING_FRAC * fmax(fabs(a), fabs(b)) ? 0 : compare_doubles(a, b);
}

// Of two of which one is listed; of those that differ in nothing else and are equal in what ranks
// the one that recomputes fewer layers. Where the network sets the pace that is all of them, each
// with its sums in another order.
static bool is_better_of_two(const Priced *a, const Priced *b) {
    if (!plans_differ_in_layers(&a->candidate.plan, &b->candidate.plan))
        return compare_priced(a, b) < 0;
    int order = compare_rounded(a->value, b->value);
    if (order == 0) order = compare_rounded(a->estimate.step_time_s, b->estimate.step_time_s);
    if (order == 0)
        order = compare_doubles(layers_rank(&a->candidate.plan), layers_rank(&b->candidate.plan));
    return order < 0;
}

static void item_remove(Best *best, int place) {
    best->num_items--;
    memmove(&best->items[place], &best->items[place + 1],
            (size_t)(best->num_items - place) * sizeof *best->items);
}

// The item that a plan may not be listed beside; -1 for none.
static int rival_of(const Best *best, const Plan *plan) {
    for (int i = 0; i < best->num_items; i++) {
        const Plan *other = &best->items[i].candidate.plan;
        const bool family =
            best->distinct && splits_are_like(other, plan) && recompute_alike(other, plan);
        if (family || plans_differ_in_layers(other, plan)) return i;
    }
    return -1;
}

void best_insert(Best *best, const Priced *priced) {
    if (best->worst_value > 0 && priced->value > best->worst_value) return;
    const int rival = rival_of(best, &priced->candidate.plan);
    if (rival >= 0) {
        if (!is_better_of_two(priced, &best->items[rival])) return;
        item_remove(best, rival);
    }
    int place = best->num_items;
    while (place > 0 && compare_priced(priced, &best->items[place - 1]) < 0) place--;
    if (place == best->top) return;
    if (best->num_items < best->top) best->num_items++;
    memmove(&best->items[place + 1], &best->items[place],
            (size_t)(best->num_items - 1 - place) * sizeof *best->items);
    best->items[place] = *priced;
}

double best_value_limit(const Best *best) {
    double last = best->worst_value > 0 ? best->worst_value : INFINITY;
    if (best->num_items == best->top) last = best->items[best->top - 1].value;
    return last * (1 + ROUNDING_FRAC);
}

// A family has one place at most: whoever takes it has to be better than who has it now.
double best_plan_limit(const Best *best, const Plan *plan) {
    const int rival = best->distinct ? rival_of(best, plan) : -1;
    const double limit = best_value_limit(best);
    return rival < 0 ? limit : fmin(limit, best->items[rival].value * (1 + 2 * ROUNDING_FRAC));
}

bool best_excludes(const Best *best, const Candidate *candidate) {
    if (candidate->value > best_plan_limit(best, &candidate->plan)) return true;
    if (best->num_items < best->top) return false;
    const Priced *last = &best->items[best->top - 1];
    return candidate->value >= last->value &&
           candidate->step_time_s > last->estimate.step_time_s * (1 + ROUNDING_FRAC);
}
