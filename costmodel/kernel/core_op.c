#include "costmodel/kernel/core_op.h"

#include <math.h>
#include <string.h>

double core_product_s(const CoreProduct *law, double m, double n, double k) {
    if (m <= 0 || n <= 0 || k <= 0) return 0;
    double copies = law->half_m / m + law->half_n / n + law->half_k / k;
    return law->call_s + 2 * m * n * k / law->flops_per_s * (1 + copies);
}

double core_attention_s(const CoreAttention *law, double flops, double tokens, double head_dim) {
    double more = law->half_tokens / tokens + law->half_head_dim / head_dim;
    return law->call_s + flops / law->flops_per_s * (1 + more);
}

double core_loop_s(const CoreLaws *laws, CoreLoop loop, bool backward, double bytes,
                   double angles) {
    return laws->call_s + bytes / laws->bytes_per_s[loop][backward] + angles * laws->angle_s;
}

CoreLoop core_loop(const Op *op) {
    // Names of workload/block_*.c and workload/pass/workload.c.
    static const struct {
        const char *name;
        CoreLoop loop;
    } LOOPS[] = {
        {"activation", CORE_ACTIVATION},
        {"gated_activation", CORE_GATED_ACTIVATION},
        {"rope", CORE_ROPE},
        {"embedding", CORE_EMBEDDING},
        {"softmax", CORE_CROSS_ENTROPY},
        {"cross_entropy", CORE_CROSS_ENTROPY},
    };
    static const char NORM[] = "_norm";
    for (size_t i = 0; i < sizeof LOOPS / sizeof *LOOPS; i++)
        if (strcmp(op->name, LOOPS[i].name) == 0) return LOOPS[i].loop;
    size_t length = strlen(op->name), end = sizeof NORM - 1;
    if (length >= end && strcmp(op->name + length - end, NORM) == 0)
        return op->memory.subtracts_mean ? CORE_LAYERNORM : CORE_RMSNORM;
    return CORE_ADD;
}

// Recomputed operators are forward ones in the backward list.
static bool is_backward(const Op *op) {
    return op->phase != PHASE_FORWARD && !op->again;
}

static double product_s(const CoreLaws *laws, const Op *op) {
    const CoreProduct *law = &laws->products[is_backward(op) ? op->phase : PHASE_FORWARD];
    return op->gemm.groups * core_product_s(law, op->gemm.m, op->gemm.n, op->gemm.k);
}

// Its products; every expert has its share of the rows.
static double experts_s(const CoreLaws *laws, const Op *op) {
    const ExpertsOp *e = &op->experts;
    const CoreProduct *law = &laws->products[PHASE_FORWARD];
    const double held = (double)e->num_experts / e->num_ranks;
    const double rows = e->tokens * e->experts_per_token / e->num_experts;
    return held * (core_product_s(law, rows, e->inter_size * (e->gated ? 2 : 1), e->hidden_size) +
                   core_product_s(law, rows, e->hidden_size, e->inter_size));
}

enum { SCAN_TOKENS = 64, SCAN_DIM = 128 };

double core_op_s(const Gpu *gpu, const Op *op) {
    const CoreLaws *laws = &gpu->core[op->precision];
    switch (op->kind) {
    case OP_GEMM:
        return product_s(laws, op);
    case OP_ATTENTION:
        return core_attention_s(&laws->attention[op->backward], op->flops,
                                attention_op_tokens(&op->attention), op->attention.head_dim);
    case OP_SCAN: // its products are as small as those of attention over a chunk
        return core_attention_s(&laws->attention[op->backward], op->flops, SCAN_TOKENS, SCAN_DIM);
    case OP_EXPERTS:
        return experts_s(laws, op);
    case OP_MEMORY:
        if (op->bytes <= 0) return 0;
        return core_loop_s(laws, core_loop(op), is_backward(op), op->bytes, op->memory.angles);
    case OP_COLLECTIVE:
        break;
    }
    return 0;
}

double core_optimizer_s(const Gpu *gpu, int precision, double bytes) {
    return bytes / gpu->core[precision].bytes_per_s[CORE_OPTIMIZER][0];
}
