// Two plans or scenarios side by side, as `compare --json` has them.
#include "report/answer_sections.h"

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
    {"compare-rates", "What comes of it", NULL, NULL, ""},
};
enum { NUM_GROUPS = sizeof GROUPS / sizeof *GROUPS, NUM_COLUMNS = 5 };

static Status term_row(cJSON *section, const JsonNode *term, Arena *arena) {
    static const char *const keys[] = {"a", "b", "difference"};
    const JsonNode name = json_get(term, "name");
    const char *text;
    double value;
    TRY(json_read_string(&name, arena, &text));
    cJSON *row = section_row(section);
    row_text(row, text);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        TRY(number_at(term, keys[i], false, &value));
        row_number(row, value);
    }
    TRY(number_at(term, "ratio", false, &value));
    row_number(row, value - 1);
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
        {"change_frac", "change"},
    };
    const SectionSpec spec = {.id = group->id,
                              .title = group->title,
                              .text = group->text,
                              .chart = group->unit[0] ? "compare" : NULL,
                              .columns = columns,
                              .num_columns = NUM_COLUMNS};
    cJSON *section = document_section(document, &spec);
    while (*next < json_size(terms)) {
        const JsonNode term = json_at(terms, (*next)++);
        const JsonNode name = json_get(&term, "name");
        TRY(term_row(section, &term, arena));
        const char *text = cJSON_GetStringValue(name.item);
        if (group->last && text && strcmp(text, group->last) == 0) return status_ok();
    }
    return status_ok();
}

// Stages by their numbers of layers; anything else as it is.
static void change_cell(cJSON *row, const cJSON *item, Arena *arena) {
    const cJSON *first = cJSON_GetArrayItem(item, 0), *stage;
    const char *text = "";
    if (!cJSON_GetObjectItemCaseSensitive(first, "layers")) {
        row_value(row, item);
        return;
    }
    cJSON_ArrayForEach(stage, item) {
        const cJSON *layers = cJSON_GetObjectItemCaseSensitive(stage, "layers");
        text = arena_printf(arena, "%s%s%d", text, text[0] ? ", " : "",
                            cJSON_IsNumber(layers) ? layers->valueint : 0);
    }
    row_text(row, arena_printf(arena, "%s layers", text));
}

static Status changes_section(Document *document, const JsonNode *root, Arena *arena) {
    static const DocumentColumn columns[] = {{"path", "what differs"}, {"a", "A"}, {"b", "B"}};
    const SectionSpec spec = {
        .id = "compare-changes", .title = "What was asked differently", SECTION_COLUMNS(columns)};
    const JsonNode changes = json_get(root, "changes");
    TRY(json_expect_array(&changes));
    cJSON *section = document_section(document, &spec);
    for (int i = 0; i < json_size(&changes) && i < SECTION_MAX_ROWS; i++) {
        const JsonNode change = json_at(&changes, i), path = json_get(&change, "path");
        const JsonNode a = json_get(&change, "a"), b = json_get(&change, "b");
        const char *text;
        TRY(json_read_string(&path, arena, &text));
        cJSON *row = section_row(section);
        row_text(row, text);
        change_cell(row, a.item, arena);
        change_cell(row, b.item, arena);
    }
    return status_ok();
}

static const char *side_text(const JsonNode *side, Arena *arena) {
    const JsonNode file = json_get(side, "file"), parallel = json_get(side, "parallel");
    const char *name = cJSON_GetStringValue(file.item);
    return arena_printf(arena, "%s (%s)", name ? name : "?", parallel_text(parallel.item, arena));
}

Status compare_sections(Document *document, const Answer *answer, Arena *arena) {
    const JsonNode a = json_get(&answer->root, "a"), b = json_get(&answer->root, "b");
    const JsonNode terms = json_get(&answer->root, "terms");
    const JsonNode noise = json_get(&answer->root, "within_noise");
    int next = 0;
    TRY(json_expect_object(&a));
    TRY(json_expect_object(&b));
    TRY(json_expect_array(&terms));
    document_part(
        document, answer_title(answer, "Two side by side", arena),
        arena_printf(arena, "A is %s, B is %s.%s", side_text(&a, arena), side_text(&b, arena),
                     cJSON_IsTrue(noise.item) ? " The two are within the noise of the estimate."
                                              : ""));
    TRY(changes_section(document, &answer->root, arena));
    for (int i = 0; i < NUM_GROUPS; i++)
        TRY(group_section(document, &GROUPS[i], &terms, &next, arena));
    return status_ok();
}
