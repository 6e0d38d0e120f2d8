#include "report/grid_figures.h"

#include <math.h>

const DocumentColumn GRID_FIGURES[NUM_GRID_FIGURES] = {
    [GRID_STEP_TIME] = {"step_time_s", "step time"},
    [GRID_STEP_TIME_LOW] = {"step_time_low_s", "80 % interval from"},
    [GRID_STEP_TIME_HIGH] = {"step_time_high_s", "to"},
    [GRID_TOKENS] = {"tokens_per_s", "tokens/s"},
    [GRID_MFU] = {"mfu_frac", "MFU"},
    [GRID_MEMORY] = {"memory_device_bytes", "memory"},
    [GRID_COST] = {"usd_per_1e9_tokens", "USD per 1e9 tokens"},
};

// A table's priority (report/table.h) of each figure in the text; -1: not there.
static const int PRIORITIES[NUM_GRID_FIGURES] = {
    [GRID_STEP_TIME_LOW] = -1, [GRID_STEP_TIME_HIGH] = -1, [GRID_MFU] = 1, [GRID_MEMORY] = 2,
    [GRID_COST] = 3,
};

static const char COST_TEXT[] = "USD/1e9"; // a column of a terminal is narrow

int grid_text_columns(TableColumn *out) {
    int num = 0;
    for (int f = 0; f < NUM_GRID_FIGURES; f++) {
        const char *title = f == GRID_COST ? COST_TEXT : GRID_FIGURES[f].title;
        if (PRIORITIES[f] >= 0) out[num++] = (TableColumn){title, true, PRIORITIES[f]};
    }
    return num;
}

void grid_text_cells(const double figures[NUM_GRID_FIGURES], const char **out, Arena *arena) {
    int num = 0;
    for (int f = 0; f < NUM_GRID_FIGURES; f++) {
        const cJSON cell = {.type = cJSON_Number, .valuedouble = figures[f]};
        if (PRIORITIES[f] < 0) continue;
        out[num++] =
            isfinite(figures[f]) ? document_text_cell(GRID_FIGURES[f].key, &cell, arena) : NULL;
    }
}
