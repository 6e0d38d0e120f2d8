// planner/planner.h - the best ways to split and schedule a training job, with a proof.
//
// Method: every legal configuration is generated once (planner/space/space.h). Where its loose
// bound
//         (planner/harvest/loose.h) cannot beat the K-th best price so far it is passed over; else
//         it is asked for its memory in closed form, then for a lower bound of its step time; the
//         rest is priced in the order of the bounds until the next bound is worse than the K-th
//         best price. What was not priced cannot be among the best K: the ranking is exact, and the
//         result says so (optimal).
// Source: Land and Doig, "An automatic method of solving discrete programming problems",
//         Econometrica 28(3), 1960 (branch and bound).
// The result follows from the scenario alone, whatever the number of threads; with a budget in
// seconds that holds only where the budget was not reached.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/job/scenario.h"
#include "costmodel/step/estimate.h"
#include "plan/plan.h"
#include "planner/placement/placement.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// A plan counts as fitting where it does with this probability
// (costmodel/memory/memory_interval.h).
#define FIT_PROBABILITY_DEFAULT_FRAC 0.9

// What is best. Ties are broken by step time, then memory, then by the order of generation.
typedef enum {
    OBJECTIVE_THROUGHPUT, // least step_time_s
    OBJECTIVE_COST,       // least usd_per_1e9_tokens
    OBJECTIVE_ENERGY,     // least joules_per_token
    OBJECTIVE_MEMORY,     // least memory_device_bytes
    NUM_OBJECTIVES
} PlanObjective;

extern const char *const OBJECTIVE_NAMES[NUM_OBJECTIVES + 1]; // ends with NULL

// Called now and then during a long search, always from the calling thread.
//   what  "configurations" while they are generated and bounded (total unknown: 0), "pricing",
//         where nothing fits "what would fit, on GPUs" with their number
typedef void (*PlannerProgress)(void *context, const char *what, int64_t done, int64_t total);

// What a search knows so far, in terms of what it ranks by.
typedef struct {
    double best_value;  // INFINITY until something is priced
    double bound_value; // nothing that is still open can be below; 0 while nothing is known
} SearchStanding;

// A zeroed struct asks for the defaults.
typedef struct {
    int top; // plans wanted; 0 means 5
    PlanObjective objective;
    double max_memory_bytes;     // a plan may not need more on one GPU; 0: what the GPU has
    double fit_probability_frac; // with which a plan has to fit; 0: FIT_PROBABILITY_DEFAULT_FRAC
    double budget_s;             // end after so many seconds, once a plan is found; 0: never
    double worst_value;          // plans beyond are not wanted, though they may fit; 0: all are
    bool robust;                 // rank by the upper end of the interval: of objectives that are
                                 // proportional to the step time (planner/why/robust.h)
    bool exhaustive;             // price everything that fits; for tests and doubters
    bool distinct;               // of plans with the same degrees and micro_batch, and selective
                                 // recomputation or another, list the best only; for
                                 // OBJECTIVE_MEMORY none that needs as much as a faster one
    bool only_better;            // look for plans of at most worst_value and no further: uncounted,
                                 // and that nothing is legal is no error
    bool uncounted;              // do not count what is passed over by thousands: for questions
                                 // that search often and show no counts. Then, with worst_value,
                                 // there is no closest miss either, and constraints without a
                                 // legal configuration may be an empty result
    bool extra;                  // an answer is known already: when asked to, end without one
    bool brief;                  // where nothing fits, do not look for what would
    int num_threads;             // 0 or 1: the calling one only; the result is the same
    PlannerProgress progress;    // may be NULL
    void *progress_context;
    SearchStanding *standing;    // kept up to date before each call of progress; may be NULL
    const atomic_bool *end_soon; // set from elsewhere: end as if the budget were used up; or NULL
    const struct PriceSource
        *prices;                 // shared by searches of like jobs (planner/harvest/price_shelf.h)
    struct Shortlist *shortlist; // of jobs that differ in how fast their links are
                                 // (planner/search/shortlist.h); NULL: search them all
    const PlacementOptions *placement; // for planner_place_best; NULL: nodes stay where they are
} PlannerOptions;

// Counts of legal configurations: considered = pruned_by_memory + pruned_by_bound + priced.
typedef struct {
    int64_t considered;
    int64_t pruned_by_memory;
    int64_t pruned_by_bound;
    int64_t priced;
    bool optimal;    // the best K are proven
    double gap_frac; // how much better than the best an unpriced one could be; 0 where optimal
    bool any_split;  // a configuration stood for all splits of its layers (planner/space/space.h)
    double splits_gap_frac; // how much faster than the best a split of the layers could be that was
                            // left out of those of a configuration that was priced
    bool stopped_early; // by the budget or end_soon; what was not priced counts as pruned_by_bound
    int wanted;         // plans asked for; where stopped_early there may be fewer entries than fit
    double loose_bound_s; // no step of the space is shorter; 0: not known
    double wall_s;
} SearchStats;

// What holds a plan back, and the nearest change that would help (planner/questions/advice.h).
typedef struct {
    const char *limit;    // "bubble", "tp_exposed", ..., "memory", "compute"; NULL: not looked at
    double limit_frac;    // share of the step it takes, or that only memory forbids to save
    const char *change;   // "vpp 10 instead of 5"; NULL: none helps
    double gain_frac;     // how much less time a token takes after it
    double missing_bytes; // > 0: on one GPU, and the change would fit with that much more
    bool is_of_job;       // another job, not another plan for this one
} Advice;

typedef struct {
    Plan plan;
    Estimate estimate;
    double loses_frac;         // objective over the best plan's, minus 1; 0 for the best
    bool within_noise_of_best; // the estimate cannot tell them apart (planner/why/explain.h)
    int variant_of;            // the first entry with the same degrees, micro_batch and recompute
                               // (other chunks, schedule, ZeRO stage, cp_method); -1 for none
    const char *why;           // "4.1 % slower: +310 ms bubble, ..."; for the best, what it wins by
    Advice advice;             // set by planner_advise, of the nodes' own order
    const struct GroupShare *shares; // [num_shares] on groups of different machines: where its
    int num_shares;                  // stages lie (planner/groups/group_answer.h)
    const PlacementResult
        *placement; // of its nodes (planner/questions/place_best.h); NULL: their own order
} PlannedEntry;

// Where nothing fits: the configuration that misses by the fewest bytes.
typedef struct {
    Plan plan;
    RankMemory memory;
    double missing_bytes;     // > 0
    const char *would_fit_if; // the smallest change found that fits; NULL where none was found
} ClosestMiss;

enum { IDLE_NEAR_NUMBERS = 12, IDLE_MAX_NUMBERS = IDLE_NEAR_NUMBERS + 24 };

// A smaller number of GPUs that was looked at.
typedef struct {
    int num_gpus;
    const char *ruled_out_by; // "bound", "search", ...; NULL: it was the best so far
    bool is_open;             // not ruled out in the time given
} IdleLook;

// How many of the cluster's GPUs the answer uses, and why (planner/questions/idle.h).
typedef struct {
    int total_gpus;     // 0: idle GPUs were not a question
    int all_gpus;       // of them that can be used at most
    bool all_are_legal; // there is a plan for these
    IdleLook looks[IDLE_MAX_NUMBERS];
    int num_looks;
} IdleAnswer;

typedef struct {
    PlanObjective objective;
    bool robust;                 // as asked for
    double fit_probability_frac; // as asked for
    int num_axes;                // of a frontier (planner/questions/frontier.h); 0 for a ranking
    PlannedEntry *entries;       // [num_entries] best first
    int num_entries;             // 0 where nothing fits; fewer than `top` where fewer fit
    PlannedEntry *riskier; // [num_riskier] better than entries[0], but less sure to fit than was
    int num_riskier;       // asked for, best first (planner/questions/riskier.h)
    SearchStats stats;
    IdleAnswer idle;                     // zeroed but of planner_search_idle
    const struct GroupsAnswer *groups;   // on groups of different machines, once compared
                                         // (planner/groups/group_answer.h); else NULL
    const struct SwitchAdvice *switches; // [num_switches] open choices of the software that would
    int num_switches; // help (planner/questions/switch_advice.h); 0 before it was asked
    ClosestMiss miss; // set only where num_entries is 0 and, with worst_value, nothing fits
} PlannerResult;

// Searches the best plans that fit. The result lives in the arena.
//   returns  STATUS_OK, also where nothing fits (num_entries 0, an answer: the caller exits with
//            1); STATUS_INVALID where the constraints leave no legal configuration: names them
Status planner_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                      PlannerResult *out);

// The scenario in which the search asks whether plans fit: with max_memory_bytes, and as surely as
// is asked for.
Scenario planner_limited(const Scenario *scenario, const PlannerOptions *options, Arena *arena);

// The probability that is asked for.
double planner_fit_probability(const PlannerOptions *options);

// The document of `plan --json`: plans, search, timing; where nothing fits, closest_miss. The
// caller owns the tree.
cJSON *planner_to_json(const PlannerResult *result);

// One sentence for people: why nothing fits and what would. Only where num_entries is 0.
const char *planner_miss_text(const PlannerResult *result, Arena *arena);
