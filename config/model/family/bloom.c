// BigScience's BLOOM.
#include "config/model/family/family.h"

const ModelFamily BLOOM_FAMILIES[] = {
    {
        .model_type = "bloom",
        .traits = {GPT2_KIND(true, true), .model.position = POSITION_ALIBI,
                   .model.embedding_norm = true},
        .intermediate_ratio = 4,
        .intermediate_fixed = true,
    },
    {0},
};
