// How much each resource limits a job, as `whatif --sensitivity` answers.
#include "report/answer_sections.h"

#include "whatif/sensitivity.h"

#include <math.h>
#include <string.h>

enum { HALF_WIDTH = 20 }; // of a drawn tornado

// The resource of a row; NUM_RESOURCES for one that is not known.
static Resource resource_of(const char *name) {
    int r = 0;
    while (RESOURCE_NAMES[r] && strcmp(RESOURCE_NAMES[r], name) != 0) r++;
    return (Resource)r;
}

static const char *title_of(const char *name) {
    const Resource resource = resource_of(name);
    return resource < NUM_RESOURCES ? RESOURCE_TITLES[resource] : name;
}

static bool fits(const JsonNode *side) {
    const JsonNode node = json_get(side, "fits");
    return !cJSON_IsFalse(node.item);
}

static const char *plan_of(const JsonNode *side) {
    const JsonNode node = json_get(side, "plan");
    return cJSON_GetStringValue(node.item);
}

// By how much the step changes.
static const char *change_text(const JsonNode *side, double step_s, const JsonNode *base,
                               double base_s, Arena *arena) {
    if (isnan(step_s) || (!fits(side) && fits(base))) return "does not fit";
    const double change = step_s / base_s - 1;
    return fabs(change) < 5e-5 ? "+-0.00 %" : arena_printf(arena, "%+.2f %%", 100 * change);
}

// A plan that changed is worth a line.
static const char *plans_text(const JsonNode *better, const JsonNode *worse, const JsonNode *base,
                              Arena *arena) {
    const char *const names[] = {"better", "worse"};
    const char *own = plan_of(base), *const plans[] = {plan_of(better), plan_of(worse)};
    const char *note = "";
    for (int i = 0; i < 2; i++)
        if (own && plans[i] && strcmp(plans[i], own) != 0)
            note = arena_printf(arena, "%s%s%s: %s", note, note[0] ? "; " : "", names[i], plans[i]);
    return note;
}

// --- The tornado as letters

static double most_frac(const JsonNode *rows) {
    double most = 0, saves, costs;
    for (int i = 0; i < json_size(rows); i++) {
        const JsonNode row = json_at(rows, i);
        if (number_at(&row, "saves_frac", true, &saves).code == STATUS_OK) most = fmax(most, saves);
        if (number_at(&row, "costs_frac", true, &costs).code == STATUS_OK) most = fmax(most, costs);
    }
    return most;
}

// What is saved to the left of the middle, what is added to the right; '>' where it does not fit.
static const char *tornado_text(double saves_frac, double costs_frac, double most, Arena *arena) {
    char text[2 * HALF_WIDTH + 2];
    memset(text, ' ', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[HALF_WIDTH] = '|';
    const double scale = most > 0 ? HALF_WIDTH / most : 0;
    const int saved = (int)lround(fmax(0, saves_frac) * scale);
    const bool has_room = isfinite(costs_frac);
    const int added = has_room ? (int)lround(fmax(0, costs_frac) * scale) : HALF_WIDTH;
    memset(text + HALF_WIDTH - saved, '-', (size_t)saved);
    memset(text + HALF_WIDTH + 1, has_room ? '+' : '>', (size_t)added);
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ') text[--length] = '\0';
    return arena_strdup(arena, text);
}

// --- Rows

static Status resource_row(cJSON *section, const JsonNode *entry, const JsonNode *base, double most,
                           Arena *arena) {
    const JsonNode name = json_get(entry, "resource");
    const JsonNode better = json_get(entry, "better"), worse = json_get(entry, "worse");
    double base_s, more, more_s, less, less_s, saves, costs;
    const char *text;
    TRY(json_read_string(&name, arena, &text));
    TRY(number_at(base, "step_time_s", false, &base_s));
    TRY(number_at(&better, "factor", false, &more));
    TRY(number_at(&better, "step_time_s", false, &more_s));
    TRY(number_at(&worse, "factor", false, &less));
    TRY(number_at(&worse, "step_time_s", false, &less_s));
    TRY(number_at(entry, "saves_frac", true, &saves));
    const JsonNode costs_node = json_get(entry, "costs_frac");
    costs = cJSON_IsNumber(costs_node.item) ? costs_node.item->valuedouble : INFINITY;
    cJSON *row = section_row(section);
    row_text(row, title_of(text));
    row_text(row, change_text(&better, more_s, base, base_s, arena));
    row_text(row, change_text(&worse, less_s, base, base_s, arena));
    row_text(row, tornado_text(saves, costs, most, arena));
    const double cells[] = {more, more_s, less, less_s, base_s};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) row_number(row, cells[i]);
    row_text(row, plans_text(&better, &worse, base, arena));
    return status_ok();
}

Status sensitivity_sections(Document *document, const Answer *answer, Arena *arena) {
    static const DocumentColumn columns[] = {
        {"resource", "resource"},
        {"better", "better"},
        {"worse", "worse"},
        {"tornado", "step: - saved | added +"},
        {"more_factor", "more"},
        {"more_step_time_s", "step with more of it"},
        {"less_factor", "less"},
        {"less_step_time_s", "step with less of it"},
        {"base_step_time_s", "step as it is"},
        {"plans", "other plans"},
    };
    const SectionSpec spec = {
        .id = "sensitivity",
        .title = "What limits the job",
        .text = "The step with a little more and a little less of one resource at a time.",
        .chart = "tornado",
        .in_text = "lrrL1-----n",
        SECTION_COLUMNS(columns),
    };
    const JsonNode sensitivity = json_get(&answer->root, "sensitivity");
    const JsonNode base = json_get(&sensitivity, "base"), rows = json_get(&sensitivity, "rows");
    TRY(json_expect_object(&sensitivity));
    TRY(json_expect_array(&rows));
    document_part(document, answer_title(answer, "Sensitivity", arena), NULL);
    cJSON *section = document_section(document, &spec);
    for (int i = 0; i < json_size(&rows); i++) {
        const JsonNode entry = json_at(&rows, i);
        TRY(resource_row(section, &entry, &base, most_frac(&rows), arena));
    }
    return status_ok();
}

const char *sensitivity_limit_text(const JsonNode *root, Arena *arena) {
    const JsonNode sensitivity = json_get(root, "sensitivity");
    const JsonNode limit = json_get(&sensitivity, "limited_by");
    const JsonNode rows = json_get(&sensitivity, "rows");
    const char *name = cJSON_GetStringValue(limit.item);
    double change, saves;
    if (json_size(&rows) == 0) return NULL;
    if (!name)
        return arena_printf(arena, "None of these saves %.1f %% of the step.",
                            100 * SENSITIVITY_LEAST_FRAC);
    for (int i = 0; i < json_size(&rows); i++) {
        const JsonNode row = json_at(&rows, i), resource = json_get(&row, "resource");
        if (!cJSON_IsString(resource.item) || strcmp(resource.item->valuestring, name) != 0 ||
            number_at(&sensitivity, "change_frac", true, &change).code != STATUS_OK ||
            number_at(&row, "saves_frac", true, &saves).code != STATUS_OK)
            continue;
        const Resource known = resource_of(name);
        const bool more = known == NUM_RESOURCES || resource_more_is_better(known);
        return arena_printf(arena, "Limited by %s: %.0f %% %s saves %.2f %% of the step.",
                            title_of(name), 100 * change, more ? "more" : "less", 100 * saves);
    }
    return NULL;
}
