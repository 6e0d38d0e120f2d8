// Two plans or scenarios side by side, as `compare --json` has them.
#include "report/answer_sections.h"

#include "plan/plan.h"
#include "whatif/compare.h"

#include <math.h>
#include <string.h>

// Terms come in this order: of the step up to the whole of it, of the memory up to what there is,
// rates and costs.
typedef struct {
    const char *id, *title, *text;
    const char *last; // the term that ends it; NULL: the end of the list does
    const char *unit; // of the columns' keys
} TermGroup;

static const TermGroup GROUPS[] = {
    {"compare-step", "Where the steps differ", "Each term of the step, of A and of B.",
     "step_time_s", "_s"},
    {"compare-memory", "Where the memory differs", "Of the GPU that needs most of what it has.",
     "memory_available_bytes", "_bytes"},
    {"compare-rates", "What comes of it", NULL, NULL, "_figure"},
};
enum { NUM_TERM_GROUPS = sizeof GROUPS / sizeof *GROUPS, NUM_COLUMNS = 5 };

// A term that neither has is left out.
static Status term_row(cJSON *section, const JsonNode *term, const char *name) {
    double a, b, difference, ratio;
    TRY(number_at(term, "a", false, &a));
    TRY(number_at(term, "b", false, &b));
    TRY(number_at(term, "difference", false, &difference));
    TRY(number_at(term, "ratio", false, &ratio));
    if (a == 0 && b == 0) return status_ok();
    cJSON *row = section_row(section);
    row_text(row, name);
    row_number(row, a);
    row_number(row, b);
    row_number(row, difference);
    row_number(row, ratio - 1);
    return status_ok();
}

// A section of the terms from *next on.
static Status group_section(Document *document, const TermGroup *group, const JsonNode *terms,
                            int *next, Arena *arena) {
    const DocumentColumn columns[NUM_COLUMNS] = {
        {"term", "term"},
        {arena_printf(arena, "a%s", group->unit), "A"},
        {arena_printf(arena, "b%s", group->unit), "B"},
        {arena_printf(arena, "difference%s", group->unit), "B - A"},
        {"change_frac", "B / A"},
    };
    const SectionSpec spec = {.id = group->id,
                              .title = group->title,
                              .text = group->text,
                              .chart = group->last ? "compare" : NULL,
                              .columns = columns,
                              .num_columns = NUM_COLUMNS,
                              .in_text = "lrrrr",
                              .goes_on = group != GROUPS};
    cJSON *section = document_section(document, &spec);
    while (*next < json_size(terms)) {
        const JsonNode term = json_at(terms, (*next)++);
        const JsonNode name = json_get(&term, "name");
        const char *text;
        TRY(json_read_string(&name, arena, &text));
        TRY(term_row(section, &term, text));
        if (group->last && strcmp(text, group->last) == 0) return status_ok();
    }
    return status_ok();
}

// At most MAX_VALUE letters of a long value, from shortly before the first that differs.
static const char *value_cut(const char *value, const char *other, Arena *arena) {
    enum { MAX_VALUE = 40, BEFORE = 12 };
    const size_t size = strlen(value);
    size_t from = 0;
    if (size <= MAX_VALUE) return value;
    while (value[from] && value[from] == other[from]) from++;
    from = from > BEFORE ? from - BEFORE : 0;
    if (from + MAX_VALUE > size) from = size - MAX_VALUE;
    size_t end = from + MAX_VALUE;
    while ((value[from] & 0xC0) == 0x80) from++; // not inside a letter of UTF-8
    while (end < size && (value[end] & 0xC0) == 0x80) end--;
    return arena_printf(arena, "%s%.*s%s", from > 0 ? "..." : "", (int)(end - from), value + from,
                        end < size ? "..." : "");
}

// As JSON; "-" where there is none.
static const char *value_text(const cJSON *value, Arena *arena) {
    if (!value || cJSON_IsNull(value)) return "-";
    char *text = cJSON_PrintUnformatted(value);
    const char *copy = arena_strdup(arena, text ? text : "");
    cJSON_free(text);
    return copy;
}

static Status changes_section(Document *document, const JsonNode *root, Arena *arena) {
    static const DocumentColumn columns[] = {{"path", "what differs"}, {"a", "A"}, {"b", "B"}};
    const JsonNode changes = json_get(root, "changes");
    TRY(json_expect_array(&changes));
    const SectionSpec spec = {.id = "compare-changes",
                              .title = "What was asked differently",
                              .in_text = json_size(&changes) > 0 ? "lll" : "---",
                              SECTION_COLUMNS(columns)};
    cJSON *section = document_section(document, &spec);
    if (json_size(&changes) == 0) section_say(section, "They ask the same.");
    for (JsonNode change = json_at(&changes, 0); change.item; change = json_next(&change)) {
        const JsonNode path = json_get(&change, "path");
        const JsonNode a = json_get(&change, "a"), b = json_get(&change, "b");
        const char *text, *of_a = value_text(a.item, arena), *of_b = value_text(b.item, arena);
        TRY(json_read_string(&path, arena, &text));
        cJSON *row = section_row(section);
        row_text(row, text);
        row_text(row, value_cut(of_a, of_b, arena));
        row_text(row, value_cut(of_b, of_a, arena));
    }
    return status_ok();
}

static const char *side_text(const JsonNode *side, Arena *arena) {
    const JsonNode file = json_get(side, "file"), parallel = json_get(side, "parallel");
    const char *name = cJSON_GetStringValue(file.item);
    return arena_printf(arena, "%s (%s)", name ? name : "?",
                        parallel_describe(parallel.item, arena));
}

static bool side_fits(const JsonNode *side) {
    const JsonNode fits = json_get(side, "fits");
    return cJSON_IsTrue(fits.item);
}

const char *compare_verdict(const JsonNode *root, Arena *arena) {
    const JsonNode a = json_get(root, "a"), b = json_get(root, "b");
    const JsonNode noise = json_get(root, "within_noise");
    double ratio, cost_a, cost_b;
    if (number_at(root, "tokens_per_s_ratio", true, &ratio).code != STATUS_OK ||
        number_at(&a, "usd_per_1e9_tokens", false, &cost_a).code != STATUS_OK ||
        number_at(&b, "usd_per_1e9_tokens", false, &cost_b).code != STATUS_OK)
        return NULL;
    const double more = ratio - 1, cost = cost_b / cost_a - 1;
    const char *text = arena_printf(arena, "B trains %.2f %% %s tokens a second than A",
                                    100 * fabs(more), more < 0 ? "fewer" : "more");
    if (fabs(more) < 5e-5) text = "B trains as many tokens a second as A";
    if (cost_a > 0 && cost_b > 0)
        text = arena_printf(arena, "%s, for %.2f %% %s a token", text, 100 * fabs(cost),
                            cost < 0 ? "less" : "more");
    return arena_printf(arena, "%s%s.%s", text,
                        cJSON_IsTrue(noise.item) ? "; the estimate cannot tell them apart" : "",
                        compare_misfit_text(side_fits(&a), side_fits(&b)));
}

Status compare_sections(Document *document, const Answer *answer, Arena *arena) {
    const JsonNode a = json_get(&answer->root, "a"), b = json_get(&answer->root, "b");
    const JsonNode terms = json_get(&answer->root, "terms");
    int next = 0;
    TRY(json_expect_object(&a));
    TRY(json_expect_object(&b));
    document_part(
        document, answer_title(answer, "Two side by side", arena),
        arena_printf(arena, "A is %s, B is %s.", side_text(&a, arena), side_text(&b, arena)));
    TRY(changes_section(document, &answer->root, arena));
    if (!json_is_present(&terms)) return status_ok(); // one of them has no plan
    TRY(json_expect_array(&terms));
    for (int i = 0; i < NUM_TERM_GROUPS; i++)
        TRY(group_section(document, &GROUPS[i], &terms, &next, arena));
    return status_ok();
}
