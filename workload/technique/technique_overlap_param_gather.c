// Weights are gathered among data-parallel ranks beside the forward that reads them: updated ones
// beside the first forward of a chunk, shards of ZeRO-3 beside the block before in every pass.
#include "workload/technique/technique_rows.h"

// Below, no block has shards.
static bool applies(const Builder *b) {
    return b->split.zero_stage >= 2;
}

static void rewrite(const Builder *b, OperatorList *list) {
    (void)b;
    for (int i = 0; i < list->num; i++) {
        Op *op = &list->ops[i];
        if (op->stream == STREAM_DP && op->collective.kind == COLLECTIVE_ALL_GATHER)
            op->collective.beside = BESIDE_BLOCKS;
    }
}

static void step(const Execution *execution, StepTraits *traits) {
    (void)execution;
    traits->gathers_beside = true;
}

const Technique TECHNIQUE_ROW_OVERLAP_PARAM_GATHER = {
    .source = "Zhao et al., \"PyTorch FSDP\", 2023, arXiv:2304.11277, section 3.3; "
              "NVIDIA/Megatron-LM, --overlap-param-gather",
    .applies = applies,
    .list = rewrite,
    .step = step,
};
