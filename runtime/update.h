// runtime/update.h - from gradients to weights: norm, clipping, optimizer.
#pragma once

#include "runtime/rank.h"

typedef struct {
    double learning_rate, weight_decay; // the decay is of matrices alone
    double beta1, beta2, epsilon;       // AdamW
    double momentum_frac;               // SGD
    double max_norm;                    // of the gradient; 0: not clipped
} UpdateSettings;

// Of one step, the same on all ranks.
typedef struct {
    double loss;          // mean over the tokens of the global batch
    double gradient_norm; // of all parameters, before it is clipped
} StepValues;

// Loss and norm of the reduced gradients: the one time in a step that the host waits.
Status step_values(Rank *rank, StepValues *out);

// Updates this rank's shards. step: from 1.
void weights_update(Rank *rank, const UpdateSettings *settings, double gradient_norm, int64_t step);
