#include "report/rival_report.h"

#include "report/table.h"
#include "report/units.h"

#include <math.h>

enum { COLUMN_TERM, COLUMN_BEST, COLUMN_NAMED, COLUMN_DIFFERENCE, NUM_COLUMNS };

static const TableColumn COLUMNS[NUM_COLUMNS] = {
    [COLUMN_TERM] = {"term", false, 0},
    [COLUMN_BEST] = {"best", true, 0},
    [COLUMN_NAMED] = {"named", true, 0},
    [COLUMN_DIFFERENCE] = {"difference", true, 0},
};

typedef const char *(*UnitsText)(double value, char *text);

static void row_add(Table *table, const char *term, double best, double difference,
                    UnitsText units) {
    char text[NUM_COLUMNS][UNITS_SIZE + 1], size[UNITS_SIZE];
    const char *cells[NUM_COLUMNS] = {term, text[1], text[2], text[3]};
    units(best, text[COLUMN_BEST]);
    units(best + difference, text[COLUMN_NAMED]);
    snprintf(text[COLUMN_DIFFERENCE], sizeof text[0], "%s%s", difference < 0 ? "-" : "+",
             units(fabs(difference), size));
    table_add(table, STYLE_PLAIN, cells, NULL);
}

static void table_fill(Table *table, const Rival *rival, const Estimate *best) {
    double step_s = 0;
    for (int t = 0; t < NUM_TERMS; t++) {
        step_s += rival->term_s[t];
        if (best->term_s[t] > 0 || rival->term_s[t] > 0)
            row_add(table, TERM_NAMES[t], best->term_s[t], rival->term_s[t], units_seconds);
    }
    row_add(table, "step", best->step_time_s, step_s, units_seconds);
    const RankMemory *m = &best->memory;
    const double parts[] = {m->weights_bytes, m->gradients_bytes, m->optimizer_bytes,
                            m->activations_bytes, m->buffers_bytes};
    for (int i = 0; RIVAL_PARTS[i]; i++)
        row_add(table, RIVAL_PARTS[i], parts[i], rival->part_bytes[i], units_bytes);
    row_add(table, "memory on the device", m->device_bytes, rival->memory_device_bytes,
            units_bytes);
}

void report_rival(const Rival *rival, const char *text, const PlannerResult *result, FILE *stream) {
    Arena arena = {0};
    const Paper paper = paper_of(stream);
    fputc('\n', stream);
    paper_heading(&paper, arena_printf(&arena, "%s, against the best", text));
    if (rival->refusal) {
        paper_wrap(&paper, 0, STYLE_BAD, arena_printf(&arena, "not legal: %s", rival->refusal));
    } else if (rival->found.num_entries == 0) {
        paper_wrap(&paper, 0, STYLE_BAD, planner_miss_text(&rival->found, &arena));
    } else {
        const PlannedEntry *named = &rival->found.entries[0];
        paper_wrap(
            &paper, 0, STYLE_PLAIN,
            arena_printf(&arena, "The best such plan is %s: %s%s.",
                         plan_describe(&named->plan, &arena), rival->why,
                         rival->within_noise_of_best ? "; within the noise of the best" : ""));
        Table table = table_new(&arena, COLUMNS, NUM_COLUMNS);
        table_fill(&table, rival, &result->entries[0].estimate);
        table_print(&table, &paper);
    }
    arena_free(&arena);
}
