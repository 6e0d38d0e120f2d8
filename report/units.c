#include "report/units.h"

#include <math.h>
#include <stdio.h>

// value in the largest unit in which it is at least 1; 1000 lies between neighbouring units.
static const char *scaled(double value, const char *const *units, int num_units, char *text) {
    int unit = 0;
    if (fabs(value) < 0.0005) value = 0; // what is left of a difference, also below 0
    // What would be rounded to 1000 belongs to the next unit.
    while (unit + 1 < num_units && fabs(value) >= 999.5) {
        value /= 1e3;
        unit++;
    }
    char number[UNITS_SIZE];
    snprintf(text, UNITS_SIZE, "%s%s%s", units_plain(value, number), units[unit][0] ? " " : "",
             units[unit]);
    return text;
}

const char *units_plain(double value, char *text) {
    double size = fabs(value);
    int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    if (size == floor(size) && size < 1000) decimals = 0;
    if (size > 0 && size < 0.0995) decimals = 2 - (int)floor(log10(size));
    if (decimals > 9) value = decimals = 0;
    snprintf(text, UNITS_SIZE, "%.*f", decimals, value);
    return text;
}

const char *units_seconds(double time_s, char *text) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return scaled(time_s * 1e9, units, 4, text);
}

const char *units_span(double time_s, char *text) {
    static const struct {
        double from_s, unit_s;
        const char *name;
    } UNITS[] = {{2 * 86400, 86400, "days"}, {2 * 3600, 3600, "h"}, {120, 60, "min"}};
    char number[UNITS_SIZE];
    for (int i = 0; i < 3; i++) {
        if (time_s < UNITS[i].from_s) continue;
        snprintf(text, UNITS_SIZE, "%.24s %s", units_plain(time_s / UNITS[i].unit_s, number),
                 UNITS[i].name);
        return text;
    }
    return units_seconds(time_s, text);
}

const char *units_bytes(double bytes, char *text) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    return scaled(bytes, units, 6, text);
}

const char *units_memory(double bytes, char *text) {
    static const double GIB = 1073741824;
    char decimal[UNITS_SIZE], binary[UNITS_SIZE];
    units_bytes(bytes, decimal);
    snprintf(text, UNITS_SIZE, bytes < GIB ? "%.12s" : "%.12s (%.10s GiB)", decimal,
             units_plain(bytes / GIB, binary));
    return text;
}

const char *units_count(double count, char *text) {
    static const char *const units[] = {"", "k", "M", "G", "T"};
    return scaled(count, units, 5, text);
}

const char *units_flops(double flops_per_s, char *text) {
    static const char *const units[] = {"FLOP/s",  "kFLOP/s", "MFLOP/s", "GFLOP/s",
                                        "TFLOP/s", "PFLOP/s", "EFLOP/s"};
    // A GPU's rate is read in TFLOP/s, also above a thousand.
    if (flops_per_s >= 1e15 && flops_per_s < 1e16) {
        snprintf(text, UNITS_SIZE, "%.0f TFLOP/s", flops_per_s / 1e12);
        return text;
    }
    return scaled(flops_per_s, units, 7, text);
}

const char *units_percent(double frac, char *text) {
    if (fabs(frac) < 0.0005) frac = 0; // also below 0
    snprintf(text, UNITS_SIZE, "%.1f %%", frac * 100);
    return text;
}

const char *units_usd(double usd, char *text) {
    char number[UNITS_SIZE];
    snprintf(text, UNITS_SIZE, "%s USD", units_plain(usd, number));
    return text;
}
