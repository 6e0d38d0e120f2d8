#include "costmodel/kernel/measured_experts.h"

#include "config/job/training.h"
#include "costmodel/kernel/kernel_moe.h"

#include <math.h>

static MoeDtype dtype_of(const Op *op) {
    const int recipe = op->experts.fp8_recipe;
    switch (op->precision) {
    case PRECISION_FP16:
    case PRECISION_BF16:
        return MOE_BFLOAT16;
    case PRECISION_FP8:
        return recipe == FP8_BLOCK || recipe == FP8_ROWWISE ? MOE_FP8_BLOCK : MOE_FP8;
    case PRECISION_MXFP8:
        return MOE_FP8;
    case PRECISION_NVFP4:
        return MOE_NVFP4;
    default:
        return NUM_MOE_DTYPES;
    }
}

MoeRouting experts_routing(const ExpertsOp *experts) {
    return (MoeRouting){.num_tokens = fmax(1, ceil(experts->tokens)),
                        .topk = experts->experts_per_token,
                        .num_experts = experts->num_experts,
                        .num_ranks = experts->num_ranks,
                        .group_limited = experts->group_limited};
}

// Whether some kernel of the format routes within groups: then those that do not are no answer.
static bool has_limited(const MoeKernels *kernels, MoeDtype dtype, bool gated) {
    for (int i = 0; i < kernels->num_kernels; i++) {
        const MoeKernel *k = &kernels->kernels[i];
        if (k->moe_dtype == (int)dtype && k->gated == gated && k->group_limited) return true;
    }
    return false;
}

double measured_experts_s(const CalibratedKernels *kernels, const Op *op) {
    const ExpertsOp *experts = &op->experts;
    const MoeDtype dtype = dtype_of(op);
    if (!kernels || kernels->foreign || dtype == NUM_MOE_DTYPES) return NAN;
    const MoeKernels *moe = &kernels->profile.moe;
    const bool limited = experts->group_limited && has_limited(moe, dtype, experts->gated);
    double least_s = INFINITY;
    for (int i = 0; i < moe->num_kernels; i++) {
        const MoeKernel *kernel = &moe->kernels[i];
        if (kernel->moe_dtype != (int)dtype || kernel->gated != experts->gated) continue;
        if (kernel->group_limited != limited) continue;
        const MoeShape shape = {.hidden_size = experts->hidden_size,
                                .inter_size = experts->inter_size,
                                .routing = experts_routing(experts)};
        least_s = fmin(least_s, kernel_moe_s(&kernels->gpu, kernel, &shape));
    }
    return isfinite(least_s) ? least_s : NAN;
}
