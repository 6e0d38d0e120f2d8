// Weights are gathered among data-parallel ranks beside the forward that reads them: updated ones
// beside the first forward of a chunk, shards of ZeRO-3 beside the block before in every pass.
#include "workload/technique/technique_rows.h"

static void rewrite(const Builder *b, OperatorList *list) {
    (void)b;
    shards_beside_blocks(list, COLLECTIVE_ALL_GATHER);
}

static void step(const Execution *execution, StepTraits *traits) {
    (void)execution;
    traits->gathers_beside = true;
}

const Technique TECHNIQUE_ROW_OVERLAP_PARAM_GATHER = {
    .source = "Zhao et al., \"PyTorch FSDP\", 2023, arXiv:2304.11277, section 3.3; "
              "NVIDIA/Megatron-LM, --overlap-param-gather",
    .applies = blocks_have_shards,
    .list = rewrite,
    .step = step,
};
