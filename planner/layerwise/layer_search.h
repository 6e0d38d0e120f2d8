// planner/layerwise/layer_search.h - `plan --layerwise`: the best combinations of pp, split of
// layers, ep, etp and micro-batch when each layer may have a strategy of its own.
//
// Strategies are those of planner/space/space.h with one chunk a rank and 1f1b (or gpipe, where the
// scenario states it). Combinations are taken in the order of the least time that one of their
// strategies would take throughout with free memory and stages of equal work; the search ends where
// that is more than the K-th best step found. The choice within a combination is exact for the
// costs of planner/layerwise/layer_cost.h; a combination after the end can be better only where its
// layers, or they and the head, want different strategies. The best plan of the whole search with
// one strategy throughout, of which more schedules and groups of shards are searched, is listed
// where no combination is as fast: the first entry is never slower.
#pragma once

#include "planner/layerwise/layer_choice.h"
#include "planner/planner.h"

typedef struct {
    LayerChoice choice;
    const Plan *plans; // [num_plans] of the combination
    int num_plans;
} LayerEntry;

typedef struct {
    const LayerEntry *entries; // [num_entries] best first
    int num_entries;           // 0 where nothing fits
    int num_combinations, num_looked_at;
    bool stopped_early; // by the budget
    bool has_uniform;   // the best plan of the whole search, one strategy throughout
    Plan uniform;
    Estimate uniform_estimate;
    double wall_s;
} LayerResult;

// Fields of options in use: top, max_memory_bytes, budget_s, num_threads, progress, standing (of
// which it knows nothing), end_soon.
//   returns  STATUS_INVALID for what cannot be chosen layer by layer; names it
Status layer_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena,
                    LayerResult *out);

// The document of `plan --layerwise --json`. The caller owns the tree.
cJSON *layer_result_to_json(const LayerResult *result);

// What entry says of its layers, one line a run: "layers 0-11: tp 4 dp 2, zero 1, recompute full".
//   returns  the end of the run that begins with layer `from`
int layer_run_text(const LayerChoice *choice, int num_layers, int from, Arena *arena,
                   const char **text);

// Writes the integer program of the slowest stage of the best entry that a combination gave (its
// costs as they were used). Fails (STATUS_NO) where there is none.
Status layer_result_write_lp(const Scenario *scenario, const PlannerOptions *options,
                             const LayerResult *result, const char *path);
