// A captured pass is replayed: the host launches nothing of whole layers, and about half where a
// scope of them is captured. What is captured has sizes that the host knows before.
#include "workload/technique/technique_rows.h"

static bool are_whole(const Execution *execution) {
    return (execution->cuda_graphs & (GRAPH_FULL | GRAPH_LAYER)) != 0;
}

static bool applies(const Builder *b) {
    return are_whole(b->execution);
}

static void rewrite(Builder *b) {
    for (int i = 0; i < b->num_units; i++) b->units[i].op.awaited_by_host = false;
}

static void step(const Execution *execution, StepTraits *traits) {
    if (are_whole(execution))
        traits->launched_frac = 0;
    else if (execution->cuda_graphs != GRAPH_NONE)
        traits->launched_frac *= 0.5;
}

const Technique TECHNIQUE_ROW_CUDA_GRAPHS = {
    .source = "NVIDIA/Megatron-LM, --cuda-graph-impl and --cuda-graph-scope",
    .applies = applies,
    .operators = rewrite,
    .step = step,
};
