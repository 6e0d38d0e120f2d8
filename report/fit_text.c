#include "report/fit_text.h"

#include <math.h>
#include <string.h>

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

const char *reasons_text(const char *const *reasons, int num_reasons, Arena *arena) {
    static const char BEGIN[] = "no published step";
    const char *text = num_reasons > 0 ? BEGIN : NULL;
    for (int i = 0; i < num_reasons; i++)
        text =
            arena_printf(arena, "%s%s%s", text, i > 0 ? "," : "",
                         strncmp(reasons[i], BEGIN, strlen(BEGIN)) == 0 ? reasons[i] + strlen(BEGIN)
                                                                        : reasons[i]);
    return text;
}

const char *extrapolated_text(const Estimate *e, Arena *arena) {
    int num;
    const char *const *reasons = evidence_reasons(e->evidence, e->ingredients, arena, &num);
    return reasons_text(reasons, num, arena);
}
