// tests/laws/scenarios.h - sound scenarios at random, for laws that hold for all of them.
//
// A case is a document: model x machine x job, and how it is split. Models are presets, presets
// with other sizes, and models of no family (heads, groups of them, latents, experts, windows,
// vocabulary, tied words, norms, positions, biases); machines are presets, parts of their nodes and
// machines of one's own; jobs have a batch, a sequence, formats, an optimizer and switches; plans
// are any that are legal. What the reader or the plan refuses is drawn again.
#pragma once

#include "base/arena.h"
#include "config/job/scenario.h"
#include "config/software/kernel_shelf.h"
#include "plan/plan.h"
#include "tests/laws/draw.h"

#include <cjson/cJSON.h>
#include <stdint.h>

typedef enum {
    SPLIT_WHOLE, // `parallel` says all that matters
    SPLIT_SOME,  // it states a few keys, for a search
    SPLIT_NONE,  // there is none
} ScenarioSplit;

// Which of all scenarios a law speaks of.
typedef struct {
    const char *const *models; // presets, ends with NULL; NULL: all that are bundled
    bool only_presets;         // no variations, and no models of no family
    const char *const *stacks; // ends with NULL; NULL: Megatron-Core's
    int max_gpus;              // at least 1
    ScenarioSplit split;
} ScenarioSpace;

// A case as it was drawn and read.
typedef struct {
    const cJSON *document; // lives as long as the arena
    Scenario scenario;
    Plan plan; // resolved; of SPLIT_SOME and SPLIT_NONE with degrees of 1 where none is stated
} DrawnScenario;

// Case `number` of a seed. False where nothing sound was drawn in a hundred attempts.
//   shelf  of stacks and kernels, which must outlive the case; NULL: none
bool scenario_draw(const ScenarioSpace *space, uint64_t seed, uint32_t number,
                   struct KernelShelf *shelf, Arena *arena, DrawnScenario *out);

// Reads a document as a case. Refusals as of scenario_read and plan_resolve; of SPLIT_WHOLE also
// what nothing acts upon yet.
Status scenario_take(const cJSON *document, struct KernelShelf *shelf, Arena *arena,
                     DrawnScenario *out);

// Its parts, in the order in which they are drawn; the tree is the caller's.
cJSON *draw_model(const ScenarioSpace *space, Draw *draw);
cJSON *draw_cluster(const ScenarioSpace *space, Draw *draw);

// What the others have to fit to.
typedef struct {
    int num_gpus, num_layers, num_heads, num_kv_heads, num_experts, num_mtp;
    bool latent; // attention with latents
} DrawnSizes;

cJSON *draw_parallel(const ScenarioSpace *space, const DrawnSizes *sizes, Draw *draw);

// parallel  of draw_parallel, to which the batch fits
cJSON *draw_training(const ScenarioSpace *space, const DrawnSizes *sizes, const cJSON *parallel,
                     Draw *draw);
