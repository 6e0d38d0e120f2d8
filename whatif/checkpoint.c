#include "whatif/checkpoint.h"

#include <math.h>

double young_interval_s(double write_s, double mtbf_s) {
    return sqrt(2 * write_s * mtbf_s);
}

double daly_interval_s(double write_s, double mtbf_s) {
    if (write_s >= 2 * mtbf_s) return mtbf_s;
    const double ratio = write_s / (2 * mtbf_s);
    return young_interval_s(write_s, mtbf_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - write_s;
}

double daly_goodput_frac(double interval_s, double write_s, double restart_s, double mtbf_s) {
    if (isinf(mtbf_s)) return interval_s / (interval_s + write_s);
    return interval_s / (mtbf_s * exp(restart_s / mtbf_s) * expm1((interval_s + write_s) / mtbf_s));
}

GoodputShares daly_shares(double interval_s, double write_s, double restart_s, double mtbf_s) {
    GoodputShares shares = {.goodput_frac =
                                daly_goodput_frac(interval_s, write_s, restart_s, mtbf_s)};
    shares.write_frac = shares.goodput_frac * write_s / interval_s;
    const double rest = 1 - shares.goodput_frac - shares.write_frac;
    // Failures come all the time, whatever the job does, and each begins a restart anew.
    if (!isinf(mtbf_s)) shares.restart_frac = -expm1(-restart_s / mtbf_s);
    shares.restart_frac = fmin(rest, shares.restart_frac);
    shares.lost_frac = fmax(0, rest - shares.restart_frac);
    return shares;
}

// Erlang's loss formula by its recursion, B(0) = 1, B(c) = a B(c - 1) / (c + a B(c - 1)).
double spares_available_frac(int num_spares, double load) {
    double blocked = 1;
    for (int servers = 1; servers <= num_spares + 1; servers++)
        blocked = load * blocked / (servers + load * blocked);
    return 1 - blocked;
}

int spares_best(int num_nodes, double load) {
    int best = 0;
    double best_value = spares_available_frac(0, load) / num_nodes, blocked = load / (1 + load);
    for (int spares = 1; spares <= num_nodes; spares++) {
        blocked = load * blocked / (spares + 1 + load * blocked);
        const double value = (1 - blocked) / (num_nodes + spares);
        if (value > best_value) {
            best = spares;
            best_value = value;
        }
    }
    return best;
}
