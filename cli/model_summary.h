// cli/model_summary.h - what `models NAME|FILE` says of one model.
#pragma once

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>

// Prints the model that a preset's name or the path of a config.json stands for: its parameters,
// the kinds of its layers and what a token leaves in the cache, then the object that a scenario
// takes as `model`. As JSON: {"model": that object, "summary": {...}}.
//   text_only  of the text in text_config alone, without towers
Status model_summary_print(const char *name, bool json, bool text_only, Arena *arena);
