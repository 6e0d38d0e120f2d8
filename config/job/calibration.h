// config/job/calibration.h - how far the parts of a step are from their predictions: what runs have
// told, and how much is left uncertain.
//
// Model:  log t_measured = log t_predicted + sum_k share_k theta_k + e, where share_k is the share
//         of the step that part k takes on its critical path. The log factor of the part is theta_k
//         (normal, with the mean and covariance kept here; one machine and software share it).
//         Every run has a normal one of its own beside it (run_spread). What no part explains is e
//         (normal, step_spread). The interval is made of it in costmodel/step/interval.h. In
//         costmodel/pass/price.h the parts are multiplied by their factors. `meshwright calibrate`
//         writes such documents.
// Files:  hw-profiles/steps.json holds what every prediction begins with; a scenario's key
//         `calibration` names another. Spreads are standard deviations of a natural log, and
//         `correlation` (7 x 7, in the order of the parts; absent: independent) joins them. What a
//         run has told holds for its `gpu`, `stack` and `stack_version` (absent: none was stated)
//         alone; a document of many machines' steps has `sources` and none of the three.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

typedef enum {
    PART_PRODUCTS,
    PART_ATTENTION, // fused; unfused attention is products and memory-bound operators
    PART_MEMORY,    // operators that are bound by memory
    PART_HOST,      // launches and Python that the GPU waits for
    PART_INSIDE,    // collectives and messages inside a scale-up domain
    PART_ACROSS,    // and across domains
    PART_OPTIMIZER, // its computation
    NUM_PARTS
} StepPart;

extern const char *const PART_NAMES[NUM_PARTS + 1]; // ends with NULL

typedef struct {
    const char *title;
    const char *path;          // of the scenario's own document; NULL: the bundled one
    const char *gpu;           // of the run, as scenario_gpus names it; NULL, and so stack: any
    const char *stack;         // of the run
    const char *stack_version; // NULL: none was stated
    double factor[NUM_PARTS];  // exp of the mean of theta
    double covariance[NUM_PARTS][NUM_PARTS]; // of theta; symmetric, positive semidefinite
    double run_spread[NUM_PARTS];            // of what differs anew in every run
    double step_spread;                      // of e
    // What widens the interval:
    double inherited_spread; // of products, where a GPU takes a relative's measured kernels
    double foreign_spread;   // the same, where the relative is of another architecture
    double octave_spread;    // of `across`, for each doubling of nodes beyond those measured
    double num_nodes;        // the largest number that was measured
} Calibration;

// Reads the bundled document.
Status calibration_load_default(Arena *arena, const Calibration **out);

// Reads the document that a scenario's key names (relative to the scenario), or the bundled one
// where the key is absent.
Status calibration_load(const JsonNode *value, Arena *arena, const Calibration **out);

// Refuses, at the scenario's key, a calibration of another GPU or of another stack or release.
//   stack_version  NULL where the scenario states none
Status calibration_check(const JsonNode *value, const Calibration *calibration, const char *gpu,
                         const char *stack, const char *stack_version);

// The document again, without measured and sources. The caller owns the tree.
cJSON *calibration_to_json(const Calibration *calibration);
