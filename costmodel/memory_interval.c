#include "costmodel/memory_interval.h"

#include "base/normal.h"

#include <math.h>

static const double NORMAL_QUANTILE_90 = 1.2815515655446; // leaves 10 % on either side

double memory_spread(const Scenario *scenario, const Plan *plan) {
    const Evidence *evidence = scenario->evidence;
    (void)plan;
    if (!evidence) return 0;
    const double own = evidence->memory_spread;
    const double slack = scenario->training.stack.allocator_slack_frac;
    return sqrt(own * own + slack * slack / 12);
}

double memory_fit_probability(const RankMemory *account, double available_bytes) {
    const double room = log(available_bytes / account->needs_bytes);
    if (account->spread > 0) return normal_probability(room / account->spread);
    return account->needs_bytes <= available_bytes;
}

// The account's device_bytes where everything is so many times as large.
static double device_bytes(const RankMemory *account, double factor, double available_bytes) {
    return fmax(account->needs_bytes * factor,
                fmin(account->cached_bytes * factor, available_bytes));
}

void memory_interval(const RankMemory *account, double available_bytes, double *low_bytes,
                     double *high_bytes) {
    const double factor = exp(NORMAL_QUANTILE_90 * account->spread);
    *low_bytes = device_bytes(account, 1 / factor, available_bytes);
    *high_bytes = device_bytes(account, factor, available_bytes);
}
