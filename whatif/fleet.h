// whatif/fleet.h - which cluster trains so many tokens in so many days: of each kind of machine the
// smallest, and what more or fewer of them would cost and take.
//
// Method: the job is put on each preset in turn; the fewest nodes whose best plan is fast enough by
//         planner/questions/sizing.h; then the best plans of a quarter, half, twice and four times
//         as many. Of all these sizes the frontier holds those that no other one beats in both time
//         and cost. Each kind of machine has FLEET_BUDGET_S from the moment that a number is found:
//         what the search has not ruled out by then leaves the number unproven (sizing.is_proven
//         false).
// Limits: computing alone; whatif/goodput.h has what failures take. Prices and powers are those of
//         the GPUs' profiles, of all hours of the run.
#pragma once

#include "base/json.h"
#include "planner/planner.h"
#include "planner/questions/sizing.h"

enum { FLEET_MAX_PRESETS = 128, FLEET_NUM_SIZES = 5 };
enum { FLEET_BUDGET_S = 4, FLEET_SIZE_BUDGET_S = 1 }; // of a row, and of each of its sizes

// One number of GPUs.
typedef struct {
    int num_gpus;
    Plan plan;
    Estimate estimate;
    RunTotals run;
    bool is_on_frontier;
} FleetSize;

// One kind of machine.
typedef struct {
    const char *preset, *gpu;
    const char *refusal;              // why the job cannot run there; NULL: it can
    Sizing sizing;                    // set where it can
    FleetSize sizes[FLEET_NUM_SIZES]; // rising; none where sizing found no number
    int num_sizes, wanted;            // wanted: which of them is the smallest that is fast enough
    double wall_s;
} FleetEntry;

// Called as soon as a kind of machine is decided.
typedef void (*FleetTell)(void *context, const FleetEntry *entry);

typedef struct {
    double num_tokens, days;
    const FleetEntry *entries; // [num_entries] in the order of the presets
    int num_entries, num_found;
    int num_asked; // presets; more than entries where the search was ended early
    double wall_s;
} Fleet;

// The best connected preset of each GPU: the most NIC bandwidth for a GPU, then the largest
// scale-up domain, then the first by name.
Status fleet_presets(Arena *arena, const char *const **names, int *num_names);

// Of the scenario's `cluster` nothing is kept; of a plan.json neither is `parallel`.
//   presets  that exist
//   planner  its end_soon ends the look at further presets; what is decided is the answer
//   tell     may be NULL
Status fleet_run(const Scenario *scenario, const char *const *presets, int num_presets,
                 double num_tokens, double days, const PlannerOptions *planner, FleetTell tell,
                 void *tell_context, Arena *arena, Fleet *out);

// {"schema", "fleet": {"tokens", "days", "stopped_early", "clusters": [...]}, "timing"}. The
// caller owns the tree.
cJSON *fleet_to_json(const Fleet *fleet);
