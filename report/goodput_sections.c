// What failures leave, as `whatif --goodput --json` has it.
#include "report/answer_sections.h"
#include "report/units.h"

#include <math.h>

// The answer, and the first of its figures that was missing.
typedef struct {
    const JsonNode *root;
    Status status;
} Reader;

//   parent  NULL: the answer itself
static double figure(Reader *of, const char *parent, const char *key) {
    const JsonNode node = parent ? json_get(of->root, parent) : *of->root;
    double value;
    const Status status = number_at(&node, key, true, &value);
    if (of->status.code == STATUS_OK) of->status = status;
    return value;
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

static void inputs_say(cJSON *section, Reader *of, Arena *arena) {
    char bytes[UNITS_SIZE], rate[UNITS_SIZE];
    line_add(section, "failures",
             arena_printf(arena,
                          "%.3g per GPU-hour: one in %s on %.0f GPUs, %.0f %% of them take a node "
                          "out for %s",
                          figure(of, "inputs", "failures_per_gpu_hour"),
                          span_text(figure(of, NULL, "mean_time_between_failures_s"), arena),
                          figure(of, NULL, "num_gpus"), 100 * figure(of, "inputs", "hardware_frac"),
                          span_text(figure(of, "inputs", "repair_s"), arena)));
    line_add(section, "checkpoint",
             arena_printf(arena, "%s, written at %s/s in %s",
                          units_bytes(figure(of, NULL, "checkpoint_bytes"), bytes),
                          units_bytes(figure(of, "inputs", "storage_bytes_per_s"), rate),
                          span_text(figure(of, NULL, "checkpoint_write_s"), arena)));
    line_add(section, "restart",
             arena_printf(arena, "%s, reading the checkpoint included",
                          span_text(figure(of, NULL, "restart_s"), arena)));
}

// The interval between checkpoints that is best, as it was played.
static void interval_say(cJSON *section, Reader *of, Arena *arena) {
    const JsonNode intervals = json_get(of->root, "intervals");
    const double every = figure(of, NULL, "checkpoint_every_steps");
    JsonNode best = json_at(&intervals, 0);
    Reader of_best = {.root = &best};
    while (best.item && figure(&of_best, NULL, "num_steps") != every) best = json_next(&best);
    line_add(section, "checkpoint",
             arena_printf(arena,
                          "every %.0f steps, %s (Young %s, Daly %s): %.2f %% of the time is "
                          "progress, %.2f +- %.2f %% played",
                          every, span_text(figure(of, NULL, "checkpoint_interval_s"), arena),
                          span_text(figure(of, "formulas", "young_interval_s"), arena),
                          span_text(figure(of, "formulas", "daly_interval_s"), arena),
                          100 * figure(&of_best, NULL, "formula_goodput_frac"),
                          100 * figure(&of_best, NULL, "goodput_frac"),
                          100 * figure(&of_best, NULL, "goodput_error_frac")));
    line_add(section, "the rest",
             arena_printf(arena, "%.2f %% writing, %.2f %% restarting, %.2f %% lost",
                          100 * figure(of, "formulas", "write_frac"),
                          100 * figure(of, "formulas", "restart_frac"),
                          100 * figure(of, "formulas", "lost_frac")));
    if (of->status.code == STATUS_OK) of->status = of_best.status;
}

static void spares_say(cJSON *section, Reader *of, Arena *arena) {
    const char *text =
        arena_printf(arena, "%.0f worth the price, for %.0f nodes of which %.2g are under repair; ",
                     figure(of, "spares", "best_num_nodes"), figure(of, NULL, "num_nodes"),
                     figure(of, "spares", "nodes_under_repair"));
    if (figure(of, "spares", "num_nodes") > 0)
        text = arena_printf(
            arena, "%swith %.0f the job waits %.2f %% of the time, with none %.1f %%", text,
            figure(of, "spares", "num_nodes"), 100 * (1 - figure(of, "spares", "available_frac")),
            100 * (1 - figure(of, "spares", "available_without_frac")));
    else
        text = arena_printf(arena, "%swith none the job waits %.2f %% of the time", text,
                            100 * (1 - figure(of, "spares", "available_without_frac")));
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
    Reader of = {.root = goodput};
    cJSON *section = document_section(document, &spec);
    inputs_say(section, &of, arena);
    interval_say(section, &of, arena);
    spares_say(section, &of, arena);
    return of.status;
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
