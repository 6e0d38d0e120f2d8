#include "base/quantity.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A text, split.
typedef struct {
    const char *text;
    double number;
    char unit[24];
    char *why;
    size_t why_size;
} Quantity;

typedef struct {
    const char *unit;
    double value;
} Unit;

static bool refuse(const Quantity *q, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(const Quantity *q, const char *format, ...) {
    char sentence[300];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    snprintf(q->why, q->why_size, "\"%.40s\"%s", q->text, sentence);
    return false;
}

static bool refuse_unit(const Quantity *q, const char *expected) {
    return refuse(q, ": unknown unit \"%s\"; expected %s", q->unit, expected);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

double decimal_read(const char *text, char **end) {
    const char *at = text + strspn(text, " \t\r\n\v\f");
    at += *at == '-' || *at == '+';
    const bool hexadecimal = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    at += *at == '.';
    if (*at >= '0' && *at <= '9' && !hexadecimal) return strtod(text, end);
    *end = (char *)text;
    return 0;
}

QuantityKind quantity_of_key(const char *key) {
    static const struct {
        const char *end;
        QuantityKind kind;
    } ENDS[] = {
        {"_bytes_per_s", QUANTITY_BYTES_PER_S},
        {"_flops_per_s", QUANTITY_FLOPS_PER_S},
        {"tokens_per_s", QUANTITY_TOKENS_PER_S},
        {"bytes_per_s", QUANTITY_BYTES_PER_S},
        {"_per_s", QUANTITY_PLAIN},
        {"_bytes", QUANTITY_BYTES},
        {"_flops", QUANTITY_FLOPS},
        {"_s", QUANTITY_SECONDS},
        {"_frac", QUANTITY_FRAC},
        {"_usd", QUANTITY_USD},
        {"_watts", QUANTITY_WATTS},
    };
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        if (ends_with(key, ENDS[i].end)) return ENDS[i].kind;
    if (strstr(key, "_usd_per_")) return QUANTITY_USD;
    if (strstr(key, "_watts_per_")) return QUANTITY_WATTS;
    return QUANTITY_COUNT;
}

// Takes a prefix off the front of a unit whose rest is `rest`; 0 where it is none.
static double prefix_value(const char *unit, size_t length) {
    static const char LETTERS[] = "kMGTPE";
    if (length == 0) return 1;
    char first = unit[0] == 'K' ? 'k' : unit[0];
    const char *letter = first ? strchr(LETTERS, first) : NULL;
    if (!letter) return 0;
    int power = 1 + (int)(letter - LETTERS);
    if (length == 1) return pow(1000, power);
    return length == 2 && unit[1] == 'i' ? pow(1024, power) : 0;
}

// The value of a unit that is a prefix and one of the names (ends with NULL); 0 where it is none.
static double prefixed(const char *unit, const char *const *names) {
    for (; *names; names++)
        if (ends_with(unit, *names)) {
            double value = prefix_value(unit, strlen(unit) - strlen(*names));
            if (value > 0) return value;
        }
    return 0;
}

// The value of one unit of a table that ends with NULL; 0 where it is none.
static double tabled(const char *unit, const Unit *units) {
    for (; units->unit; units++)
        if (strcmp(unit, units->unit) == 0) return units->value;
    return 0;
}

static bool refuse_beyond(const Quantity *q) {
    return refuse(q, " is beyond what a double holds");
}

static bool take(const Quantity *q, double unit, double *out) {
    *out = q->number * unit;
    return isfinite(*out) || refuse_beyond(q);
}

static bool seconds_take(const Quantity *q, double *out) {
    static const Unit UNITS[] = {
        {"s", 1},       {"sec", 1},      {"second", 1},       {"seconds", 1},
        {"ms", 1e-3},   {"us", 1e-6},    {"\xC2\xB5s", 1e-6}, {"\xCE\xBCs", 1e-6},
        {"ns", 1e-9},   {"min", 60},     {"minute", 60},      {"minutes", 60},
        {"h", 3600},    {"hour", 3600},  {"hours", 3600},     {"d", 86400},
        {"day", 86400}, {"days", 86400}, {"week", 604800},    {"weeks", 604800},
        {NULL, 0},
    };
    double unit = tabled(q->unit, UNITS);
    if (unit > 0) return take(q, unit, out);
    if (strcmp(q->unit, "m") == 0)
        return refuse(q, ": minutes, milliseconds or months? write %.15gmin, %.15gms or days",
                      q->number, q->number);
    return refuse_unit(q, "ns, us, ms, s, min, h, d or weeks");
}

// Units of sizes: bytes (*bits false) or bits, with their prefix; 0 where it is none.
static double size_unit(const char *unit, bool *bits) {
    static const char *const BYTES[] = {"B", "byte", "bytes", NULL};
    static const char *const BITS[] = {"b", "bit", "bits", NULL};
    double value = prefixed(unit, BYTES);
    *bits = value == 0;
    return value > 0 ? value : prefixed(unit, BITS);
}

// kb, mb, gb, tb: nobody knows whether they are bits or bytes.
static bool small_letters(const char *unit) {
    return strlen(unit) == 2 && strchr("kmgtp", unit[0]) && unit[1] == 'b' && unit[0] != 'k';
}

static bool bytes_take(const Quantity *q, double *out) {
    static const char EXPECTED[] =
        "B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024)";
    bool bits = false;
    double unit = small_letters(q->unit) ? 0 : size_unit(q->unit, &bits);
    if (unit > 0 && !bits) return take(q, unit, out);
    if (unit > 0 || small_letters(q->unit)) {
        char letter =
            (char)(q->unit[0] >= 'a' && q->unit[0] != 'b' ? q->unit[0] - 'a' + 'A' : q->unit[0]);
        const char prefix[2] = {letter == 'b' ? '\0' : letter, '\0'};
        return refuse(q, ": bytes, or bits? write %.15g%sB for bytes, %.15g%sB for bits", q->number,
                      prefix, q->number / 8, prefix);
    }
    if (strlen(q->unit) == 1 && prefix_value(q->unit, 1) > 0)
        return refuse(q, ": %.15g%sB (powers of 1000) or %.15g%siB (powers of 1024)? write which",
                      q->number, q->unit, q->number, q->unit);
    return refuse_unit(q, EXPECTED);
}

// Takes "/s", "/sec" or "ps" off the end of a unit.
static bool rate_strip(const char *unit, char *size, size_t room) {
    static const char *const ENDS[] = {"/sec", "/s", "ps"};
    for (int i = 0; i < 3; i++) {
        if (!ends_with(unit, ENDS[i])) continue;
        snprintf(size, room, "%.*s", (int)(strlen(unit) - strlen(ENDS[i])), unit);
        return true;
    }
    return false;
}

static bool rate_take(const Quantity *q, double *out) {
    static const char EXPECTED[] = "GB/s, GiB/s (bytes) or Gb/s, Gbit/s, Gbps (bits), and so with "
                                   "k, M, T";
    char size[24];
    bool bits = false;
    if (ends_with(q->unit, "bE")) // 400GbE, as Ethernet's speeds are named
        return take(q, prefix_value(q->unit, strlen(q->unit) - 2) / 8, out);
    if (!rate_strip(q->unit, size, sizeof size)) {
        if (size_unit(q->unit, &bits) > 0 || prefix_value(q->unit, strlen(q->unit)) > 0)
            return refuse(q,
                          ": a rate, per second: %.15gGb/s (bits) or %.15gGB/s (bytes)? write "
                          "which",
                          q->number, q->number);
        return refuse_unit(q, EXPECTED);
    }
    if (small_letters(size))
        return refuse(q, ": bits or bytes? write %.15g%cb/s for bits, %.15g%cB/s for bytes",
                      q->number, size[0] - 'a' + 'A', q->number, size[0] - 'a' + 'A');
    double unit = size_unit(size, &bits);
    if (unit > 0) return take(q, bits ? unit / 8 : unit, out);
    return refuse_unit(q, EXPECTED);
}

static bool flops_take(const Quantity *q, bool rate, double *out) {
    static const char *const RATES[] = {"FLOP/s", "FLOPS",   "FLOPs", "flop/s",
                                        "flops",  "FLOPs/s", "",      NULL};
    static const char *const AMOUNTS[] = {"FLOP", "FLOPs", "flop", "", NULL};
    double unit = prefixed(q->unit, rate ? RATES : AMOUNTS);
    if (unit > 0) return take(q, unit, out);
    return refuse_unit(q, rate ? "TFLOP/s, PFLOP/s, ..." : "TFLOP, PFLOP, ...");
}

static bool tokens_take(const Quantity *q, bool rate, double *out) {
    static const Unit UNITS[] = {
        {"k", 1e3},  {"K", 1e3},   {"M", 1e6},          {"B", 1e9},           {"G", 1e9},
        {"T", 1e12}, {"Ki", 1024}, {"Mi", 1024 * 1024}, {"Gi", 1073741824.0}, {NULL, 0},
    };
    char unit[24];
    snprintf(unit, sizeof unit, "%s", q->unit);
    if (rate) rate_strip(q->unit, unit, sizeof unit);
    static const char *const WORDS[] = {" tokens", "tokens", "tok"};
    for (int i = 0; i < 3; i++)
        if (ends_with(unit, WORDS[i])) unit[strlen(unit) - strlen(WORDS[i])] = '\0';
    double value = unit[0] ? tabled(unit, UNITS) : 1;
    if (value > 0) return take(q, value, out);
    return refuse_unit(q, "k, M, B (1e9) or T (1e12)");
}

static bool count_take(const Quantity *q, double *out) {
    size_t length = strlen(q->unit);
    double unit = prefix_value(q->unit, length);
    if (unit > 0 && length == 2) return take(q, unit, out);
    if (unit > 0) {
        int power = (int)round(log(unit) / log(1000));
        char prefix = (char)(q->unit[0] == 'k' ? 'K' : q->unit[0]);
        return refuse(q, ": %.15g or %.15g? write the number, or %.15g%ci for the latter",
                      q->number * unit, q->number * pow(1024, power), q->number, prefix);
    }
    return refuse_unit(q, "a number alone, or Ki, Mi, Gi (powers of 1024)");
}

static bool usd_take(const Quantity *q, double *out) {
    static const Unit UNITS[] = {{"$", 1},     {"USD", 1},      {"usd", 1}, {"USD/h", 1},
                                 {"$/h", 1},   {"USD/hour", 1}, {"/h", 1},  {"$/hour", 1},
                                 {"/hour", 1}, {NULL, 0}};
    double unit = tabled(q->unit, UNITS);
    if (unit > 0) return take(q, unit, out);
    return refuse_unit(q, "USD, as in 2.5, \"$2.5\" or \"2.5 USD\"");
}

static bool unit_take(const Quantity *q, QuantityKind kind, double *out) {
    static const char *const WATTS[] = {"W", "watts", NULL};
    if (!q->unit[0]) return take(q, 1, out);
    switch (kind) {
    case QUANTITY_SECONDS:
        return seconds_take(q, out);
    case QUANTITY_BYTES:
        return bytes_take(q, out);
    case QUANTITY_BYTES_PER_S:
        return rate_take(q, out);
    case QUANTITY_FLOPS:
    case QUANTITY_FLOPS_PER_S:
        return flops_take(q, kind == QUANTITY_FLOPS_PER_S, out);
    case QUANTITY_TOKENS:
    case QUANTITY_TOKENS_PER_S:
        return tokens_take(q, kind == QUANTITY_TOKENS_PER_S, out);
    case QUANTITY_FRAC:
        return strcmp(q->unit, "%") == 0 ? take(q, 0.01, out)
                                         : refuse_unit(q, "a share from 0 to 1, or %");
    case QUANTITY_USD:
        return usd_take(q, out);
    case QUANTITY_WATTS: {
        double unit = prefixed(q->unit, WATTS);
        return unit > 0 ? take(q, unit, out) : refuse_unit(q, "W, kW or MW");
    }
    case QUANTITY_COUNT:
        return count_take(q, out);
    case QUANTITY_PLAIN:
    case NUM_QUANTITIES:
        break;
    }
    return refuse_unit(q, "a number alone");
}

bool quantity_parse(const char *text, QuantityKind kind, double *out, char *why, size_t why_size) {
    Quantity q = {.text = text, .why = why, .why_size = why_size};
    why[0] = '\0';
    const char *begin = text + strspn(text, " \t");
    if (kind == QUANTITY_USD && *begin == '$') begin++;
    size_t sign = *begin == '-' || *begin == '+';
    if (!strchr(".0123456789", begin[sign]) || !begin[sign]) return false;
    if (begin[sign] == '0' && (begin[sign + 1] == 'x' || begin[sign + 1] == 'X'))
        return refuse(&q, ": expected a decimal number");
    char *end;
    q.number = strtod(begin, &end);
    if (end == begin) return false;
    if (!isfinite(q.number)) return refuse_beyond(&q);
    if (*end == '_' || *end == ',' || *end == '\'')
        return refuse(&q, ": expected digits without \"%c\"", *end);
    end += strspn(end, " \t");
    size_t length = strlen(end);
    while (length > 0 && strchr(" \t", end[length - 1])) length--;
    snprintf(q.unit, sizeof q.unit, "%.*s", (int)(length < 23 ? length : 23), end);
    return unit_take(&q, kind, out);
}
