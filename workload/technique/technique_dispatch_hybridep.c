// As DeepEP's (technique_dispatch_deepep.c), by kernels that read the counts on the device.
#include "workload/technique/technique_rows.h"

static bool applies(const Builder *b) {
    return b->execution->moe_dispatcher == DISPATCH_HYBRIDEP;
}

static void rewrite(const Builder *b, ExpertLoad *load) {
    expert_load_once_per_rank(b, load);
}

const Technique TECHNIQUE_ROW_DISPATCH_HYBRIDEP = {
    .source = "deepseek-ai/DeepEP, branch hybrid-ep (NVIDIA)",
    .applies = applies,
    .load = rewrite,
};
