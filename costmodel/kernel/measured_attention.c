#include "costmodel/kernel/measured_attention.h"

#include "costmodel/kernel/kernel_context.h"
#include "costmodel/kernel/kernel_generation.h"

#include <math.h>

// As the tables have it: latent attention shares one compressed key between all heads.
static AttentionShape shape_of(const AttentionOp *op, double tokens) {
    const bool latent = op->latent_dim > 0;
    AttentionVariant variant = {.attn_dtype = ATTENTION_BFLOAT16,
                                .kv_cache_dtype = ATTENTION_BFLOAT16,
                                .head_dim = (int)op->head_dim};
    if (op->window > 0 && op->window < tokens) variant.window_size = (int)op->window;
    if (latent) variant.head_dim = (int)((op->head_dim + op->v_head_dim) / 2);
    return (AttentionShape){.variant = variant,
                            .batch = fmax(1, op->sequences),
                            .tokens = tokens,
                            .heads = op->heads,
                            .kv_heads = latent ? 1 : op->kv_heads};
}

static double prompt_s(const CalibratedKernels *kernels, const AttentionOp *op) {
    const KernelProfile *profile = &kernels->profile;
    const AttentionShape shape = shape_of(op, op->queries);
    return kernel_context_s(
        &kernels->gpu, op->latent_dim > 0 ? &profile->context_mla : &profile->context_attention,
        &shape);
}

// Latent: all heads read one row of compressed numbers for each key, which the tables' formula has
// as a key and a value of half its size.
static double step_s(const CalibratedKernels *kernels, const AttentionOp *op) {
    const KernelProfile *profile = &kernels->profile;
    AttentionShape shape = shape_of(op, op->keys);
    if (op->latent_dim == 0)
        return kernel_generation_s(&kernels->gpu, &profile->generation_attention, &shape);
    shape.variant.head_dim = (int)(op->latent_dim / 2);
    return kernel_generation_s(&kernels->gpu, &profile->generation_mla, &shape);
}

double measured_attention_s(const CalibratedKernels *kernels, const Op *op) {
    const AttentionOp *attention = &op->attention;
    if (!kernels || kernels->foreign || op->backward || !attention->served) return NAN;
    if (!attention->causal || attention->heads < 1) return NAN;
    if (attention->queries <= 1) return step_s(kernels, attention);
    return attention->queries < attention->keys ? NAN : prompt_s(kernels, attention);
}
