// runtime/run_setup.h - all that a run has before its first step: the plan expanded, the device,
// the groups, weights with their first values.
#pragma once

#include "costmodel/memory/memory.h"
#include "runtime/corpus.h"
#include "runtime/engine.h"
#include "runtime/train.h"

typedef struct Run {
    const TrainOptions *options;
    World *world;
    Arena arena;
    Scenario scenario;
    Plan plan;
    Workload workload;
    Program program;
    RankMemory account; // of this rank, by the Program
    Backend *backend;
    Rank rank;
    Engine engine;
    InstructionTimes times; // where they are wanted
    Corpus corpus;
    int32_t *host;     // [2][num_microbatches][tokens]: tokens, targets
    int32_t *sequence; // [2][seq_len] of one: tokens, targets
} Run;

// What it has made so far is in *run even after a failure: run_free gives it back.
Status run_prepare(const TrainOptions *options, World *world, Run *run);
void run_free(Run *run);

// Brings the tokens of a step, from 1, to the device.
void run_upload(Run *run, int64_t step);
