// What failures leave, as `whatif --goodput --json` has it.
#include "report/answer_sections.h"

#include <math.h>

// A key of an object, and what it is called.
typedef struct {
    const char *parent; // NULL: the answer itself
    const char *key, *title;
    const char *column; // its key in the section; NULL: the same
} Figure;

static JsonNode parent_of(const JsonNode *goodput, const char *parent) {
    return parent ? json_get(goodput, parent) : *goodput;
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
    static const Figure parts[] = {
        {NULL, "useful_s", "progress", NULL},
        {NULL, "write_s", "writing checkpoints", NULL},
        {NULL, "lost_s", "work that was lost", NULL},
        {NULL, "restart_s", "finding out and restarting", NULL},
        {NULL, "wait_s", "waiting for a node", NULL},
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

// One row of the figures that the rest follows from.
static Status basis_section(Document *document, const JsonNode *goodput) {
    static const Figure figures[] = {
        {NULL, "goodput_frac", "goodput", NULL},
        {"simulated", "goodput_frac", "goodput, played", "played_goodput_frac"},
        {NULL, "mean_time_between_failures_s", "between failures", NULL},
        {NULL, "checkpoint_bytes", "checkpoint", NULL},
        {NULL, "checkpoint_write_s", "writing it", NULL},
        {NULL, "restart_s", "restart", NULL},
        {NULL, "checkpoint_every_steps", "steps between checkpoints", NULL},
        {"formulas", "young_interval_s", "interval by Young", NULL},
        {"formulas", "daly_interval_s", "interval by Daly", NULL},
        {"spares", "num_nodes", "spare nodes", "num_spare_nodes"},
        {"spares", "best_num_nodes", "spare nodes worth their price", NULL},
        {"spares", "available_frac", "time with all nodes", NULL},
    };
    enum { NUM_FIGURES = sizeof figures / sizeof *figures };
    DocumentColumn columns[NUM_FIGURES];
    for (int i = 0; i < NUM_FIGURES; i++)
        columns[i] = (DocumentColumn){figures[i].column ? figures[i].column : figures[i].key,
                                      figures[i].title};
    const SectionSpec spec = {
        .id = "goodput-basis",
        .title = "What the goodput rests on",
        .text = "Failures, storage and restarts are inputs with published defaults; the formulas "
                "and the runs that were played should agree.",
        .columns = columns,
        .num_columns = NUM_FIGURES,
    };
    cJSON *row = section_row(document_section(document, &spec));
    for (int i = 0; i < NUM_FIGURES; i++) {
        const JsonNode parent = parent_of(goodput, figures[i].parent);
        double value;
        TRY(number_at(&parent, figures[i].key, true, &value));
        row_number(row, value);
    }
    return status_ok();
}

Status goodput_sections(Document *document, const Answer *answer, Arena *arena) {
    const JsonNode goodput = json_get(&answer->root, "goodput");
    TRY(json_expect_object(&goodput));
    document_part(document, answer_title(answer, "What failures leave", arena), NULL);
    TRY(basis_section(document, &goodput));
    TRY(intervals_section(document, &goodput));
    return run_section(document, &goodput);
}
