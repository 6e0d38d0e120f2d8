// planner/search/search_entries.h - the entries of a ranking, with why each stands where it does.
#pragma once

#include "planner/harvest/best.h"
#include "planner/planner.h"

typedef struct {
    const Scenario *scenario;
    const PlannerOptions *options;
    const SearchStats *stats; // complete
    const Best *best;         // by whole estimates
} SearchFound;

// Sets the entries of a result whose best list is not empty; they live in the arena.
void search_entries(const SearchFound *s, Arena *arena, PlannerResult *out);
