// Microsoft's Phi.
#include "config/model/family/family.h"

const ModelFamily PHI_FAMILIES[] = {
    {
        .model_type = "phi3",
        .traits = {LLAMA_KIND(2)},
        .window_rule = WINDOW_ALL,
    },
    {0},
};
