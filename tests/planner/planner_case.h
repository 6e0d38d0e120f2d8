// tests/planner/planner_case.h - small jobs to search, the same in every run.
#pragma once

#include "planner/planner.h"
#include "planner/space/space.h"

// How many scenarios a test looks at: all with MESHWRIGHT_TEST_FULL in the environment, else a
// third.
int case_count(int all);

// How many where each is a search that takes seconds under the sanitizers: there a ninth.
int case_count_slow(int all);

// Scenario number `number` of an endless list: small models (dense, with experts, uneven), 1 to 24
// GPUs (powers of two or not), several stacks.
Status case_scenario(int number, Arena *arena, Scenario *out);

// A limit of memory at which about half of the configurations fit; differs from case to case.
double case_memory_bytes(int number, const Scenario *scenario);

// A scenario of the presets, refused or not.
Status case_preset(const char *model, const char *cluster, int seq_len, int global_batch,
                   const char *parallel, Arena *arena, Scenario *out);

// Text that tells any two configurations apart.
const char *case_key(const Plan *plan, Arena *arena);

// All configurations of a family, those with some layers recomputed among them.
int case_num_plans(const SpaceFamily *family);
Plan case_plan(const SpaceFamily *family, int i);

// A search that has to succeed.
PlannerResult case_search(const Scenario *scenario, const PlannerOptions *options, Arena *arena);

// The two best plans of Llama-3.1-8B on so many H100 with these constraints (NULL: none).
Status case_search_gpus(int num_gpus, int batch, const char *parallel, Arena *arena,
                        PlannerResult *out);

// Whether every configuration was pruned or priced.
bool case_adds_up(const SearchStats *stats);

int case_num_layers(const Plan *plan); // of all chunks
