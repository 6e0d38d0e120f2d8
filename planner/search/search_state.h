// planner/search/search_state.h - a search under way. For search.c and search_rounds.c.
#pragma once

#include "base/deadline.h"
#include "planner/harvest/harvest.h"
#include "planner/harvest/loose.h"
#include "planner/search/pricing.h"
#include "planner/space/space.h"

typedef struct {
    const Scenario *scenario;
    const PlannerOptions *options;
    Deadline deadline;
    double raise_frac; // robust: the upper end is above the step by at least this
    double open_value; // the least bound of the candidates kept and not priced
    Space space;
    LooseCosts loose;
    double *split_bound_s; // [num_splits]
    int *split_order;      // [num_splits] by loose bound
    Candidate *candidates; // kept so far
    size_t num_candidates, capacity;
    Pricing pricing;
    SearchStats stats;
    double left_value; // least objective of what the budget left out; INFINITY for nothing
    Plan miss;
    RankMemory miss_memory;
    double missing_bytes;
    Arena arena;
} Search;

// Tells who waits for the search how far it is.
//   bound_value  nothing that is open can be below it
void search_progress(const Search *s, const char *what, int64_t done, int64_t total,
                     double bound_value);

// The budget is used up; nothing left out has a lower objective than this.
void search_stop_early(Search *s, double unpriced_value);

// Whether that nothing was considered does not say that nothing is legal.
bool search_may_be_empty(const PlannerOptions *options);

// Harvests all splits of the space that may be wanted: what fits and may be among the best is then
// in s->candidates, the most promising of them priced.
Status search_harvest(Search *s);
