// planner/harvest/sketch_held.h - what ranks hold at least, from sums over their blocks. For
// sketch.c and sketch_splits.c; costmodel/memory/memory.h has the sources.
#pragma once

#include "config/job/scenario.h"
#include "planner/harvest/sketch.h"
#include "workload/pass/bytes.h"

// What does not depend on the rank.
typedef struct {
    StateBytes state;
    int zero_stage;
    double dense_parts, expert_parts; // that shards are cut into
    double outside_bytes;
    double counted_factor; // RankMemory.counted_bytes over needs_bytes
    bool anew;             // gradients are made by the step's only backward
    bool reduces_once;     // Plan.reduces_once
    int num_replicas;      // dp x cp
} SketchHeld;

SketchHeld sketch_held(const Scenario *scenario, const Plan *plan);

// Bytes that count of a rank with these parameters, and activations.
double sketch_held_bytes(const Scenario *scenario, const SketchHeld *held, double dense_parameters,
                         double expert_parameters, double activation_bytes);

// Chunks and micro-batches that a rank holds when its first backward begins, that of its last
// chunk; of each chunk, [vpp]. Where that is not known, one of each: of the micro-batch that goes
// back first.
//   returns  whether it is
bool sketch_units_held(const Plan *plan, int rank, int *units);
