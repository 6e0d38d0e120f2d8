// sim/disturb_compute.h - stragglers and jitter: how much longer a computation takes on a GPU.
//
// A slow GPU takes `factor` times as long to compute, all the step. Jitter multiplies every
// computation of every GPU by a draw of its own from the log-normal distribution of mean 1 and
// standard deviation jitter_frac. A draw is a function of (seed, repetition, GPU, instruction, how
// many entries of jitter stand before this one). Both act on the GPU's own work: what a
// computation's price holds for collectives inside its layers and for the host stays as it is.
// Replicas that meet inside a computation (sim/meeting.h) wait for the slowest of them. Source:
// log-normal, as its factor is positive and products of factors stay in the family.
#pragma once

#include "config/job/disturb.h"
#include "sim/lower.h"

#include <stdbool.h>

// Sets the duration of every computation of a lowered Program in one repetition.
//   kinds  the DisturbKinds that take effect, as bits
void computations_disturb(const LowerInput *input, const Disturb *disturb, int num_disturb,
                          unsigned kinds, int repetition, Arena *arena, Lowered *lowered);

// Whether a step differs from repetition to repetition.
bool disturb_is_random(const Disturb *disturb, int num_disturb, unsigned kinds);
