// A simulation: how far from the estimate and why, how busy the links are.
#include "report/answer_sections.h"
#include "report/path_report.h"
#include "report/units.h"

#include <math.h>
#include <string.h>

enum { MAX_LINKS = 200 };

// The differences' keys and what they are.
static const char *const CAUSES[][2] = {
    {"contention", "links shared by several transfers"},
    {"spare_bandwidth", "bandwidth that the estimate does not count on"},
    {"model", "latency and overlap"},
    {"stragglers", "slow GPUs"},
    {"jitter", "jitter"},
    {"network", "disturbed network"},
};

static Status outcome_section(Document *document, const JsonNode *root, Arena *arena) {
    static const DocumentColumn columns[] = {
        {"what", "what"}, {"time_s", "time"}, {"share_frac", "of the estimate"}};
    const SectionSpec spec = {
        .id = "simulation",
        .title = "Simulated and estimated",
        .text = "The same program, its messages played as flows that share the links of the "
                "network.",
        SECTION_COLUMNS(columns),
    };
    double simulated, estimated;
    TRY(number_at(root, "step_time_s", true, &simulated));
    TRY(number_at(root, "estimate_step_time_s", true, &estimated));
    cJSON *section = document_section(document, &spec);
    const struct {
        const char *what;
        double time_s;
    } rows[] = {{"step, estimated", estimated}, {"step, simulated", simulated}};
    for (int i = 0; i < 2; i++) {
        cJSON *row = section_row(section);
        row_text(row, rows[i].what);
        row_number(row, rows[i].time_s);
        row_number(row, rows[i].time_s / estimated);
    }
    const JsonNode difference = json_get(root, "difference_s");
    for (size_t i = 0; i < sizeof CAUSES / sizeof *CAUSES; i++) {
        double time_s;
        TRY(number_at(&difference, CAUSES[i][0], false, &time_s));
        if (isnan(time_s) || fabs(time_s) < 1e-9 * estimated) continue;
        cJSON *row = section_row(section);
        row_text(row, CAUSES[i][1]);
        row_number(row, time_s);
        row_number(row, time_s / estimated);
    }
    const JsonNode reason = json_get(root, "folding_reason");
    if (cJSON_IsString(reason.item))
        section_add_text(section,
                         arena_printf(arena, "What was played: %s.", reason.item->valuestring));
    return status_ok();
}

static Status links_section(Document *document, const JsonNode *root, Arena *arena) {
    static const DocumentColumn columns[] = {{"link", "link"},
                                             {"utilization_frac", "of its bytes a step"}};
    const SectionSpec spec = {
        .id = "links",
        .title = "How busy the links are",
        .text = "Bytes carried over what the link could carry in the step, busiest first. What "
                "moves inside a scale-up domain is part of the computations' prices.",
        .chart = "links",
        SECTION_COLUMNS(columns),
    };
    const JsonNode links = json_get(root, "links");
    TRY(json_expect_array(&links));
    const int num_links = json_size(&links),
              num_rows = num_links < MAX_LINKS ? num_links : MAX_LINKS;
    if (num_links == 0) return status_ok();
    cJSON *section = document_section(document, &spec);
    for (int i = 0; i < num_rows; i++) {
        const JsonNode link = json_at(&links, i), name = json_get(&link, "name");
        const char *text;
        double utilization;
        TRY(json_read_string(&name, arena, &text));
        TRY(number_at(&link, "utilization_frac", true, &utilization));
        cJSON *row = section_row(section);
        row_text(row, text);
        row_number(row, utilization);
    }
    if (num_rows < num_links)
        section_add_text(section, arena_printf(arena, "The busiest %d of %d links are listed.",
                                               num_rows, num_links));
    return status_ok();
}

// "tp all gather" with what the text sets before it.
static const char *path_kind_text(const char *kind, Arena *arena) {
    char *text = arena_printf(arena, "  %s", kind);
    for (char *letter = text; *letter; letter++)
        if (*letter == '_') *letter = ' ';
    return text;
}

static Status path_row(cJSON *section, const JsonNode *total, double step_s, Arena *arena) {
    const double least_s = 1e-9 * step_s; // what rounding makes is nothing
    const JsonNode kind = json_get(total, "kind");
    const char *name;
    double count, simulated_s, estimated_s;
    char more[UNITS_SIZE];
    TRY(json_read_string(&kind, arena, &name));
    TRY(number_at(total, "count", false, &count));
    TRY(number_at(total, "simulated_s", false, &simulated_s));
    TRY(number_at(total, "estimated_s", false, &estimated_s));
    const double more_s = simulated_s - estimated_s;
    cJSON *row = section_row(section);
    row_text(row, path_kind_text(name, arena));
    row_text(row, name);
    row_number(row, count);
    row_number(row, simulated_s);
    row_number(row, simulated_s / step_s);
    row_number(row, estimated_s);
    row_text(row, fabs(more_s) > least_s ? units_seconds(more_s, more) : "-");
    return status_ok();
}

Status path_section(Document *document, const JsonNode *root, Arena *arena) {
    static const DocumentColumn columns[] = {
        {"kind_text", "work on the path"},
        {"kind", "work on the path"},
        {"count", "count"},
        {"simulated_s", "simulated"},
        {"step_share_frac", "of the step"},
        {"estimated_s", "estimated"},
        {"difference_text", "difference"},
    };
    const SectionSpec spec = {
        .id = "path",
        .title = "What the simulated step waits for",
        .text = "The chain of work and messages, each of which the next one had to wait for.",
        .in_text = "L-rrrrr",
        SECTION_COLUMNS(columns),
    };
    const JsonNode path = json_get(root, "critical_path"), totals = json_get(&path, "totals");
    double step_s;
    if (!json_is_present(&totals)) return status_ok();
    TRY(json_expect_array(&totals));
    TRY(number_at(root, "step_time_s", true, &step_s));
    cJSON *section = document_section(document, &spec);
    for (JsonNode total = json_at(&totals, 0); total.item; total = json_next(&total))
        TRY(path_row(section, &total, step_s, arena));
    return status_ok();
}

Status simulation_sections(Document *document, const Answer *answer, Arena *arena) {
    document_part(document, answer_title(answer, "On a shared network", arena), NULL);
    TRY(outcome_section(document, &answer->root, arena));
    TRY(links_section(document, &answer->root, arena));
    return path_section(document, &answer->root, arena);
}
