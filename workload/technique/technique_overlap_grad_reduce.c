// Gradients are reduced among data-parallel ranks beside the backward that makes them, in buckets:
// whole ones beside the last backward of a chunk, what ZeRO-2 and -3 scatter in every backward
// beside that of the block before.
#include "workload/technique/technique_rows.h"

static void rewrite(const Builder *b, OperatorList *list) {
    (void)b;
    shards_beside_blocks(list, COLLECTIVE_REDUCE_SCATTER);
}

static void step(const Execution *execution, StepTraits *traits) {
    (void)execution;
    traits->reduces_beside = true;
}

const Technique TECHNIQUE_ROW_OVERLAP_GRAD_REDUCE = {
    .source = "Li et al., \"PyTorch Distributed\", VLDB 2020, arXiv:2006.15704, section 3.2.3; "
              "Zhao et al., \"PyTorch FSDP\", 2023, arXiv:2304.11277, section 3.3",
    .applies = blocks_have_shards,
    .list = rewrite,
    .step = step,
};
