#include "report/whatif_report.h"

#include "report/report.h"
#include "report/table.h"
#include "report/units.h"

enum {
    COLUMN_STEP,
    COLUMN_TOKENS,
    COLUMN_MFU,
    COLUMN_MEMORY,
    COLUMN_COST,
    COLUMN_PLAN,
    NUM_COLUMNS
};

static const TableColumn COLUMNS[NUM_COLUMNS] = {
    [COLUMN_STEP] = {"step time", true, 0}, [COLUMN_TOKENS] = {"tokens/s", true, 0},
    [COLUMN_MFU] = {"MFU", true, 1},        [COLUMN_MEMORY] = {"memory", true, 2},
    [COLUMN_COST] = {"USD/1e9", true, 3},   [COLUMN_PLAN] = {"plan", false, 0},
};

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
    char step[UNITS_SIZE], tokens[UNITS_SIZE], mfu[UNITS_SIZE], memory[UNITS_SIZE];
    char cost[UNITS_SIZE];
    cells[num_axes + COLUMN_STEP] = units_seconds(f->step_time_s, step);
    cells[num_axes + COLUMN_TOKENS] = units_count(f->tokens_per_s, tokens);
    cells[num_axes + COLUMN_MFU] = units_percent(f->mfu_frac, mfu);
    cells[num_axes + COLUMN_MEMORY] = units_bytes(f->memory_device_bytes, memory);
    if (f->usd_per_1e9_tokens > 0)
        cells[num_axes + COLUMN_COST] = units_plain(f->usd_per_1e9_tokens, cost);
    cells[num_axes + COLUMN_PLAN] = point->plan;
    bool fits = point->code == STATUS_OK;
    table_add(table, fits ? STYLE_PLAIN : STYLE_BAD, cells,
              fits ? point->note : misfit_note(f, arena));
}

void report_whatif(const Scenario *scenario, const WhatifResult *result, FILE *stream) {
    Arena arena = {0};
    Paper paper = paper_of(stream);
    TableColumn columns[TABLE_MAX_COLUMNS];
    int num_axes = result->num_axes;
    _Static_assert(WHATIF_MAX_AXES + NUM_COLUMNS <= TABLE_MAX_COLUMNS, "a column per axis");
    for (int i = 0; i < num_axes; i++) columns[i] = (TableColumn){result->axes[i].path, true, 0};
    for (int i = 0; i < NUM_COLUMNS; i++) columns[num_axes + i] = COLUMNS[i];
    paper_wrap(&paper, 0, STYLE_BOLD,
               arena_printf(&arena, "%s; %s%s", report_question(scenario, &arena),
                            result->replan ? "changed as below, planned anew at each point"
                                           : "changed as below",
                            result->played ? ", played in the simulator" : ""));
    fputc('\n', stream);
    Table table = table_new(&arena, columns, num_axes + NUM_COLUMNS);
    for (int64_t p = 0; p < result->num_points; p++) add_point(&table, result, p, &arena);
    table_print(&table, &paper);
    arena_free(&arena);
}
