// workload/pass/front.h - an encoder or a tower for images: the pass that it makes of a
// micro-batch, and how a plan splits it.
//
// A tower lies on the first stage, with the word table. It is split by tp as the text is, but not
// by cp, and without sequence parallelism. Where tp does not divide its heads or its MLP, it is
// whole on every tensor-parallel rank, as one that is taken from Hugging Face's code is. An encoder
// is split as its decoder. (Megatron-LM, examples/multimodal: "Force CP=1 for Vision Transformer",
// "Disabling Sequence parallelism in Vision Transformer".)
#pragma once

#include "workload/pass/builder.h"

// Images, or what the encoder reads of each sequence.
Pass front_pass(const Scenario *scenario, const Plan *plan);

Split front_split(const Model *model, const Plan *plan);

// What the front of a builder's model does beside its layers, in a pass of the text: patches become
// tokens, and those become the text's; or the encoder's words and its last norm. Its weights are
// whole on every tensor-parallel rank.
void build_front_ends(Builder *b, const TrainingJob *job);

// Values between two layers of the front over those between two of the text; 0 without a front.
double front_values_frac(const Scenario *scenario);

// Model FLOPs of one sequence's front, forward and backward (workload.c, step_model_flops).
double front_model_flops(const Scenario *scenario);
