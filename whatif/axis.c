// Reads "PATH=v1,v2,...".
#include "whatif/whatif.h"

#include "base/quantity.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *text; // the whole of --vary
    Arena *arena;
    const cJSON **values;
    int num_values, capacity;
} AxisBuilder;

static void value_add(AxisBuilder *b, cJSON *value) {
    json_own(b->arena, value);
    if (b->num_values == b->capacity) {
        int capacity = b->capacity ? 2 * b->capacity : 8;
        const cJSON **grown = ARENA_ARRAY(b->arena, capacity, const cJSON *);
        if (b->num_values) memcpy(grown, b->values, (size_t)b->num_values * sizeof *grown);
        b->values = grown;
        b->capacity = capacity;
    }
    b->values[b->num_values++] = value;
}

static Status axis_error(const AxisBuilder *b, const char *what) {
    return status_error(STATUS_INVALID,
                        "--vary %s: %s; expected PATH=v1,v2,..., as in "
                        "cluster.num_gpus=64,128 or training.seq_len=4096..32768:x2",
                        b->text, what);
}

// The end of a value that starts at text: the comma, or the end of text.
static const char *value_end(const char *text) {
    int depth = 0;
    bool quoted = false;
    for (; *text; text++) {
        if (quoted) {
            if (*text == '\\' && text[1])
                text++;
            else if (*text == '"')
                quoted = false;
        } else if (*text == '"') {
            quoted = true;
        } else if (*text == '[' || *text == '{') {
            depth++;
        } else if (*text == ']' || *text == '}') {
            depth--;
        } else if (*text == ',' && depth <= 0) {
            break;
        }
    }
    return text;
}

// A range "first..last", "first..last:xFACTOR" or "first..last:+STEP".
typedef struct {
    double first, last, step;
    bool multiplies;
    const char *bad_step; // what stands behind the numbers and is no step; NULL where all is well
} Range;

// A number; inf and nan too, so that a range of them is refused as one.
static double number_read(const char *text, char **end) {
    const double number = decimal_read(text, end);
    if (*end == text && isalpha((unsigned char)text[*text == '-'])) return strtod(text, end);
    return number;
}

// Whether a value is a range: numbers stand on both sides of "..".
static bool range_parse(const char *value, Range *out) {
    const char *dots = strstr(value, "..");
    if (!dots || dots == value) return false;
    char *end;
    out->first = number_read(value, &end);
    // strtod takes the first dot of "1..4" for a decimal point.
    if (end != dots && !(end == dots + 1 && dots[1] == '.')) return false;
    out->last = number_read(dots + 2, &end);
    if (end == dots + 2) return false;
    out->step = 1;
    out->multiplies = false;
    out->bad_step = NULL;
    if (*end == '\0') return true;
    const char *tail = end;
    bool marked = tail[0] == ':' && (tail[1] == 'x' || tail[1] == '+');
    if (marked) out->step = number_read(tail + 2, &end);
    out->multiplies = marked && tail[1] == 'x';
    if (!marked || end == tail + 2 || *end != '\0') out->bad_step = tail;
    return true;
}

// "8..64:2" is the usual slip: times 2, or plus 2?
static Status step_refuse(AxisBuilder *b, const char *value, const Range *range) {
    const char *number = range->bad_step + 1;
    char *end;
    double step = range->bad_step[0] == ':' ? number_read(number, &end) : 0;
    if (!(step > 0) || *end != '\0')
        return axis_error(
            b, arena_printf(b->arena, "in %s the step must be :xFACTOR (times) or :+STEP (plus)",
                            value));
    const char *ends = arena_printf(b->arena, "%.*s", (int)(range->bad_step - value), value);
    return axis_error(b, arena_printf(b->arena,
                                      "in %s, times %s or plus %s? write %s:x%s for the former, "
                                      "%s:+%s for the latter",
                                      value, number, number, ends, number, ends, number));
}

// How many values it has, or nearly.
static double range_size(const Range *range) {
    if (range->multiplies) return floor(log(range->last / range->first) / log(range->step)) + 1;
    return floor((range->last - range->first) / range->step) + 1;
}

static Status range_add(AxisBuilder *b, const Range *range) {
    bool grows = range->multiplies ? range->step > 1 && range->first > 0 : range->step > 0;
    if (!isfinite(range->first) || !isfinite(range->last) || !isfinite(range->step) || !grows)
        return axis_error(b, "a range that does not grow");
    if (range->last < range->first) return axis_error(b, "a range that ends before it begins");
    const double num_values = range_size(range);
    if (num_values > WHATIF_MAX_POINTS)
        return axis_error(b, arena_printf(b->arena, "%.0f values are more than %d", num_values,
                                          WHATIF_MAX_POINTS));
    // The last value may miss the end by rounding.
    double limit = range->last * (1 + (range->last > 0 ? 1e-12 : -1e-12));
    double value = range->first;
    for (int i = 1; value <= limit; i++) {
        value_add(b, cJSON_CreateNumber(value));
        value = range->multiplies ? value * range->step : range->first + i * range->step;
    }
    return status_ok();
}

static Status value_parse(AxisBuilder *b, const char *value) {
    if (!value[0]) return axis_error(b, "an empty value");
    Range range;
    if (range_parse(value, &range))
        return range.bad_step ? step_refuse(b, value, &range) : range_add(b, &range);
    cJSON *json = cJSON_ParseWithOpts(value, NULL, true);
    if (!json && (value[0] == '{' || value[0] == '[' || value[0] == '"'))
        return axis_error(b, arena_printf(b->arena, "%s is not JSON", value));
    value_add(b, json ? json : cJSON_CreateString(value));
    return status_ok();
}

Status whatif_parse_axis(const char *text, Arena *arena, WhatifAxis *out) {
    AxisBuilder b = {.text = text, .arena = arena};
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) return axis_error(&b, equals ? "no path" : "no '='");
    for (const char *start = equals + 1;; start++) {
        const char *end = value_end(start);
        const char *value = arena_printf(arena, "%.*s", (int)(end - start), start);
        TRY(value_parse(&b, value));
        if (!*end) break;
        start = end;
    }
    char *path = arena_strdup(arena, text);
    path[equals - text] = '\0';
    *out = (WhatifAxis){.path = path, .values = b.values, .num_values = b.num_values};
    return status_ok();
}
