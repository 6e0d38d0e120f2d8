#include "costmodel/kernel/kernel_attention.h"

#include <math.h>

// A head size off by two is as far as a window off by two; with and without window are far apart.
double attention_distance(const AttentionVariant *a, const AttentionVariant *b) {
    if (a->attn_dtype != b->attn_dtype || a->kv_cache_dtype != b->kv_cache_dtype) return INFINITY;
    double distance = fabs(log2((double)a->head_dim / b->head_dim));
    if ((a->window_size == 0) != (b->window_size == 0)) return distance + 100;
    if (a->window_size == 0) return distance;
    return distance + fabs(log2((double)a->window_size / b->window_size));
}

double attention_peak_flops_per_s(const Gpu *gpu, int attn_dtype) {
    return gpu->peak_flops_per_s[attn_dtype == ATTENTION_FP8 ? PRECISION_FP8 : PRECISION_BF16];
}

double cache_miss_frac(double bytes, double cache_bytes, double octaves) {
    double x = log2(bytes / cache_bytes) / octaves;
    if (x <= -1) return 0;
    if (x >= 1) return 1;
    return 0.5 + 0.25 * x * (3 - x * x);
}
