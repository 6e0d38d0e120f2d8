#include "report/assumption_sections.h"

#include "base/data_dir.h"
#include "base/json.h"
#include "report/answer_sections.h"

#include <float.h>
#include <unistd.h>

static const DocumentColumn COLUMNS[] = {
    {"family", "source of the measurements"},
    {"num_cases", "steps"},
    {"mape_frac", "mean error"},
    {"median_frac", "median"},
    {"p90_frac", "90th percentile"},
    {"bias_frac", "mean signed error"},
    {"inside_interval_frac", "inside the 80 % interval"},
};
enum { NUM_COLUMNS = sizeof COLUMNS / sizeof *COLUMNS };

static Status score_row(cJSON *section, const JsonNode *score, const char *name) {
    cJSON *row = section_row(section);
    row_text(row, name);
    for (int i = 1; i < NUM_COLUMNS; i++) {
        double value;
        TRY(number_at(score, COLUMNS[i].key, false, &value));
        row_number(row, value);
    }
    return status_ok();
}

static Status whole_text(const JsonNode *all, Arena *arena, const char **text) {
    double num_cases, median, p90, inside;
    TRY(number_at(all, "num_cases", true, &num_cases));
    TRY(number_at(all, "median_frac", true, &median));
    TRY(number_at(all, "p90_frac", true, &p90));
    TRY(number_at(all, "inside_interval_frac", true, &inside));
    *text = arena_printf(arena,
                         "Of %.0f published training steps half were predicted to within %.1f %%, "
                         "nine of ten to within %.1f %%; %.0f %% lay inside the stated 80 %% "
                         "interval. Part of the constants were fitted with these steps in view.",
                         num_cases, median * 100, p90 * 100, inside * 100);
    return status_ok();
}

static Status set_section(Document *document, const JsonNode *set, Arena *arena) {
    const JsonNode families = json_get(set, "families"), all = json_get(set, "all");
    const JsonNode title = json_get(set, "title");
    SectionSpec spec = {
        .id = "accuracy",
        .chart = "accuracy",
        SECTION_COLUMNS(COLUMNS),
    };
    TRY(json_read_string(&title, arena, &spec.title));
    TRY(whole_text(&all, arena, &spec.text));
    TRY(json_expect_array(&families));
    cJSON *section = document_section(document, &spec);
    for (int i = 0; i < json_size(&families); i++) {
        const JsonNode score = json_at(&families, i), family = json_get(&score, "family");
        const char *name;
        TRY(json_read_string(&family, arena, &name));
        TRY(score_row(section, &score, name));
    }
    return score_row(section, &all, "all");
}

Status accuracy_sections(Document *document, Arena *arena) {
    const char *path = arena_printf(arena, "%s/published/accuracy.json", data_dir(arena));
    const bool there = access(path, R_OK) == 0;
    document_part(document, "How accurate such predictions have been",
                  there ? NULL : "The scores (published/accuracy.json) are not installed here.");
    if (!there) return status_ok();
    JsonNode root;
    TRY(json_load(path, arena, &root));
    const JsonNode sets = json_get(&root, "sets");
    TRY(json_expect_array(&sets));
    for (int i = 0; i < json_size(&sets); i++) {
        const JsonNode set = json_at(&sets, i);
        TRY(set_section(document, &set, arena));
    }
    return status_ok();
}
