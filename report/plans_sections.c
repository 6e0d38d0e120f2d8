// Plans side by side: what each would do, why it is behind, what it trades.
#include "plan/plan.h"
#include "report/answer_sections.h"
#include "report/plan_table.h"

#include <math.h>
#include <string.h>

static const char *said(const JsonNode *object, const char *key) {
    const JsonNode node = json_get(object, key);
    return cJSON_GetStringValue(node.item);
}

static Status scatter_row(cJSON *section, const JsonNode *plan, Arena *arena) {
    const JsonNode parallel = json_get(plan, "parallel");
    static const char *const keys[] = {"step_time_s", "memory_device_bytes",
                                       "memory_available_bytes", "joules_per_token",
                                       "usd_per_1e9_tokens"};
    cJSON *row = section_row(section);
    row_text(row, parallel_describe(parallel.item, arena));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double value;
        TRY(number_at(plan, keys[i], false, &value));
        row_number(row, value);
    }
    return status_ok();
}

static cJSON *scatter_section(Document *document, bool frontier) {
    static const DocumentColumn columns[] = {
        {"plan", "plan"},
        {"step_time_s", "step time"},
        {"memory_device_bytes", "memory"},
        {"memory_available_bytes", "there is"},
        {"joules_per_token", "J per token"},
        {"usd_per_1e9_tokens", "USD per 1e9 tokens"},
    };
    const SectionSpec spec = {
        .id = "pareto",
        .title = frontier ? "Every trade worth making" : "Step time against memory",
        .text = frontier ? "No plan beats one of these on step time, memory and energy at once "
                           "(Pareto frontier)."
                         : "The plans of the table above; `plan --pareto` lists every trade that "
                           "is worth making.",
        .chart = "scatter",
        SECTION_COLUMNS(columns),
    };
    return document_section(document, &spec);
}

static void search_said(cJSON *section, const JsonNode *root, Arena *arena) {
    const JsonNode search = json_get(root, "search");
    const char *text = search_text(root, arena), *space = said(&search, "space");
    if (text) section_add_text(section, text);
    if (space) section_add_text(section, space);
}

// Open choices of the software that would make the best plan faster.
static Status switch_list(Document *document, const Answer *answer) {
    static const DocumentColumn columns[] = {
        {"change", "change"},         {"gain_frac", "less time"},
        {"step_time_s", "step time"}, {"plan_change", "with, of the plan"},
        {"caution", "caution"},
    };
    const JsonNode switches = json_get(&answer->root, "switches");
    const SectionSpec spec = {
        .id = "switches",
        .title = "Switches that the scenario leaves open",
        .text = "What each would save of the best plan's step, on top of those before it; "
                "`plan --tune` searches them all.",
        SECTION_COLUMNS(columns)};
    if (json_size(&switches) == 0) return status_ok();
    cJSON *section = document_section(document, &spec);
    for (int i = 0; i < json_size(&switches); i++) {
        const JsonNode choice = json_at(&switches, i);
        cJSON *row = section_row(section);
        double gain, step_s;
        TRY(number_at(&choice, "gain_frac", true, &gain));
        TRY(number_at(&choice, "step_time_s", true, &step_s));
        row_text(row, said(&choice, "change"));
        row_number(row, gain);
        row_number(row, step_s);
        row_text(row, said(&choice, "plan_change"));
        row_text(row, said(&choice, "caution"));
    }
    return status_ok();
}

static void extrapolated_said(cJSON *section, const JsonNode *plans, int num_plans, Arena *arena) {
    const char *last = NULL;
    for (int i = 0; i < num_plans; i++) {
        const JsonNode plan = json_at(plans, i);
        const char *text = plan_extrapolated(&plan, i + 1, &last, arena);
        if (text) section_add_text(section, text);
    }
}

// Better than the best, and less sure to fit.
static Status riskier_list(Document *document, const Answer *answer, Arena *arena) {
    static const DocumentColumn columns[] = {
        {"plan", "plan"},
        {"step_time_s", "step time"},
        {"memory_device_bytes", "memory"},
        {"fits_probability_frac", "fits with"},
        {"why", "why"},
    };
    static const char *const keys[] = {"step_time_s", "memory_device_bytes",
                                       "fits_probability_frac"};
    const JsonNode plans = json_get(&answer->root, "riskier");
    const SectionSpec spec = {.id = "riskier",
                              .title = "Riskier",
                              .text = "These plans may run out of memory: they are less sure to "
                                      "fit than was asked for (`plan --fit-probability`).",
                              SECTION_COLUMNS(columns)};
    if (json_size(&plans) == 0) return status_ok();
    cJSON *section = document_section(document, &spec);
    for (int i = 0; i < json_size(&plans); i++) {
        const JsonNode plan = json_at(&plans, i), parallel = json_get(&plan, "parallel");
        cJSON *row = section_row(section);
        row_text(row, parallel_describe(parallel.item, arena));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            double value;
            TRY(number_at(&plan, keys[k], true, &value));
            row_number(row, value);
        }
        row_text(row, said(&plan, "why"));
    }
    return status_ok();
}

// Where nothing fits.
static Status miss_part(Document *document, const Answer *answer, Arena *arena) {
    const JsonNode miss = json_get(&answer->root, "closest_miss");
    const JsonNode parallel = json_get(&miss, "parallel");
    static const DocumentColumn columns[] = {
        {"plan", "closest plan"},
        {"memory_device_bytes", "needs on one GPU"},
        {"missing_bytes", "too much"},
        {"would_fit", "it would fit"},
    };
    const SectionSpec spec = {.id = "miss", .title = "Nothing fits", SECTION_COLUMNS(columns)};
    document_part(document, answer_title(answer, "Plans", arena), NULL);
    cJSON *section = document_section(document, &spec);
    search_said(section, &answer->root, arena);
    if (!json_is_present(&miss)) return status_ok();
    double needed, missing;
    TRY(number_at(&miss, "memory_device_bytes", true, &needed));
    TRY(number_at(&miss, "missing_bytes", true, &missing));
    cJSON *row = section_row(section);
    row_text(row, parallel_describe(parallel.item, arena));
    row_number(row, needed);
    row_number(row, missing);
    row_text(row, said(&miss, "would_fit"));
    return riskier_list(document, answer, arena);
}

static Status plan_list(Document *document, const JsonNode *plans, const Answer *answer,
                        Arena *arena) {
    const JsonNode axes = json_get(&answer->root, "pareto");
    const int num_plans = json_size(plans);
    const int num_rows = num_plans < SECTION_MAX_ROWS ? num_plans : SECTION_MAX_ROWS;
    cJSON *section;
    document_part(document, answer_title(answer, "Plans", arena), NULL);
    TRY(plans_table(document, plans, json_is_present(&axes), SECTION_MAX_ROWS, arena, &section));
    extrapolated_said(section, plans, num_rows, arena);
    search_said(section, &answer->root, arena);
    if (num_rows < num_plans)
        section_add_text(section, arena_printf(arena, "The first %d of %d plans are shown.",
                                               num_rows, num_plans));
    TRY(riskier_list(document, answer, arena));
    TRY(switch_list(document, answer));
    if (num_rows < 2) return status_ok();
    section = scatter_section(document, json_is_present(&axes));
    for (int i = 0; i < num_rows; i++) {
        const JsonNode plan = json_at(plans, i);
        TRY(scatter_row(section, &plan, arena));
    }
    return status_ok();
}

Status plans_sections(Document *document, const Answer *answer, Arena *arena) {
    if (answer->kind == ANSWER_ESTIMATE) {
        document_part(document, answer_title(answer, "An estimate", arena), NULL);
        return estimate_table(document, &answer->root, arena);
    }
    const JsonNode plans = json_get(&answer->root, "plans");
    TRY(json_expect_array(&plans));
    if (json_size(&plans) == 0) return miss_part(document, answer, arena);
    return plan_list(document, &plans, answer, arena);
}
