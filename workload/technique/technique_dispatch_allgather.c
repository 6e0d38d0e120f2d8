// Instead of each copy of a token to its expert, all tokens go to all ranks of the group, which
// take what is theirs, in order; and partial sums of all come back.
#include "workload/technique/technique_rows.h"

static bool applies(const Builder *b) {
    return b->execution->moe_dispatcher == DISPATCH_ALLGATHER;
}

static void rewrite(const Builder *b, ExpertLoad *load) {
    (void)b;
    load->dispatch = COLLECTIVE_ALL_GATHER;
    load->combine = COLLECTIVE_REDUCE_SCATTER;
    load->carries_all = true;
    load->sorted_by_expert = false;
}

const Technique TECHNIQUE_ROW_DISPATCH_ALLGATHER = {
    .source = "NVIDIA/Megatron-LM, megatron/core/transformer/moe/token_dispatcher.py, "
              "MoEAllGatherTokenDispatcher",
    .applies = applies,
    .load = rewrite,
};
