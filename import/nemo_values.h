// import/nemo_values.h - values of a Megatron Bridge configuration as people write them.
//
// Source: Megatron Bridge's utils/yaml_utils.py, which writes functions, types and members of
//         enumerations as tables; of members, Megatron Core's transformer/enums.py.
#pragma once

#include "base/arena.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

// Replaces in all sections, where there are such:
//   {_target_: torch.bfloat16, _call_: false}           by "bfloat16", as "torch.bfloat16" is
//   {_target_: ...AttnBackend, _args_: [1], ...}        by "flash", as "AttnBackend.flash" is
// A table of anything else, or of a member that is not known, stays.
void nemo_values_unwrap(cJSON *config, Arena *arena);

// Whether a key changes neither the price of a step nor the model, or has the value that Megatron
// Core takes by default.
bool nemo_key_is_own(const char *section, const cJSON *item);
