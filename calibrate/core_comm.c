// What ranks do together, through the memory that they share.
#include "calibrate/core_fit.h"
#include "calibrate/fit.h"
#include "calibrate/fit_linear.h"
#include "costmodel/kernel/kernel_nccl.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_POINTS = 64 };

// What a profile may hold (config/kernels/kernel_nccl.h). More is no scatter of a machine that was
// measured alone.
static const double MOST_RESIDUAL_FRAC = 10;

// --- Curves

// The sizes of one collective among so many ranks, rising; returns how many.
static int points_of(const CoreRows *rows, int op, int num_ranks, double *bytes, double *seconds) {
    int num = 0;
    for (int i = 0; i < rows->num_comm && num < MOST_POINTS; i++) {
        const CommRow *r = &rows->comm[i];
        if ((int)r->op != op || r->num_ranks != num_ranks) continue;
        int at = num++;
        for (; at > 0 && bytes[at - 1] > r->bytes; at--) {
            bytes[at] = bytes[at - 1];
            seconds[at] = seconds[at - 1];
        }
        bytes[at] = r->bytes;
        seconds[at] = fit_round(r->time_s);
    }
    return num;
}

// Errors of a curve at its inner points, each by the curve without it; returns how many.
static int errors_of(const NcclCurve *curve, double *errors) {
    double bytes[MOST_POINTS], seconds[MOST_POINTS];
    int num = 0;
    for (int out = 1; out + 1 < curve->num_points; out++) {
        int left = 0;
        for (int i = 0; i < curve->num_points; i++) {
            if (i == out) continue;
            bytes[left] = curve->bytes[i];
            seconds[left++] = curve->seconds[i];
        }
        NcclCurve without = *curve;
        without.bytes = bytes, without.seconds = seconds, without.num_points = left;
        errors[num++] = fabs(nccl_curve_s(&without, curve->bytes[out]) / curve->seconds[out] - 1);
    }
    return num;
}

static int ranks_at_most(const CoreRows *rows) {
    int most = 0;
    for (int i = 0; i < rows->num_comm; i++)
        if (rows->comm[i].num_ranks > most) most = rows->comm[i].num_ranks;
    return most;
}

static void curves_make(const CoreRows *rows, Arena *arena, CoreFit *fit) {
    int most = ranks_at_most(rows), num_errors = 0;
    NcclCurve *curves = ARENA_ARRAY(arena, NUM_NCCL_OPS * (most + 1), NcclCurve);
    double *errors = ARENA_ARRAY(arena, rows->num_comm + 1, double);
    for (int op = 0; op < NUM_NCCL_OPS; op++) {
        for (int n = 2; n <= most; n++) {
            double *bytes = ARENA_ARRAY(arena, MOST_POINTS, double);
            double *seconds = ARENA_ARRAY(arena, MOST_POINTS, double);
            int num_points = points_of(rows, op, n, bytes, seconds);
            if (num_points == 0) continue;
            NcclCurve *curve = &curves[fit->curves.num_curves++];
            *curve = (NcclCurve){.op = op,
                                 .dtype = NCCL_ANY,
                                 .num_gpus = n,
                                 .num_points = num_points,
                                 .bytes = bytes,
                                 .seconds = seconds};
            int num = errors_of(curve, errors + num_errors);
            double *own = ARENA_ARRAY(arena, num + 1, double);
            for (int i = 0; i < num; i++) own[i] = errors[num_errors + i];
            CoreScore score = core_score(own, num);
            curve->residual_median_frac = fit_round(score.median_frac);
            curve->residual_p90_frac = fmax(curve->residual_median_frac, fit_round(score.p90_frac));
            num_errors += num;
        }
    }
    fit->curves.curves = curves;
    fit->scores[CORE_SCORE_COLLECTIVES] = core_score(errors, num_errors);
}

static Status curves_check(const NcclKernels *curves, const char *folder) {
    for (int i = 0; i < curves->num_curves; i++)
        if (curves->curves[i].residual_p90_frac > MOST_RESIDUAL_FRAC)
            return status_error(STATUS_MACHINE,
                                "%s/comm.csv: times of %s scatter by a factor of %.0f: other "
                                "programs took the cores; remove the table and measure again on "
                                "an idle computer",
                                folder, NCCL_OP_NAMES[curves->curves[i].op],
                                1 + curves->curves[i].residual_p90_frac);
    return status_ok();
}

// --- Messages

// Latency, a byte, and the root of the bytes (of an exchange): of an exchange the rate rises as
// 1 / (1 + sqrt(half_bytes / bytes)).
typedef struct {
    double latency_s, byte_s, root_s;
} MessageLaw;

static double message_s(const MessageLaw *law, double bytes) {
    return law->latency_s + bytes * law->byte_s + sqrt(bytes) * law->root_s;
}

// Returns the number of rows, their errors in errors.
static int messages_fit(const CoreRows *rows, CommOp op, Arena *arena, MessageLaw *out,
                        double *errors) {
    const int num_costs = op == COMM_EXCHANGE ? 3 : 2;
    double *a = ARENA_ARRAY(arena, 3 * rows->num_comm, double), costs[3] = {0};
    double *times = ARENA_ARRAY(arena, rows->num_comm, double);
    int num = 0;
    for (int i = 0; i < rows->num_comm; i++) {
        const CommRow *r = &rows->comm[i];
        if (r->op != op) continue;
        const double row[] = {1, r->bytes, sqrt(r->bytes)};
        for (int j = 0; j < num_costs; j++) a[num * num_costs + j] = row[j];
        times[num++] = r->time_s;
    }
    fit_linear(a, times, num, num_costs, arena, costs);
    *out = (MessageLaw){fit_round(costs[0]), fit_round(costs[1]), fit_round(costs[2])};
    for (int i = 0; i < num; i++)
        errors[i] = fabs(message_s(out, a[i * num_costs + 1]) / times[i] - 1);
    return num;
}

// The nominal rate of the link: nothing measured is faster.
static double fastest(const CoreRows *rows, double at_least) {
    double best = at_least;
    for (int i = 0; i < rows->num_comm; i++) {
        const CommRow *r = &rows->comm[i];
        double wire = (int)r->op < NUM_NCCL_OPS ? nccl_wire_frac((NcclOp)r->op, r->num_ranks) : 1;
        best = fmax(best, wire * r->bytes / r->time_s);
    }
    return best;
}

Status core_comm_fit(const CoreRows *rows, const char *folder, Arena *arena, CoreFit *out) {
    MessageLaw one, step;
    double *errors = ARENA_ARRAY(arena, rows->num_comm + 1, double);
    int num_one = messages_fit(rows, COMM_SEND_RECV, arena, &one, errors);
    int num_steps = messages_fit(rows, COMM_EXCHANGE, arena, &step, errors + num_one);
    curves_make(rows, arena, out);
    if (out->curves.num_curves < NUM_NCCL_OPS || one.byte_s <= 0 || step.byte_s <= 0)
        return status_error(STATUS_INVALID, "%s/comm.csv: not all collectives are there", folder);
    TRY(curves_check(&out->curves, folder));
    out->scores[CORE_SCORE_MESSAGES] = core_score(errors, num_one + num_steps);
    Link *link = &out->link;
    double nominal = fit_round(fastest(rows, fmax(1 / one.byte_s, 1 / step.byte_s)));
    link->bandwidth_bytes_per_s = nominal * 1.001; // rounding aside
    link->hop_latency_s = link->chain_hop_latency_s = step.latency_s;
    link->efficiency_frac = fmax(0.01, fit_round(1 / (step.byte_s * link->bandwidth_bytes_per_s)));
    double root = step.root_s / step.byte_s;
    link->half_bytes = fit_round(fmin(1e9, root * root));
    link->p2p_latency_s = one.latency_s;
    link->p2p_efficiency_frac =
        fmax(0.01, fit_round(1 / (one.byte_s * link->bandwidth_bytes_per_s)));
    return status_ok();
}
