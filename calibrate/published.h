// calibrate/published.h - published measurements of training steps: what ran, and what it took.
//
// A file has one JSON object per line:
//   {"id": "sc21-table1-1.7B", "family": "megatron-sc21", "source": "arXiv 2104.04473 Table 1",
//    "gate": true, "scenario": {...}, "truth": {"step_time_s": 3.528}}
// family   what is scored together: one source, one software release
// source   the citation, for people; may be left out
// gate     true (the default): the source states all that the prediction depends on; false:
//          something was assumed, so that the error says less about the predictor
// scenario as every command takes it, with a complete `parallel`
// truth    step_time_s or mfu_frac; memory_peak_bytes, memory_reserved_bytes where measured
// Further keys are refused.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

// 0 is not measured.
typedef struct {
    double step_time_s;
    double mfu_frac; // used where there is no step time
    double memory_peak_bytes;
    double memory_reserved_bytes;
} PublishedTruth;

typedef struct {
    const char *id;
    const char *family;
    const char *source; // NULL where it is not given
    bool stated;        // gate
    JsonNode scenario;  // a document of its own, whose file is "FILE:LINE: scenario"
    PublishedTruth truth;
} PublishedCase;

// Reads and checks a file; "-" is standard input. A scenario is only checked to be an object here:
// what the program refuses in it is a result (calibrate/validate.h).
Status published_load(const char *path, Arena *arena, PublishedCase **out, int *num_cases);

// The set that comes with the program: published/training.jsonl of the data folder.
Status published_load_bundled(Arena *arena, PublishedCase **out, int *num_cases);
