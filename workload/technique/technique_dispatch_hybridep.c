// As DeepEP's (technique_dispatch_deepep.c). Megatron Core has the host wait for the counts here as
// well, unless it is given the number of rows.
#include "workload/technique/technique_rows.h"

static bool applies(const Builder *b) {
    return b->execution->moe_dispatcher == DISPATCH_HYBRIDEP;
}

const Technique TECHNIQUE_ROW_DISPATCH_HYBRIDEP = {
    .source = "deepseek-ai/DeepEP, branch hybrid-ep (NVIDIA); NVIDIA/Megatron-LM, "
              "megatron/core/transformer/moe/fused_a2a.py",
    .applies = applies,
    .load = expert_load_once_per_rank,
};
