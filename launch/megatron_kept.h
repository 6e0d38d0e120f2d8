// launch/megatron_kept.h - flags of an imported command that no price knows.
//
// `import` reads them into provenance.imported.megatron of the scenario, flag by flag: a text, true
// (there) or false (not there); launch writes them as they were, instead of its own choice.
#pragma once

#include "launch/megatron.h"

typedef struct {
    const char *flag;
    const char *legal; // texts it may have, "a|b"; "0" a number from 0 on; NULL: a switch
} KeptFlag;

extern const KeptFlag MEGATRON_KEPT[]; // ends with a zero row

// Changes the command's flags to those kept, and says so in its notes. Refuses a value that is not
// legal; what contradicts the plan (a fused kernel where the plan has an unfused one) is not kept.
Status megatron_keep_flags(const Scenario *scenario, const Plan *plan, MegatronCommand *command);
