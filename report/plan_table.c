#include "report/plan_table.h"

#include "plan/plan.h"
#include "planner/questions/advice.h"
#include "report/fit_text.h"
#include "report/report.h"
#include "report/units.h"

#include <math.h>
#include <string.h>

// Figures of a plan, in the order of the section's columns.
static const struct {
    const char *key;
    bool required;
} FIGURES[] = {
    {"step_time_low_s", false},       {"step_time_high_s", false}, {"loses_frac", false},
    {"tokens_per_s", false},          {"mfu_frac", false},         {"memory_device_bytes", true},
    {"fits_probability_frac", false}, {"joules_per_token", false}, {"usd_per_1e9_tokens", false},
};
enum { NUM_FIGURES = sizeof FIGURES / sizeof *FIGURES };

static const char *said(const JsonNode *object, const char *key) {
    const JsonNode node = json_get(object, key);
    return cJSON_GetStringValue(node.item);
}

static bool is_true(const JsonNode *object, const char *key) {
    const JsonNode node = json_get(object, key);
    return cJSON_IsTrue(node.item);
}

// As a whole number; `otherwise` where it is none.
static int integer_at(const JsonNode *object, const char *key, int otherwise) {
    const JsonNode node = json_get(object, key);
    return cJSON_IsNumber(node.item) ? node.item->valueint : otherwise;
}

// --- The sentence below a plan

// "stages of 8, 10 x 2, 8 layers" where they are not all alike.
static const char *stages_text(const JsonNode *parallel, Arena *arena) {
    const JsonNode stages = json_get(parallel, "stages");
    const int num = json_size(&stages), vpp = integer_at(parallel, "vpp", 1);
    const char *text = "";
    int first = 0, num_runs = 0;
    if (num != integer_at(parallel, "pp", 1) * vpp) return NULL; // two copies of each
    for (int from = 0, next; from < num; from = next) {
        const JsonNode stage = json_at(&stages, from);
        const int layers = integer_at(&stage, "layers", 0);
        for (next = from + 1; next < num; next++) {
            const JsonNode other = json_at(&stages, next);
            if (integer_at(&other, "layers", 0) != layers) break;
        }
        text = arena_printf(arena, "%s%s%d", text, num_runs++ ? ", " : "", layers);
        if (next - from > 1) text = arena_printf(arena, "%s x %d", text, next - from);
        first = from;
    }
    if (first == 0) return NULL;
    return arena_printf(arena, "%s of %s layers", vpp > 1 ? "chunks" : "stages", text);
}

static const char *exposed_text(const JsonNode *plan, Arena *arena) {
    const JsonNode terms = json_get(plan, "breakdown_s");
    double term_s[NUM_TERMS], step_s;
    if (number_at(plan, "step_time_s", true, &step_s).code != STATUS_OK) return NULL;
    for (int t = 0; t < NUM_TERMS; t++)
        if (number_at(&terms, TERM_NAMES[t], true, &term_s[t]).code != STATUS_OK) return NULL;
    return arena_printf(arena, "exposed: %s", report_exposed(term_s, step_s, arena));
}

static const char *plan_advice(const JsonNode *plan, Arena *arena) {
    const JsonNode node = json_get(plan, "advice");
    Advice advice = {.limit = said(&node, "limited_by"),
                     .change = said(&node, "change"),
                     .is_of_job = is_true(&node, PLAN_TABLE_OF_JOB)};
    if (!advice.limit) return NULL;
    if (number_at(&node, "gain_frac", true, &advice.gain_frac).code != STATUS_OK ||
        number_at(&node, "missing_bytes", true, &advice.missing_bytes).code != STATUS_OK)
        advice.change = NULL;
    return advice_text(&advice, arena);
}

// Less sure than this is worth a word.
static const double SURE_FRAC = 0.99;

static const char *fit_note(const JsonNode *plan, Arena *arena) {
    const JsonNode fits = json_get(plan, "fits");
    double sure;
    if (cJSON_IsFalse(fits.item)) return "does not fit";
    if (number_at(plan, "fits_probability_frac", true, &sure).code != STATUS_OK) return NULL;
    return sure >= SURE_FRAC ? NULL : arena_printf(arena, "fits with %s", fit_percent(sure, arena));
}

// Why it is where it is, what holds it back, what would help.
static const char *plan_note(const JsonNode *plan, int number, Arena *arena) {
    const JsonNode parallel = json_get(plan, "parallel");
    const char *const clauses[] = {
        said(plan, "why"),
        stages_text(&parallel, arena),
        exposed_text(plan, arena),
        plan_advice(plan, arena),
        number > 1 && is_true(plan, "within_noise_of_best") ? "within the noise of the best" : NULL,
        fit_note(plan, arena),
        is_true(plan, "extrapolated") ? "extrapolated" : NULL,
    };
    const char *text = "";
    for (size_t i = 0; i < sizeof clauses / sizeof *clauses; i++)
        if (clauses[i] && clauses[i][0])
            text = arena_printf(arena, "%s%s%s", text, text[0] ? "; " : "", clauses[i]);
    return text;
}

const char *plan_extrapolated(const JsonNode *plan, int number, const char **last, Arena *arena) {
    const JsonNode list = json_get(plan, "extrapolated_because");
    const int num = json_size(&list);
    const char **reasons = ARENA_ARRAY(arena, num + 1, const char *);
    for (int i = 0; i < num; i++) {
        const JsonNode reason = json_at(&list, i);
        reasons[i] = cJSON_IsString(reason.item) ? reason.item->valuestring : "";
    }
    const char *text = reasons_text(reasons, num, arena);
    if (!text || (*last && strcmp(text, *last) == 0)) return NULL;
    *last = text;
    return arena_printf(arena, "Plan %d is extrapolated, so with wider intervals: %s.", number,
                        text);
}

// --- Rows

// "11.6 - 13.1 s", or with both units where they differ.
static const char *interval_text(const JsonNode *plan, Arena *arena) {
    char low[UNITS_SIZE], high[UNITS_SIZE];
    double low_s, high_s;
    if (number_at(plan, "step_time_low_s", true, &low_s).code != STATUS_OK ||
        number_at(plan, "step_time_high_s", true, &high_s).code != STATUS_OK)
        return NULL;
    units_seconds(low_s, low);
    units_seconds(high_s, high);
    char *unit = strchr(low, ' ');
    if (unit && strcmp(unit, strchr(high, ' ')) == 0) *unit = '\0';
    return arena_printf(arena, "%s - %s", low, high);
}

static Status plan_row(cJSON *section, const JsonNode *plan, int number, Arena *arena) {
    const JsonNode parallel = json_get(plan, "parallel");
    const char *name = said(plan, PLAN_TABLE_NAME);
    double value;
    TRY(json_expect_object(plan));
    TRY(json_expect_object(&parallel));
    TRY(number_at(plan, "step_time_s", true, &value));
    cJSON *row = section_row(section);
    row_number(row, number);
    row_text(row, name ? name : parallel_describe(parallel.item, arena));
    row_number(row, value);
    row_text(row, interval_text(plan, arena));
    for (int i = 0; i < NUM_FIGURES; i++) {
        TRY(number_at(plan, FIGURES[i].key, FIGURES[i].required, &value));
        row_number(row, value);
    }
    row_text(row, plan_note(plan, number, arena));
    if (number == 1) section_style(section, STYLE_GOOD);
    return status_ok();
}

static cJSON *plans_section(Document *document, bool frontier) {
    const DocumentColumn columns[] = {
        {"rank", "#"},
        {"plan", "plan"},
        {"step_time_s", "step time"},
        {"interval", "80 % interval"},
        {"step_time_low_s", "80 % interval from"},
        {"step_time_high_s", frontier ? "at most (80 %)" : "to"},
        {"loses_frac", "slower"},
        {"tokens_per_s", "tokens/s"},
        {"mfu_frac", "MFU"},
        {"memory_device_bytes", "memory"},
        {"fits_probability_frac", "fits with"},
        {"joules_per_token", "J/token"},
        {"usd_per_1e9_tokens", "USD/1e9"},
        {"why", "why"},
    };
    const SectionSpec spec = {
        .id = "alternatives",
        .title = "The plans and their step times",
        .text = "Bars end at the step time, whiskers span its 80 % interval. Plans whose intervals "
                "overlap may change places on the machine.",
        .chart = "intervals",
        .in_text = frontier ? "rlrx-r3r1--r-r2r4-" : "rlrR4---r2r1r3--r5n",
        SECTION_COLUMNS(columns),
    };
    return document_section(document, &spec);
}

Status plans_table(Document *document, const JsonNode *plans, bool frontier, int max_rows,
                   Arena *arena, cJSON **section) {
    *section = plans_section(document, frontier);
    for (int i = 0; i < json_size(plans) && i < max_rows; i++) {
        const JsonNode plan = json_at(plans, i);
        TRY(plan_row(*section, &plan, i + 1, arena));
    }
    return status_ok();
}

Status estimate_table(Document *document, const JsonNode *plan, Arena *arena) {
    const char *last = NULL;
    cJSON *section = plans_section(document, false);
    TRY(plan_row(section, plan, 1, arena));
    const char *text = plan_extrapolated(plan, 1, &last, arena);
    if (text) section_add_text(section, text);
    return status_ok();
}

// --- What was searched

// What is known of the configurations that were left out.
static const char *proof_text(const JsonNode *search, int num_plans, Arena *arena) {
    const bool early = is_true(search, "stopped_early");
    const int wanted = integer_at(search, "wanted", 0);
    double gap;
    if (number_at(search, "gap_frac", true, &gap).code != STATUS_OK) return "";
    const char *text = "";
    if (num_plans > 0 && is_true(search, "optimal"))
        text = " (by this model of the machine nothing better was left out)";
    else if (num_plans > 0)
        text = arena_printf(arena, " (%swhat was left out is at most %.1f %% better)",
                            early ? "stopped early; "
                                  : "of some of these not every split of the layers was tried; ",
                            gap * 100);
    if (early && num_plans < wanted)
        text =
            arena_printf(arena, "%s; the budget ended before %d plans were priced", text, wanted);
    return text;
}

static const char *frontier_proof(const JsonNode *search, Arena *arena) {
    double gap;
    if (is_true(search, "optimal"))
        return "by this model of the machine each other configuration is no better than one of "
               "these on every axis";
    if (number_at(search, "gap_frac", true, &gap).code != STATUS_OK || gap >= 1)
        return "stopped early; not all configurations were looked at";
    return arena_printf(arena,
                        "stopped early; each configuration left out improves on one of these by at "
                        "most %.1f %% on any axis",
                        gap * 100);
}

const char *search_text(const JsonNode *root, Arena *arena) {
    const JsonNode search = json_get(root, "search"), plans = json_get(root, "plans");
    const JsonNode axes = json_get(root, "pareto");
    const int num_plans = json_size(&plans);
    double considered, memory, bound, priced;
    if (!json_is_present(&search) ||
        number_at(&search, "considered", true, &considered).code != STATUS_OK ||
        number_at(&search, "pruned_by_memory", true, &memory).code != STATUS_OK ||
        number_at(&search, "pruned_by_bound", true, &bound).code != STATUS_OK ||
        number_at(&search, "priced", true, &priced).code != STATUS_OK)
        return NULL;
    if (json_is_present(&axes))
        return arena_printf(
            arena,
            "The frontier of %s%s: %d of %.0f configurations, %.0f of which do not fit in memory "
            "and %.0f were priced (%s).",
            is_true(root, "robust") ? "the upper end of the step time" : "step time",
            json_size(&axes) > 2 ? ", memory and energy" : " and memory", num_plans, considered,
            memory, priced, frontier_proof(&search, arena));
    return arena_printf(arena,
                        "Searched %.0f configurations: %.0f do not fit in memory, %.0f cannot be "
                        "among the best by their lower bound, %.0f were priced%s.",
                        considered, memory, bound, priced, proof_text(&search, num_plans, arena));
}
