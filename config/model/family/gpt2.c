// GPT-2.
#include "config/model/family/family.h"

const ModelFamily GPT2_FAMILIES[] = {
    {
        .model_type = "gpt2",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_LEARNED,
                   .model.max_position_embeddings = 1024},
        .intermediate_ratio = 4,
    },
    {0},
};
