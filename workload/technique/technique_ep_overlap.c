// Exchanges of tokens with experts run beside the compute of another micro-batch. Meanwhile the
// device is not idle, so that nobody waits for the host that waits for the counts.
//
// What is hidden behind the exchange is not there to hide gradients behind: of few micro-batches
// that may cost more than it gains.
#include "workload/technique/technique_rows.h"

static bool matters(const Scenario *scenario) {
    return model_is_moe(&scenario->model);
}

static bool applies(const Builder *b) {
    return b->split.ep > 1;
}

static void rewrite(Builder *b) {
    for (int i = 0; i < b->num_units; i++) {
        Op *op = &b->units[i].op;
        op->awaited_by_host = false;
        if (op->stream == STREAM_EP && op->kind == OP_COLLECTIVE)
            op->collective.beside = BESIDE_MICROBATCH;
    }
}

const Technique TECHNIQUE_ROW_EP_OVERLAP = {
    .source = "DeepSeek-AI, \"DeepSeek-V3 Technical Report\", arXiv:2412.19437, section 3.2.1; "
              "NVIDIA/Megatron-LM, --overlap-moe-expert-parallel-comm",
    .matters = matters,
    .applies = applies,
    .operators = rewrite,
};
