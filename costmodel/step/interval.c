#include "costmodel/step/interval.h"

#include "config/cluster/cluster_groups.h"
#include "costmodel/kernel/compute.h"
#include "costmodel/memory/memory_interval.h"

#include <math.h>

static const double NORMAL_QUANTILE_90 = 1.2816; // leaves 10 % on either side
static const double NORMAL_QUANTILE_95 = 1.645;  // of a size: 10 % are beyond it
static const double INDEPENDENT_SHAPES = 4;      // linear layers of a layer

// The spread of products whose shapes are like those of the fit, and how far outside of it the
// step's products lie, by flops.
typedef struct {
    double flops, residual_flops;
} Products;

static void block_add(const Pool *pool, const Block *block, double times, Products *sum) {
    for (int i = 0; i < block->num_forward; i++) {
        const Op *op = &block->forward[i];
        if (op->kind != OP_GEMM) continue;
        sum->flops += times * op->flops;
        sum->residual_flops += times * op->flops * gemm_residual_p90_frac(pool, op);
    }
}

static int chunk_pool(const Cluster *cluster, const Plan *plan, int chunk) {
    return plan_rank_pool(cluster, plan, plan_chunk_rank(plan, chunk));
}

// Of the GPU furthest from those whose kernels were measured.
static double relative_spread(const Cluster *cluster, const Calibration *calibration) {
    double spread = 0;
    for (int i = 0; i < cluster->num_pools; i++) {
        const CalibratedKernels *kernels = cluster->pools[i].kernels;
        if (!kernels || !kernels->inherited) continue;
        spread = fmax(spread, kernels->foreign ? calibration->foreign_spread
                                               : calibration->inherited_spread);
    }
    return spread;
}

// Of the forward: the products of the backward have the same sides.
static double products_spread(const Cluster *cluster, const Plan *plan, const Workload *workload) {
    Products sum = {0};
    for (int i = 0; i < workload->num_blocks; i++) {
        double times[MAX_GROUPS] = {0};
        if (workload->blocks[i].num_forward == 0) continue;
        for (int c = 0; c < workload->num_chunks; c++)
            times[chunk_pool(cluster, plan, c)] += workload->chunks[c].num_blocks[i];
        for (int pool = 0; pool < cluster->num_pools; pool++)
            block_add(&cluster->pools[pool], &workload->blocks[i], times[pool], &sum);
    }
    if (sum.flops == 0) return 0;
    return sum.residual_flops / sum.flops / NORMAL_QUANTILE_95 / sqrt(INDEPENDENT_SHAPES);
}

double interval_known_variance(const Scenario *scenario, const Plan *plan, const Workload *workload,
                               const double *part_s, double step_time_s) {
    const Calibration *calibration = scenario->calibration;
    const Cluster *cluster = &scenario->cluster;
    if (!calibration) return 0;
    double products = part_s[PART_PRODUCTS] / step_time_s;
    double across = part_s[PART_ACROSS] / step_time_s;
    double kernels = products_spread(cluster, plan, workload);
    double relative = relative_spread(cluster, calibration);
    // What one's own run told is of this machine and stack.
    const bool known = calibration->gpu || plan_is_covered(scenario, plan);
    const double other = known ? 0 : scenario->evidence->other_step_spread;
    double octaves = fmax(0, log2(cluster->num_nodes / calibration->num_nodes));
    double beyond = octaves * calibration->octave_spread;
    return products * products * (kernels * kernels + relative * relative) +
           across * across * beyond * beyond + other * other;
}

double interval_run_variance(const Calibration *calibration, const double *part_s,
                             double step_time_s) {
    double variance = calibration->step_spread * calibration->step_spread;
    for (int k = 0; k < NUM_PARTS; k++) {
        double spread = part_s[k] / step_time_s * calibration->run_spread[k];
        variance += spread * spread;
    }
    return variance;
}

double interval_variance(const Calibration *calibration, const double *part_s, double step_time_s) {
    double variance = 0;
    for (int i = 0; i < NUM_PARTS; i++)
        for (int j = 0; j < NUM_PARTS; j++)
            variance += part_s[i] * part_s[j] * calibration->covariance[i][j];
    return variance / (step_time_s * step_time_s) +
           interval_run_variance(calibration, part_s, step_time_s);
}

void interval_set(const Calibration *calibration, const double *part_s, double known_variance,
                  double step_time_s, double *low_s, double *high_s) {
    double variance = known_variance;
    if (calibration) variance += interval_variance(calibration, part_s, step_time_s);
    double width = exp(NORMAL_QUANTILE_90 * sqrt(variance));
    *low_s = step_time_s / width;
    *high_s = step_time_s * width;
}
