#include "planner/stages/last_fit.h"

int last_fit(int least, int most, int guess, Fits fits, void *context) {
    int good = least - 1, bad = most + 1;
    for (int at = guess, step = 1; bad - good > 1; step *= 2) {
        if (at <= good) at = good + 1;
        if (at >= bad) at = bad - 1;
        const bool fit = fits(context, at);
        if (fit)
            good = at;
        else
            bad = at;
        if (good >= least && bad <= most) break;
        at = fit ? at + step : at - step;
    }
    while (bad - good > 1) {
        const int middle = good + (bad - good) / 2;
        if (fits(context, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}
