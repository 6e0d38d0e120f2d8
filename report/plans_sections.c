// Plans side by side: what each would do, why it is behind, what it trades.
#include "plan/plan.h"
#include "report/answer_sections.h"

#include <math.h>
#include <string.h>

// Figures of a plan, in the order of the section's columns.
static const struct {
    const char *key;
    bool required;
} FIGURES[] = {
    {"step_time_s", true},
    {"step_time_low_s", false},
    {"step_time_high_s", false},
    {"tokens_per_s", false},
    {"mfu_frac", false},
    {"memory_device_bytes", true},
    {"fits_probability_frac", false},
    {"usd_per_1e9_tokens", false},
    {"joules_per_token", false},
    {"loses_frac", false},
};
enum { NUM_FIGURES = sizeof FIGURES / sizeof *FIGURES };

static const char *said(const JsonNode *object, const char *key) {
    const JsonNode node = json_get(object, key);
    return cJSON_GetStringValue(node.item);
}

// Why it is where it is, what holds it back, what would help.
static const char *reasons_text(const JsonNode *plan, Arena *arena) {
    const JsonNode advice = json_get(plan, "advice"),
                   noise = json_get(plan, "within_noise_of_best");
    const JsonNode fits = json_get(plan, "fits");
    const char *why = said(plan, "why"), *limit = said(&advice, "limited_by");
    const char *change = said(&advice, "change"), *text = why ? why : "";
    double gain, missing;
    if (cJSON_IsFalse(fits.item)) text = arena_printf(arena, "%s; does not fit", text);
    if (limit) text = arena_printf(arena, "%s; limited by %s", text, limit);
    if (change && number_at(&advice, "gain_frac", true, &gain).code == STATUS_OK) {
        text = arena_printf(arena, "%s; %s would be %.1f %% faster", text, change, gain * 100);
        if (number_at(&advice, "missing_bytes", true, &missing).code == STATUS_OK && missing > 0)
            text =
                arena_printf(arena, "%s, but needs %.2f GB more on each GPU", text, missing / 1e9);
    }
    const JsonNode extrapolated = json_get(plan, "extrapolated_because");
    for (int i = 0; i < json_size(&extrapolated); i++) {
        const JsonNode reason = json_at(&extrapolated, i);
        text = arena_printf(arena, "%s; %s%s", text, i == 0 ? "extrapolated: " : "",
                            cJSON_GetStringValue(reason.item));
    }
    if (cJSON_IsTrue(noise.item))
        text = arena_printf(arena, "%s; within the noise of the best", text);
    return strncmp(text, "; ", 2) == 0 ? text + 2 : text;
}

static Status plan_row(cJSON *section, const JsonNode *plan, int number, Arena *arena) {
    const JsonNode parallel = json_get(plan, "parallel");
    TRY(json_expect_object(plan));
    TRY(json_expect_object(&parallel));
    cJSON *row = section_row(section);
    row_number(row, number);
    row_text(row, parallel_describe(parallel.item, arena));
    for (int i = 0; i < NUM_FIGURES; i++) {
        double value;
        TRY(number_at(plan, FIGURES[i].key, FIGURES[i].required, &value));
        row_number(row, value);
    }
    row_text(row, reasons_text(plan, arena));
    return status_ok();
}

static cJSON *plans_section(Document *document) {
    static const DocumentColumn columns[] = {
        {"rank", "#"},
        {"plan", "plan"},
        {"step_time_s", "step time"},
        {"step_time_low_s", "80 % interval from"},
        {"step_time_high_s", "to"},
        {"tokens_per_s", "tokens/s"},
        {"mfu_frac", "MFU"},
        {"memory_device_bytes", "memory"},
        {"fits_probability_frac", "fits with"},
        {"usd_per_1e9_tokens", "USD per 1e9 tokens"},
        {"joules_per_token", "J per token"},
        {"loses_frac", "behind the best"},
        {"why", "why"},
    };
    const SectionSpec spec = {
        .id = "alternatives",
        .title = "The plans and their step times",
        .text = "Bars end at the step time, whiskers span its 80 % interval. Plans whose intervals "
                "overlap may change places on the machine.",
        .chart = "intervals",
        SECTION_COLUMNS(columns),
    };
    return document_section(document, &spec);
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

static void search_text(cJSON *section, const JsonNode *root, Arena *arena) {
    const JsonNode search = json_get(root, "search"), optimal = json_get(&search, "optimal");
    double considered, memory, bound, priced;
    if (!json_is_present(&search)) return;
    if (number_at(&search, "considered", true, &considered).code != STATUS_OK ||
        number_at(&search, "pruned_by_memory", true, &memory).code != STATUS_OK ||
        number_at(&search, "pruned_by_bound", true, &bound).code != STATUS_OK ||
        number_at(&search, "priced", true, &priced).code != STATUS_OK)
        return;
    section_add_text(
        section,
        arena_printf(arena,
                     "Searched were %.0f configurations: %.0f do not fit in memory, %.0f cannot be "
                     "among the best by their lower bound, %.0f were priced%s.",
                     considered, memory, bound, priced,
                     cJSON_IsTrue(optimal.item)
                         ? "; by this model of the machine nothing better was left out"
                         : ""));
    const char *space = said(&search, "space");
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
    search_text(section, &answer->root, arena);
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
    document_part(document, answer_title(answer, "Plans", arena), NULL);
    cJSON *section = plans_section(document);
    search_text(section, &answer->root, arena);
    if (num_rows < num_plans)
        section_add_text(section, arena_printf(arena, "The first %d of %d plans are shown.",
                                               num_rows, num_plans));
    for (int i = 0; i < num_rows; i++) {
        const JsonNode plan = json_at(plans, i);
        TRY(plan_row(section, &plan, i + 1, arena));
    }
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
        cJSON *section = plans_section(document);
        return plan_row(section, &answer->root, 1, arena);
    }
    const JsonNode plans = json_get(&answer->root, "plans");
    TRY(json_expect_array(&plans));
    if (json_size(&plans) == 0) return miss_part(document, answer, arena);
    return plan_list(document, &plans, answer, arena);
}
