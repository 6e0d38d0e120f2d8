#include "costmodel/kernel/kernel_nccl.h"

#include <math.h>
#include <stddef.h>

// Growth of the smallest message's time per further rank of the group, over that of 2 ranks: mean
// of A100, H100, H200, B200 and L40S, 8 against 2 GPUs (fitted, hw-profiles/kernels).
static const double HOP_FRAC[NUM_NCCL_OPS] = {0.17, 0.28, 0.05, 0.17};

// What of the wire's growth with the group shows beyond the sizes that were measured, where the
// link has switches: 2 ranks reach less of it than 8 do, and copies of a rank's own part do not
// grow. A100, H100, H200, B200, B300 and GB300 are each predicted best by 0.3 to 0.5 from their 2
// GPUs. Ranks on a tree of PCIe share its links.
static const double SWITCHED_POWER = 0.4;

double nccl_curve_s(const NcclCurve *curve, double bytes) {
    int last = curve->num_points - 1, i = 0;
    if (bytes <= curve->bytes[0]) return curve->seconds[0];
    if (bytes >= curve->bytes[last]) return curve->seconds[last] * bytes / curve->bytes[last];
    while (bytes > curve->bytes[i + 1]) i++;
    double t = log(bytes / curve->bytes[i]) / log(curve->bytes[i + 1] / curve->bytes[i]);
    return exp((1 - t) * log(curve->seconds[i]) + t * log(curve->seconds[i + 1]));
}

static double latency_s(const NcclCurve *curve) {
    double least_s = curve->seconds[0];
    for (int i = 1; i < curve->num_points; i++) least_s = fmin(least_s, curve->seconds[i]);
    return least_s;
}

static double between_s(const NcclCurve *a, const NcclCurve *b, double n, double bytes) {
    NcclOp op = (NcclOp)a->op;
    double a_s = nccl_curve_s(a, bytes), b_s = nccl_curve_s(b, bytes);
    double share = 1 - latency_s(b) / b_s;
    double hops = (n - a->num_gpus) / (b->num_gpus - a->num_gpus);
    double from = nccl_wire_frac(op, a->num_gpus), to = nccl_wire_frac(op, b->num_gpus);
    double wire = (nccl_wire_frac(op, n) - from) / (to - from);
    double most = (1 - share) * latency_s(b) / latency_s(a) + share * to / from;
    double slower = fmax(1, b_s / a_s / fmax(1, most));
    double even_s = a_s + (b_s / slower - a_s) * ((1 - share) * hops + share * wire);
    return even_s * pow(slower, log(n / a->num_gpus) / log((double)b->num_gpus / a->num_gpus));
}

static double beyond_s(const NcclCurve *nearest, bool switched, double n, double bytes) {
    NcclOp op = (NcclOp)nearest->op;
    double alpha_s = latency_s(nearest), rest_s = nccl_curve_s(nearest, bytes) - alpha_s;
    double hops = (1 + HOP_FRAC[op] * (n - 2)) / (1 + HOP_FRAC[op] * (nearest->num_gpus - 2));
    double wire = nccl_wire_frac(op, n) / nccl_wire_frac(op, nearest->num_gpus);
    return alpha_s * hops + rest_s * (switched ? pow(wire, SWITCHED_POWER) : wire);
}

double kernel_nccl_s(const NcclKernels *kernels, NcclOp op, NcclDtype dtype, double num_gpus,
                     double bytes) {
    const NcclCurve *below = NULL, *above = NULL;
    for (int i = 0; i < kernels->num_curves; i++) {
        const NcclCurve *curve = &kernels->curves[i];
        if (curve->op != (int)op || (curve->dtype != NCCL_ANY && curve->dtype != (int)dtype))
            continue;
        if (curve->num_gpus <= num_gpus) below = curve;
        if (!above && curve->num_gpus >= num_gpus) above = curve;
    }
    if (!below && !above) return NAN;
    if (below == above) return nccl_curve_s(below, bytes);
    if (below && above) return between_s(below, above, num_gpus, bytes);
    return beyond_s(below ? below : above, kernels->switched, num_gpus, bytes);
}
