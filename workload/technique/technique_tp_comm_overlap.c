// Tensor-parallel gathers and scatters of the sequence run piece by piece beside the product that
// reads or makes what they move: the next, or the last.
#include "workload/technique/technique_rows.h"

static bool applies(const Builder *b) {
    return b->split.sequence_parallel && b->split.tp > 1;
}

static void rewrite(Builder *b) {
    for (int i = 0; i < b->num_units; i++) {
        Unit *unit = &b->units[i];
        const CollectiveOp *collective = &unit->op.collective;
        if (unit->op.kind != OP_COLLECTIVE || collective->group != GROUP_TP) continue;
        if (collective->kind == COLLECTIVE_ALL_GATHER && unit->gather_again)
            unit->op.pipelined_with = i + 1;
        if (collective->kind == COLLECTIVE_REDUCE_SCATTER && i > 0 && b->units[i - 1].has_weight)
            unit->op.pipelined_with = i - 1;
    }
}

const Technique TECHNIQUE_ROW_TP_COMM_OVERLAP = {
    .source =
        "Wang et al., \"Overlap Communication with Dependent Computation via Decomposition\", "
        "ASPLOS 2023; NVIDIA/TransformerEngine, user buffers; pytorch/pytorch, async tensor "
        "parallelism",
    .applies = applies,
    .operators = rewrite,
};
