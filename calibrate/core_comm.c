// What ranks do together, through the memory that they share.
#include "calibrate/core_fit.h"
#include "calibrate/fit.h"
#include "costmodel/kernel_nccl.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_POINTS = 64 };

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

// --- Messages

typedef struct {
    const CommRow *const *rows;
    bool curved; // the rate rises as 1 / (1 + sqrt(half / bytes))
} Messages;

static double message_s(double bytes, bool curved, const double *values) {
    double more = curved ? sqrt(bytes * values[2]) : 0;
    return values[0] + (bytes + more) / values[1];
}

static double message_model(const void *context, int row, const double *values) {
    const Messages *messages = context;
    return log(message_s(messages->rows[row]->bytes, messages->curved, values));
}

// latency, bytes a second, half_bytes; the last of an exchange only.
static int messages_fit(const CoreRows *rows, CommOp op, Arena *arena, double *values,
                        double *errors) {
    static const FitParameter PARAMETERS[] = {
        {"latency_s", 1e-6, 1e-8, 1e-2, true},
        {"bytes_per_s", 3e9, 1e6, 1e13, true},
        {"half_bytes", 1e3, 1e-3, 1e8, true},
    };
    const CommRow **chosen = ARENA_ARRAY(arena, rows->num_comm, const CommRow *);
    double *target = ARENA_ARRAY(arena, rows->num_comm, double);
    int num = 0;
    for (int i = 0; i < rows->num_comm; i++) {
        if (rows->comm[i].op != op) continue;
        target[num] = log(rows->comm[i].time_s);
        chosen[num++] = &rows->comm[i];
    }
    if (num == 0) return 0;
    Messages messages = {chosen, op == COMM_EXCHANGE};
    FitProblem problem = {.num_rows = num,
                          .target = target,
                          .model = message_model,
                          .context = &messages,
                          .num_parameters = messages.curved ? 3 : 2,
                          .parameters = PARAMETERS};
    fit_simplex(&problem, values);
    for (int i = 0; i < num; i++)
        errors[i] =
            fabs(message_s(chosen[i]->bytes, messages.curved, values) / chosen[i]->time_s - 1);
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
    double one[3], step[3], *errors = ARENA_ARRAY(arena, rows->num_comm + 1, double);
    int num_one = messages_fit(rows, COMM_SEND_RECV, arena, one, errors);
    int num_steps = messages_fit(rows, COMM_EXCHANGE, arena, step, errors + num_one);
    curves_make(rows, arena, out);
    if (num_one == 0 || num_steps == 0 || out->curves.num_curves < NUM_NCCL_OPS)
        return status_error(STATUS_INVALID, "%s/comm.csv: not all collectives are there", folder);
    out->scores[CORE_SCORE_MESSAGES] = core_score(errors, num_one + num_steps);
    Link *link = &out->link;
    link->bandwidth_bytes_per_s = fit_round(fastest(rows, fmax(one[1], step[1])));
    link->bandwidth_bytes_per_s *= 1.001; // rounding aside
    link->latency_s = 0;
    link->hop_latency_s = link->chain_hop_latency_s = step[0];
    link->efficiency_frac = fmax(0.01, fit_round(step[1] / link->bandwidth_bytes_per_s));
    link->half_bytes = step[2];
    link->p2p_latency_s = one[0];
    link->p2p_efficiency_frac = fmax(0.01, fit_round(one[1] / link->bandwidth_bytes_per_s));
    return status_ok();
}
