// workload/front.h - an encoder or a tower for images as a scenario of its own: its sizes, its
// tokens and how a plan splits it. For workload.c.
//
// A tower lies on the first stage, with the word table. It is split by tp as the text is, but not
// by cp, and without sequence parallelism; where tp does not divide its heads or its MLP, it is
// whole on every tensor-parallel rank, as one that is taken from Hugging Face's code is. An encoder
// is split as its decoder. (Megatron-LM, examples/multimodal: "Force CP=1 for Vision Transformer",
// "Disabling Sequence parallelism in Vision Transformer".)
#pragma once

#include "workload/builder.h"

typedef struct {
    Scenario
        scenario; // its model is the front's, its sequences are images or what an encoder reads
    Plan plan;    // a micro-batch is of so many of those
} FrontJob;

void front_job(const Scenario *scenario, const Plan *plan, FrontJob *out);

// What the front does beside its layers: patches become tokens, and those become the text's; or the
// encoder's words and its last norm. Its weights are whole on every tensor-parallel rank.
void build_front_ends(Builder *b);

// Values between two layers of the front over those between two of the text; 0 without a front.
double front_values_frac(const Scenario *scenario);

// Model FLOPs of one sequence's front, forward and backward (workload.c, step_model_flops).
double front_model_flops(const Scenario *scenario);
