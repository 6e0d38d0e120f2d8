#include "planner/questions/place_best.h"

#include "planner/why/explain.h"

Status planner_place_best(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                          PlannerResult *result) {
    if (!options->placement || result->num_entries == 0 || placement_obstacle(scenario))
        return status_ok();
    PlacementOptions moves = *options->placement;
    moves.num_threads = options->num_threads;
    moves.end_soon = options->end_soon;
    PlacementResult *placement = ARENA_NEW(arena, PlacementResult);
    PlannedEntry *best = &result->entries[0];
    TRY(placement_search(scenario, &best->plan, &moves, arena, placement));
    best->plan = placement->plan;
    best->estimate = placement->estimate;
    best->placement = placement;
    const double value = explain_value(result, best);
    for (int i = 1; i < result->num_entries; i++) {
        PlannedEntry *entry = &result->entries[i];
        entry->loses_frac = explain_value(result, entry) / value - 1;
        entry->within_noise_of_best =
            explain_within_noise(scenario, result->objective, best, entry);
        entry->why = explain_worse(result, best, entry, arena);
    }
    return status_ok();
}
