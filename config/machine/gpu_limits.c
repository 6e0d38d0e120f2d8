#include "config/machine/gpu_limits.h"

#include <math.h>

// How narrow a format is: units of a higher number are never slower. Equal ones are not compared.
static const int NARROWNESS[NUM_PRECISIONS] = {
    [PRECISION_FP64] = 0, [PRECISION_FP32] = 0, [PRECISION_TF32] = 1,  [PRECISION_FP16] = 2,
    [PRECISION_BF16] = 2, [PRECISION_FP8] = 3,  [PRECISION_MXFP8] = 3, [PRECISION_NVFP4] = 4,
};

static Status order_check(const JsonNode *peaks, const double *peak_flops_per_s) {
    for (int wide = 0; wide < NUM_PRECISIONS; wide++)
        for (int narrow = 0; narrow < NUM_PRECISIONS; narrow++) {
            double least = peak_flops_per_s[wide], stated = peak_flops_per_s[narrow];
            if (NARROWNESS[wide] >= NARROWNESS[narrow] || stated == 0 || least <= stated) continue;
            JsonNode node = json_get(peaks, PRECISION_NAMES[wide]);
            return json_error(&node,
                              "%.15g is more than the %.15g of %s; expected at most that: a "
                              "narrower format is never slower",
                              least, stated, PRECISION_NAMES[narrow]);
        }
    return status_ok();
}

static Status memory_check(const JsonNode *root, const Gpu *gpu) {
    JsonNode node = json_get(root, "memory_bandwidth_bytes_per_s");
    double bytes_per_s = gpu->memory_bandwidth_bytes_per_s;
    if (bytes_per_s > MEMORY_MOST_BYTES_PER_S)
        return json_error(&node,
                          "%.15g is more than any memory gives; expected at most %.4g, of 16 "
                          "stacks of HBM4",
                          bytes_per_s, MEMORY_MOST_BYTES_PER_S);
    double peak_flops_per_s = 0;
    for (int p = 0; p < NUM_PRECISIONS; p++)
        peak_flops_per_s = fmax(peak_flops_per_s, gpu->peak_flops_per_s[p]);
    double ridge = peak_flops_per_s / bytes_per_s;
    if (ridge >= RIDGE_LEAST_FLOPS_PER_BYTE && ridge <= RIDGE_MOST_FLOPS_PER_BYTE)
        return status_ok();
    return json_error(&node,
                      "%.15g makes %.3g flops for each byte from memory at the highest of "
                      "peak_flops_per_s, %.15g; expected %.15g to %.15g",
                      bytes_per_s, ridge, peak_flops_per_s, RIDGE_LEAST_FLOPS_PER_BYTE,
                      RIDGE_MOST_FLOPS_PER_BYTE);
}

Status gpu_check_limits(const JsonNode *root, const Gpu *gpu) {
    JsonNode peaks = json_get(root, "peak_flops_per_s");
    TRY(order_check(&peaks, gpu->peak_flops_per_s));
    return memory_check(root, gpu);
}

static Status value_check(const JsonNode *node, const Gpu *bundled, double stated,
                          double datasheet) {
    if (stated <= datasheet * (1 + DATASHEET_TOLERANCE_FRAC)) return status_ok();
    if (datasheet == 0)
        return json_error(node,
                          "%.15g, but %s has no such units; leave it out, or give the profile "
                          "another name",
                          stated, bundled->name);
    return json_error(node,
                      "%.15g is more than the %.15g of the datasheet of %s; expected at most %.4g "
                      "%% above, or another name",
                      stated, datasheet, bundled->name, 100 * DATASHEET_TOLERANCE_FRAC);
}

Status gpu_check_datasheet(const JsonNode *root, const Gpu *gpu, const Gpu *bundled) {
    JsonNode peaks = json_get(root, "peak_flops_per_s");
    for (int p = 0; p < NUM_PRECISIONS; p++) {
        JsonNode node = json_get(&peaks, PRECISION_NAMES[p]);
        TRY(value_check(&node, bundled, gpu->peak_flops_per_s[p], bundled->peak_flops_per_s[p]));
    }
    JsonNode memory = json_get(root, "memory_bytes");
    JsonNode bandwidth = json_get(root, "memory_bandwidth_bytes_per_s");
    TRY(value_check(&memory, bundled, gpu->memory_bytes, bundled->memory_bytes));
    return value_check(&bandwidth, bundled, gpu->memory_bandwidth_bytes_per_s,
                       bundled->memory_bandwidth_bytes_per_s);
}
