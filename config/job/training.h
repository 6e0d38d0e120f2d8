// config/job/training.h - a job that trains: how much a step computes (CONTRACT.md, section
// "training"). By which software and how is config/software/execution.h's.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "config/job/fine_tuning.h"
#include "config/machine/gpu.h"
#include "config/software/execution.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { OPTIMIZER_ADAM, OPTIMIZER_SGD, OPTIMIZER_MUON, NUM_OPTIMIZERS } Optimizer;
extern const char *const OPTIMIZER_NAMES[]; // ends with NULL

// Sequences of one length.
typedef struct {
    int64_t length; // tokens, at most seq_len
    double frac;    // of all sequences
} LengthShare;

typedef struct {
    int64_t seq_len;      // tokens
    int64_t global_batch; // sequences
    int optimizer;        // Optimizer
    bool causal;
    int images_per_sequence;             // for the model's tower; 0: it is left out
    int image_size;                      // pixels a side; the tower's own where absent
    int64_t encoder_seq_len;             // tokens the encoder reads; seq_len where absent
    double moe_imbalance;                // busiest expert's tokens over the mean; 1 is balanced
    double capacity_factor;              // 0: no tokens are dropped or padded
    const LengthShare *sequence_lengths; // [num_sequence_lengths] fractions add up to 1
    int num_sequence_lengths;            // 0: all are of seq_len
    FineTuning tuning;                   // which weights are trained
} TrainingJob;

// Reads the training object with how it is executed; switches that are absent take the stack's
// defaults. The GPU must support the precision.
//   shelf  of stacks (config/software/kernel_shelf.h); NULL: none
struct KernelShelf;
Status training_load(const JsonNode *value, const Gpu *gpu, struct KernelShelf *shelf, Arena *arena,
                     TrainingJob *job, Execution *execution);
