// config/job/scenario_front.h - the encoder or the tower of a scenario's model: what the training
// says of its tokens, and what of a plan nothing supports with it.
#pragma once

#include "config/job/scenario.h"

// Fills in image_size and encoder_seq_len, and makes a tower part of the model where the training
// has images.
//   root  of the scenario, whose model, cluster and training were read
Status scenario_take_front(const JsonNode *root, Arena *arena, Scenario *scenario);

// Refuses splits that no stack makes: an encoder-decoder over pipeline stages or context-parallel
// ranks, a tower over several stages (Megatron-LM: a ViT lives on one pipeline stage), and either
// on groups of different machines.
Status scenario_check_front(const JsonNode *root, const Scenario *scenario);

// Refuses a model with a front; what: the command that cannot take it.
Status scenario_refuse_front(const Scenario *scenario, const char *what);
