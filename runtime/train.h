// runtime/train.h - the run of a plan: from the files to the last step.
#pragma once

#include "backend/backend.h"
#include "runtime/update.h"
#include "runtime/world.h"

typedef struct {
    const char *plan; // PLAN.json: a scenario
    bool cuda;        // else the CPU
    int dtype;        // Dtype of activations; NUM_DTYPES: by the plan's precision and the device
    int64_t num_steps;
    const char *data;   // a text; NULL: tokens are made up
    const char *log;    // a JSON line for each step; NULL: none
    const char *times;  // when instructions ran (base/times_file.h); NULL: not written
    const char *dump;   // folder (runtime/dump.h); NULL: none
    const char *save;   // folder for a checkpoint behind the last step; NULL: none
    int64_t save_every; // and behind every so many; 0: not
    const char *resume; // a checkpoint to go on with; NULL: none
    bool balanced;      // every expert gets as many tokens, whatever the router says
    uint64_t seed;
    UpdateSettings update;
} TrainOptions;

// What AdamW and its like are used with (Brown et al. 2020, arXiv:2005.14165, appendix B).
UpdateSettings update_defaults(void);

Status train(const TrainOptions *options, World *world);
