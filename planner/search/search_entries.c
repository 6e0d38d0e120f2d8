#include "planner/search/search_entries.h"

#include "plan/rule_check.h"
#include "planner/why/explain.h"

#include <math.h>

// The first earlier entry that this one is a variant of; -1 for none.
static int variant_of(const PlannedEntry *entries, int entry) {
    for (int i = 0; i < entry; i++)
        if (plans_are_variants(&entries[i].plan, &entries[entry].plan)) return i;
    return -1;
}

static const char *best_text(const SearchFound *s, const Plan *best, Arena *arena) {
    if (!s->stats->optimal)
        return arena_printf(arena, "best of %lld priced in the time given",
                            (long long)s->stats->priced);
    const Rule *broken[RULES_MAX];
    const bool known = plan_broken_rules(s->scenario, NULL, best, broken) == 0;
    return arena_printf(arena, "best of %lld configurations%s%s can run%s",
                        (long long)s->stats->considered, known ? " that " : ", none of which ",
                        s->scenario->execution.stack.name,
                        s->options->robust ? ", by the upper ends of their intervals" : "");
}

// Whether an entry before this plan needs the same memory and is no slower: nobody wants this one.
static bool is_dominated(const PlannedEntry *entries, int num_entries, const Estimate *estimate) {
    for (int i = 0; i < num_entries; i++) {
        const Estimate *better = &entries[i].estimate;
        double memory = better->memory.device_bytes / estimate->memory.device_bytes - 1;
        if (fabs(memory) <= 1e-9 && better->step_time_s <= estimate->step_time_s) return true;
    }
    return false;
}

void search_entries(const SearchFound *s, Arena *arena, PlannerResult *out) {
    const Best *best = s->best;
    const PlanObjective objective = s->options->objective;
    const bool drop = objective == OBJECTIVE_MEMORY && best->distinct;
    PlannedEntry *entries = ARENA_ARRAY(arena, s->stats->wanted, PlannedEntry);
    int n = 0;
    for (int i = 0; i < best->num_items && n < s->stats->wanted; i++) {
        const Priced *priced = &best->items[i];
        if (drop && is_dominated(entries, n, &priced->estimate)) continue;
        PlannedEntry *entry = &entries[n];
        entry->plan = plan_copy(&priced->candidate.plan, arena);
        entry->estimate = priced->estimate;
        entry->loses_frac = priced->value / best->items[0].value - 1;
        entry->within_noise_of_best =
            n == 0 || explain_within_noise(s->scenario, objective, &entries[0], entry);
        entry->variant_of = variant_of(entries, n);
        entry->why = n == 0               ? best_text(s, &entries[0].plan, arena)
                     : s->options->robust ? explain_robust(&entries[0], entry, arena)
                                          : explain_loss(objective, &entries[0], entry, arena);
        n++;
    }
    out->entries = entries;
    out->num_entries = n;
}
