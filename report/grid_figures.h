// report/grid_figures.h - the figures of a what-if grid's points: a column each, in reports and in
// the terminal's table.
#pragma once

#include "report/document.h"
#include "report/table.h"

// As they stand in a row, before "plan" and "note".
typedef enum {
    GRID_STEP_TIME,
    GRID_STEP_TIME_LOW,
    GRID_STEP_TIME_HIGH,
    GRID_TOKENS,
    GRID_MFU,
    GRID_MEMORY,
    GRID_COST,
    NUM_GRID_FIGURES
} GridFigure;

// [NUM_GRID_FIGURES]
extern const DocumentColumn GRID_FIGURES[];

// The terminal has no interval. Fills its columns of figures, and returns how many there are; then
// comes the plan, and the note stands below the row.
int grid_text_columns(TableColumn *out);

// The cells of these columns, in their order; a figure that is not finite is none.
void grid_text_cells(const double figures[NUM_GRID_FIGURES], const char **out, Arena *arena);
