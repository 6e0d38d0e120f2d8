// report/table.h - text for people: tables, bars and wrapped sentences on a stream of known width.
//
// Colour appears only on a terminal, never where NO_COLOR is set (no-color.org). The width is what
// COLUMNS in the environment says (POSIX.1-2017, Base Definitions 8.3), else the terminal's;
// without either it is fixed, so that the same input gives the same bytes.
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    FILE *stream;
    int width; // columns, >= 40
    bool colour;
} Paper;

// What stream is: its width, and a terminal's colour.
Paper paper_of(FILE *stream);

enum { TABLE_PLAIN_WIDTH = 130, TABLE_MAX_COLUMNS = 24 };

typedef enum { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GOOD, STYLE_BAD } Style;

typedef struct {
    const char *title;
    bool right;   // aligned, for numbers
    int priority; // columns with the largest number have no room first where space is short (what
                  // they hold stands below each row then); 0: never
} TableColumn;

typedef struct {
    const TableColumn *columns; // [num_columns]
    int num_columns;
    const char ***rows; // [num_rows][num_columns + 1]; the last cell is a sentence below the row
    Style *styles;      // [num_rows]
    int num_rows, capacity;
    Arena *arena;
} Table;

Table table_new(Arena *arena, const TableColumn *columns, int num_columns);

// Adds a row of num_columns cells (NULL is empty) and a sentence printed below it (NULL for none).
void table_add(Table *table, Style style, const char *const *cells, const char *note);

void table_print(const Table *table, const Paper *paper);

// In all of these what a terminal obeys is shown escaped (base/shown_text.h).
//
// A heading in bold.
void paper_heading(const Paper *paper, const char *text);

// A sentence, broken at spaces; following lines begin with indent spaces as the first one does.
void paper_wrap(const Paper *paper, int indent, Style style, const char *text);

// One bar: "label   12.3 s   66.0 %  ######"; text is set right of the label, frac in 0 to 1.
void paper_bar(const Paper *paper, const char *label, const char *text, double frac, Style style);

// Starts and ends a style; nothing without colour.
const char *paper_style(const Paper *paper, Style style);
const char *paper_plain(const Paper *paper);
