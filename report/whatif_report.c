#include "report/whatif_report.h"

#include "report/grid_figures.h"
#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

#include <math.h>

static const char *value_text(const cJSON *value, Arena *arena) {
    if (cJSON_IsString(value)) return value->valuestring;
    char *printed = cJSON_PrintUnformatted(value);
    const char *text = arena_strdup(arena, printed ? printed : "");
    cJSON_free(printed);
    return text;
}

static const char *misfit_note(const WhatifFigures *f, Arena *arena) {
    char more[UNITS_SIZE];
    return arena_printf(arena, "does not fit: %s too much",
                        units_bytes(f->memory_device_bytes - f->memory_available_bytes, more));
}

static void add_point(Table *table, const WhatifResult *result, int64_t index, Arena *arena) {
    const WhatifPoint *point = &result->points[index];
    const int num_axes = result->num_axes;
    const char *cells[TABLE_MAX_COLUMNS] = {NULL};
    for (int i = 0; i < num_axes; i++)
        cells[i] = value_text(whatif_value(result->axes, num_axes, index, i), arena);
    if (!point->answer) {
        table_add(table, STYLE_BAD, cells, point->message);
        return;
    }
    const WhatifFigures *f = &point->figures;
    const double figures[NUM_GRID_FIGURES] = {
        [GRID_STEP_TIME] = f->step_time_s,
        [GRID_TOKENS] = f->tokens_per_s,
        [GRID_MFU] = f->mfu_frac,
        [GRID_MEMORY] = f->memory_device_bytes,
        [GRID_COST] = f->usd_per_1e9_tokens > 0 ? f->usd_per_1e9_tokens : NAN,
    };
    grid_text_cells(figures, cells + num_axes, arena);
    cells[table->num_columns - 1] = point->plan;
    bool fits = point->code == STATUS_OK;
    table_add(table, fits ? STYLE_PLAIN : STYLE_BAD, cells,
              fits ? point->note : misfit_note(f, arena));
}

void report_whatif(const Scenario *scenario, const WhatifResult *result, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    TableColumn columns[TABLE_MAX_COLUMNS];
    int num_axes = result->num_axes;
    _Static_assert(WHATIF_MAX_AXES + NUM_GRID_FIGURES + 1 <= TABLE_MAX_COLUMNS,
                   "a column per axis");
    for (int i = 0; i < num_axes; i++) columns[i] = (TableColumn){result->axes[i].path, true, 0};
    int num_columns = num_axes + grid_text_columns(columns + num_axes);
    columns[num_columns++] = (TableColumn){"plan", false, 0};
    paper_wrap(&paper, 0, STYLE_BOLD,
               arena_printf(&arena, "%s; %s%s", report_question(scenario, &arena),
                            result->replan ? "changed as below, planned anew at each point"
                                           : "changed as below",
                            result->played ? ", played in the simulator" : ""));
    fputc('\n', stream);
    Table table = table_new(&arena, columns, num_columns);
    for (int64_t p = 0; p < result->num_points; p++) add_point(&table, result, p, &arena);
    table_print(&table, &paper);
    arena_free(&arena);
}
