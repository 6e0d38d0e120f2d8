// planner/search/shortlist.h - the configurations that can be the best of jobs that differ from one
// in how fast their links are.
//
// No configuration takes less time where a link is slower (a law of tests/planner/test_shortlist.c,
// and looked at again for each configuration that a search prices). What it takes at least on the
// fastest links of a family is then a bound on all others of the family:
//     T(c, slower) >= T(c, fastest) >= bound(c)
// A search of the fastest job keeps all whose bound is at most a limit. Of all splits of their
// layers that is the least that any split found, or left out, can take. The searches of the others
// price these in the order of their bounds, as a whole search would, until the next bound is above
// the best. Their answers are proven up to the limit; where no plan is below it, or the law does
// not hold, planner_search does the whole search.
#pragma once

#include "planner/harvest/harvest.h"
#include "planner/planner.h"

enum { SHORTLIST_MOST = 1024 }; // more configurations take longer than the searches they spare

// Of jobs on one number of GPUs.
typedef struct ShortlistPart {
    struct ShortlistPart *next;
    int num_gpus;
    bool complete;         // false: there are too many, or the user wanted to end
    Candidate *candidates; // [num_candidates] in the order of their bounds
    size_t num_candidates;
    double loose_bound_s; // no step of the space is shorter
    bool any_split;       // a candidate stands for all splits of its layers
} ShortlistPart;

typedef struct Shortlist Shortlist;

// A list of all that may take no longer than limit_s.
//   scenario  the fastest, of machines that are all alike; has to outlive the list
//   options   of the searches that the list is for; their objective is OBJECTIVE_THROUGHPUT
//   returns   NULL where there is no memory
Shortlist *shortlist_new(const Scenario *scenario, const PlannerOptions *options, double limit_s);

void shortlist_free(Shortlist *list); // NULL is accepted

double shortlist_limit_s(const Shortlist *list);

// The part of options->shortlist that a search of this scenario can take its configurations from,
// made when it is asked for first; NULL where it has to search all. Called from any thread.
const ShortlistPart *shortlist_part(const Scenario *scenario, const PlannerOptions *options);

// Whether none of the candidates that were priced is below its bound: the law holds for these.
//   priced  [num_candidates] copies of the part's in the same order
bool shortlist_holds(const ShortlistPart *part, const Candidate *priced);
