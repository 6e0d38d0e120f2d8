// A cell of a report as people read it, by the unit that its column's key ends with. The same rules
// as report/web/src/format.js.
#include "report/document.h"

#include "report/units.h"

#include <math.h>
#include <string.h>

static bool begins_with(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

static bool ends_with(const char *text, const char *tail) {
    const size_t length = strlen(text), size = strlen(tail);
    return length >= size && strcmp(text + length - size, tail) == 0;
}

static const char *quantity_text(const char *key, double value, Arena *arena) {
    char text[UNITS_SIZE];
    if (ends_with(key, "flops_per_s") || ends_with(key, "flops_per_s_per_gpu"))
        return arena_strdup(arena, units_flops(value, text));
    if (ends_with(key, "bytes_per_s")) return arena_printf(arena, "%s/s", units_bytes(value, text));
    if (ends_with(key, "_bytes")) return arena_strdup(arena, units_bytes(value, text));
    if (ends_with(key, "_per_s") || ends_with(key, "_per_s_per_gpu"))
        return arena_strdup(arena, units_count(value, text));
    if (ends_with(key, "_s")) return arena_strdup(arena, units_seconds(value, text));
    if (strcmp(key, "change_frac") == 0) return arena_printf(arena, "%+.1f %%", value * 100);
    if (ends_with(key, "_frac")) return arena_strdup(arena, units_percent(value, text));
    if (ends_with(key, "joules_per_token")) return arena_printf(arena, "%.4g", value);
    if (ends_with(key, "_tokens")) return arena_strdup(arena, units_plain(value, text));
    if (ends_with(key, "_figure"))
        return arena_strdup(arena,
                            value >= 1000 ? units_count(value, text) : units_plain(value, text));
    return arena_printf(arena, "%.6g", value);
}

const char *document_text_cell(const char *key, const cJSON *cell, Arena *arena) {
    if (cJSON_IsString(cell)) return cell->valuestring;
    if (!cJSON_IsNumber(cell)) return "";
    const double value = cell->valuedouble;
    if (!begins_with(key, "difference")) return quantity_text(key, value, arena);
    if (value == 0) return "0";
    return arena_printf(arena, "%s%s", value < 0 ? "-" : "+",
                        quantity_text(key, fabs(value), arena));
}

static const double LONG_S = 1000; // of a run, no step takes as long

const char *document_cell_text(const char *key, const cJSON *cell, Arena *arena) {
    char text[UNITS_SIZE];
    if (!cJSON_IsNumber(cell)) return document_text_cell(key, cell, arena);
    if (cell->valuedouble == 0) return "0";
    if (cell->valuedouble >= LONG_S && ends_with(key, "_s") && !ends_with(key, "_per_s"))
        return arena_strdup(arena, units_span(cell->valuedouble, text));
    if (ends_with(key, "usd_per_1e9_tokens"))
        return arena_strdup(arena, units_usd(cell->valuedouble, text));
    if (ends_with(key, "joules_per_token"))
        return arena_printf(arena, "%s J", units_plain(cell->valuedouble, text));
    return document_text_cell(key, cell, arena);
}
