#include "planner/questions/riskier.h"

#include "planner/harvest/harvest.h"
#include "planner/why/explain.h"

#include <math.h>

static const char *why_text(const PlannerResult *result, const PlannedEntry *entry, Arena *arena) {
    const char *sure = arena_printf(arena, "fits with a probability of %.0f %%",
                                    floor(entry->estimate.fits_probability_frac * 100));
    if (result->num_entries == 0) return sure;
    return arena_printf(arena, "%.1f %% better than the best, but %s", -entry->loses_frac * 100,
                        sure);
}

Status planner_find_riskier(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                            PlannerResult *result) {
    const double asked_frac = planner_fit_probability(options);
    if (asked_frac <= RISKIER_PROBABILITY_FRAC) return status_ok();
    if (options->objective == OBJECTIVE_MEMORY) return status_ok();
    PlannerOptions wide = *options;
    wide.fit_probability_frac = RISKIER_PROBABILITY_FRAC;
    wide.top = RISKIER_MAX_ENTRIES;
    wide.distinct = true;
    wide.exhaustive = false;
    wide.brief = true;
    wide.uncounted = true;
    wide.extra = result->num_entries > 0;
    double best_value = INFINITY;
    if (result->num_entries > 0) {
        best_value = explain_value(result, &result->entries[0]);
        wide.worst_value = best_value * (1 - RISKIER_MIN_GAIN_FRAC);
    }
    PlannerResult found;
    TRY(planner_search(scenario, &wide, arena, &found));
    result->stats.wall_s += found.stats.wall_s;
    result->riskier = found.entries;
    for (int i = 0; i < found.num_entries; i++) {
        PlannedEntry entry = found.entries[i];
        const double value = explain_value(&found, &entry);
        if (entry.estimate.fits_probability_frac >= asked_frac) continue; // a search that ended
        if (value > best_value * (1 - RISKIER_MIN_GAIN_FRAC)) continue;   // of unlike groups
        entry.loses_frac = isfinite(best_value) ? value / best_value - 1 : 0;
        entry.within_noise_of_best = false;
        entry.why = why_text(result, &entry, arena);
        result->riskier[result->num_riskier++] = entry;
    }
    return status_ok();
}
