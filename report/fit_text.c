#include "report/fit_text.h"

#include <math.h>

static const double SURE_FRAC = 0.9, EVEN_FRAC = 0.5;

const char *fit_percent(double fits_probability_frac, Arena *arena) {
    const double percent = floor(fits_probability_frac * 100);
    if (percent < 1) return "under 1 %";
    if (percent >= 99) return fits_probability_frac > 0.99 ? "over 99 %" : "99 %";
    return arena_printf(arena, "%.0f %%", percent);
}

const char *fit_text(double fits_probability_frac, Arena *arena) {
    const char *what = fits_probability_frac >= SURE_FRAC   ? "fits"
                       : fits_probability_frac >= EVEN_FRAC ? "may not fit"
                                                            : "does not fit";
    return arena_printf(arena, "%s (%s)", what, fit_percent(fits_probability_frac, arena));
}
