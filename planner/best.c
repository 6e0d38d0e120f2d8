#include "planner/best.h"

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

bool plans_are_variants(const Plan *a, const Plan *b) {
    return a->tp == b->tp && a->pp == b->pp && a->cp == b->cp && a->dp == b->dp && a->ep == b->ep &&
           a->etp == b->etp && a->micro_batch == b->micro_batch && a->recompute == b->recompute;
}

static void item_remove(Best *best, int place) {
    best->num_items--;
    memmove(&best->items[place], &best->items[place + 1],
            (size_t)(best->num_items - place) * sizeof *best->items);
}

void best_insert(Best *best, const Priced *priced) {
    if (best->worst_value > 0 && priced->value > best->worst_value) return;
    for (int i = 0; best->distinct && i < best->num_items; i++) {
        if (!plans_are_variants(&best->items[i].candidate.plan, &priced->candidate.plan)) continue;
        if (compare_priced(&best->items[i], priced) < 0) return;
        item_remove(best, i);
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

bool best_excludes(const Best *best, const Candidate *candidate) {
    if (candidate->value > best_value_limit(best)) return true;
    if (best->num_items < best->top) return false;
    const Priced *last = &best->items[best->top - 1];
    return candidate->value >= last->value &&
           candidate->step_time_s > last->estimate.step_time_s * (1 + ROUNDING_FRAC);
}
