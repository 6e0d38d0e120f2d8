// What failures leave, as `whatif --goodput --json` has it.
#include "report/answer_sections.h"
#include "report/units.h"

#include <math.h>

// What the sentences are made of.
enum {
    PER_HOUR,
    MTBF,
    NUM_GPUS,
    HARDWARE,
    REPAIR,
    BYTES,
    STORAGE,
    WRITE,
    RESTART,
    EVERY,
    INTERVAL,
    YOUNG,
    DALY,
    WRITING,
    RESTARTING,
    LOST,
    BEST_SPARES,
    SPARES,
    NUM_NODES,
    LOAD,
    AVAILABLE,
    WITHOUT,
    NUM_FIGURES
};

static const struct {
    const char *parent, *key; // NULL: of the answer itself
} FIGURES[NUM_FIGURES] = {
    [PER_HOUR] = {"inputs", "failures_per_gpu_hour"},
    [MTBF] = {NULL, "mean_time_between_failures_s"},
    [NUM_GPUS] = {NULL, "num_gpus"},
    [HARDWARE] = {"inputs", "hardware_frac"},
    [REPAIR] = {"inputs", "repair_s"},
    [BYTES] = {NULL, "checkpoint_bytes"},
    [STORAGE] = {"inputs", "storage_bytes_per_s"},
    [WRITE] = {NULL, "checkpoint_write_s"},
    [RESTART] = {NULL, "restart_s"},
    [EVERY] = {NULL, "checkpoint_every_steps"},
    [INTERVAL] = {NULL, "checkpoint_interval_s"},
    [YOUNG] = {"formulas", "young_interval_s"},
    [DALY] = {"formulas", "daly_interval_s"},
    [WRITING] = {"formulas", "write_frac"},
    [RESTARTING] = {"formulas", "restart_frac"},
    [LOST] = {"formulas", "lost_frac"},
    [BEST_SPARES] = {"spares", "best_num_nodes"},
    [SPARES] = {"spares", "num_nodes"},
    [NUM_NODES] = {NULL, "num_nodes"},
    [LOAD] = {"spares", "nodes_under_repair"},
    [AVAILABLE] = {"spares", "available_frac"},
    [WITHOUT] = {"spares", "available_without_frac"},
};

static Status figures_read(const JsonNode *goodput, double *out) {
    for (int i = 0; i < NUM_FIGURES; i++) {
        const JsonNode parent = FIGURES[i].parent ? json_get(goodput, FIGURES[i].parent) : *goodput;
        TRY(number_at(&parent, FIGURES[i].key, true, &out[i]));
    }
    return status_ok();
}

static const char *span_text(double time_s, Arena *arena) {
    char text[UNITS_SIZE];
    return arena_strdup(arena, units_span(time_s, text));
}

static void line_add(cJSON *section, const char *what, const char *text) {
    cJSON *row = section_row(section);
    row_text(row, what);
    row_text(row, text);
}

static void inputs_say(cJSON *section, const double *of, Arena *arena) {
    char bytes[UNITS_SIZE], rate[UNITS_SIZE];
    line_add(section, "failures",
             arena_printf(arena,
                          "%.3g per GPU-hour: one in %s on %.0f GPUs, %.0f %% of them take a node "
                          "out for %s",
                          of[PER_HOUR], span_text(of[MTBF], arena), of[NUM_GPUS],
                          100 * of[HARDWARE], span_text(of[REPAIR], arena)));
    line_add(section, "checkpoint",
             arena_printf(arena, "%s, written at %s/s in %s", units_bytes(of[BYTES], bytes),
                          units_bytes(of[STORAGE], rate), span_text(of[WRITE], arena)));
    line_add(
        section, "restart",
        arena_printf(arena, "%s, reading the checkpoint included", span_text(of[RESTART], arena)));
}

// The interval of so many steps that was played.
static Status interval_say(cJSON *section, const JsonNode *goodput, const double *of,
                           Arena *arena) {
    const JsonNode intervals = json_get(goodput, "intervals");
    double steps = NAN, formula = NAN, played = NAN, error = NAN;
    for (int i = 0; i < json_size(&intervals) && steps != of[EVERY]; i++) {
        const JsonNode interval = json_at(&intervals, i);
        TRY(number_at(&interval, "num_steps", true, &steps));
        TRY(number_at(&interval, "formula_goodput_frac", true, &formula));
        TRY(number_at(&interval, "goodput_frac", true, &played));
        TRY(number_at(&interval, "goodput_error_frac", true, &error));
    }
    line_add(section, "checkpoint",
             arena_printf(arena,
                          "every %.0f steps, %s (Young %s, Daly %s): %.2f %% of the time is "
                          "progress, %.2f +- %.2f %% played",
                          of[EVERY], span_text(of[INTERVAL], arena), span_text(of[YOUNG], arena),
                          span_text(of[DALY], arena), 100 * formula, 100 * played, 100 * error));
    line_add(section, "the rest",
             arena_printf(arena, "%.2f %% writing, %.2f %% restarting, %.2f %% lost",
                          100 * of[WRITING], 100 * of[RESTARTING], 100 * of[LOST]));
    return status_ok();
}

static void spares_say(cJSON *section, const double *of, Arena *arena) {
    const char *text =
        arena_printf(arena, "%.0f worth the price, for %.0f nodes of which %.2g are under repair; ",
                     of[BEST_SPARES], of[NUM_NODES], of[LOAD]);
    if (of[SPARES] > 0)
        text =
            arena_printf(arena, "%swith %.0f the job waits %.2f %% of the time, with none %.1f %%",
                         text, of[SPARES], 100 * (1 - of[AVAILABLE]), 100 * (1 - of[WITHOUT]));
    else
        text = arena_printf(arena, "%swith none the job waits %.2f %% of the time", text,
                            100 * (1 - of[WITHOUT]));
    line_add(section, "spare nodes", text);
}

// What the rest follows from.
static Status basis_section(Document *document, const JsonNode *goodput, Arena *arena) {
    static const DocumentColumn columns[] = {{"what", "what"}, {"text", "figures"}};
    const SectionSpec spec = {
        .id = "goodput-basis",
        .title = "What the goodput rests on",
        .text = "Failures, storage and restarts are inputs with published defaults; the formulas "
                "and the runs that were played should agree.",
        .in_text = "*",
        SECTION_COLUMNS(columns),
    };
    double of[NUM_FIGURES];
    TRY(figures_read(goodput, of));
    cJSON *section = document_section(document, &spec);
    inputs_say(section, of, arena);
    TRY(interval_say(section, goodput, of, arena));
    spares_say(section, of, arena);
    return status_ok();
}

// Goodput by the interval between checkpoints: the formula's and the one that was played.
static Status intervals_section(Document *document, const JsonNode *goodput) {
    static const DocumentColumn columns[] = {
        {"interval_s", "between checkpoints"},
        {"num_steps", "steps"},
        {"goodput_frac", "goodput, played"},
        {"goodput_error_frac", "its standard error"},
        {"formula_goodput_frac", "goodput, by the formula"},
    };
    enum { NUM_COLUMNS = sizeof columns / sizeof *columns };
    const SectionSpec spec = {
        .id = "goodput",
        .title = "How often to write checkpoints",
        .text = "The share of the time that is progress, by the time between two checkpoints: "
                "rarer ones lose more work at a failure, more frequent ones cost their writing. "
                "Waiting for nodes under repair is not in it.",
        .chart = "goodput",
        SECTION_COLUMNS(columns),
    };
    const JsonNode intervals = json_get(goodput, "intervals");
    TRY(json_expect_array(&intervals));
    cJSON *section = document_section(document, &spec);
    double best_s;
    TRY(number_at(goodput, "checkpoint_interval_s", true, &best_s));
    cJSON_AddNumberToObject(section_data(section), "best_interval_s", best_s);
    for (int i = 0; i < json_size(&intervals) && i < SECTION_MAX_ROWS; i++) {
        const JsonNode interval = json_at(&intervals, i);
        cJSON *row = section_row(section);
        for (int k = 0; k < NUM_COLUMNS; k++) {
            double value;
            TRY(number_at(&interval, columns[k].key, true, &value));
            row_number(row, value);
        }
    }
    return status_ok();
}

// Where the time of a whole run goes, spares included, as it was played.
static Status run_section(Document *document, const JsonNode *goodput) {
    static const DocumentColumn columns[] = {
        {"part", "part"},
        {"time_s", "time"},
        {"time_frac", "share"},
    };
    static const struct {
        const char *key, *title;
    } parts[] = {
        {"useful_s", "progress"},         {"write_s", "writing checkpoints"},
        {"lost_s", "work that was lost"}, {"restart_s", "finding out and restarting"},
        {"wait_s", "waiting for a node"},
    };
    const SectionSpec spec = {
        .id = "goodput-run",
        .title = "Where the time of a run goes",
        .text = "The mean of the runs that were played from failure to failure.",
        .chart = "shares",
        SECTION_COLUMNS(columns),
    };
    const JsonNode run = json_get(goodput, "simulated");
    double wall_s;
    TRY(number_at(&run, "wall_s", true, &wall_s));
    cJSON *section = document_section(document, &spec);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double time_s;
        TRY(number_at(&run, parts[i].key, true, &time_s));
        cJSON *row = section_row(section);
        row_text(row, parts[i].title);
        row_number(row, time_s);
        row_number(row, wall_s > 0 ? time_s / wall_s : NAN);
    }
    return status_ok();
}

Status goodput_sections(Document *document, const Answer *answer, Arena *arena) {
    const JsonNode goodput = json_get(&answer->root, "goodput");
    TRY(json_expect_object(&goodput));
    document_part(document, answer_title(answer, "What failures leave", arena), NULL);
    TRY(basis_section(document, &goodput, arena));
    TRY(intervals_section(document, &goodput));
    return run_section(document, &goodput);
}
