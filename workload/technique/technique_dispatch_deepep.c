// Kernels of their own carry a token once to each rank that has some of its experts, and write it
// where it belongs.
#include "workload/technique/technique_rows.h"

static bool applies(const Builder *b) {
    return b->execution->moe_dispatcher == DISPATCH_DEEPEP;
}

const Technique TECHNIQUE_ROW_DISPATCH_DEEPEP = {
    .source = "deepseek-ai/DeepEP; DeepSeek-AI, \"DeepSeek-V3 Technical Report\", "
              "arXiv:2412.19437, section 3.2.2",
    .applies = applies,
    .load = expert_load_once_per_rank,
};
