// report/document.h - what a report says, once for all its formats: parts, in them sections.
//
// A section is a table, and where it has a chart the chart is drawn of that table (and of `data`,
// where a table is too coarse). So every format shows the same figures, and every chart can be read
// without seeing it. What an answer says on a terminal is made of the same document
// (document_print).
// Form: {"schema": 1, "report": "meshwright VERSION", "title", "summary": [sentence], "parts":
//       [{"title", "text", "sections": [{"id", "title", "text", "chart", "columns": [{"key",
//       "title"}], "rows": [[cell]], "data"}]}]}. A cell is a number in the unit that the column's
//       key ends with, a text, or null. text, chart and data are absent where there is none.
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"
#include "report/table.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
    const char *key;   // with its unit, as in all files: "step_time_s"
    const char *title; // for people
} DocumentColumn;

typedef struct {
    const char *id; // unique in a document: a second one of the name becomes "ID-2"
    const char *title;
    const char *text;  // a sentence or two; NULL
    const char *chart; // a kind that report/web/src/charts knows; NULL: the table alone
    const DocumentColumn *columns;
    int num_columns;
    // In the terminal's text of each column a letter, and behind it the column's priority where it
    // has one (report/table.h): l left, r right, n a sentence below the row, - left out;
    // L, R, x as l, r and -, and left out of the report. "*": a line for each row, of its two
    // texts. NULL: the text does without the section.
    const char *in_text;
    bool goes_on; // in the text its rows go on in the table of the section before
} SectionSpec;

#define SECTION_COLUMNS(list) .columns = (list), .num_columns = (int)(sizeof(list) / sizeof *(list))

typedef struct {
    cJSON *root;
    cJSON *part; // the last one; sections go there
} Document;

// The caller frees document->root.
Document document_new(const char *title);

// Adds a paragraph to what is said first.
void document_say(Document *document, const char *paragraph);

// text  NULL for none
void document_part(Document *document, const char *title, const char *text);

// Adds an empty section to the last part; it belongs to the document.
cJSON *document_section(Document *document, const SectionSpec *spec);

// Adds a row to a section, and cells to a row, in the order of the columns.
cJSON *section_row(cJSON *section);
void row_text(cJSON *row, const char *text);   // NULL: null
void row_number(cJSON *row, double value);     // not finite: null
void row_value(cJSON *row, const cJSON *item); // a number or text as it is; anything else as JSON

// What a chart needs beside the table: an object.
cJSON *section_data(cJSON *section);

// Adds a sentence to a section's text.
void section_add_text(cJSON *section, const char *sentence);

// The same; the text says it, too, below the table.
void section_say(cJSON *section, const char *sentence);

// How the text shows the section's last row.
void section_style(cJSON *section, Style style);

// A cell as people read it, by the unit of its column ("12.3 s", "68.3 GB"). A difference has its
// sign; "_figure" is a number without a unit.
const char *document_cell_text(const char *key, const cJSON *cell, Arena *arena);

// The same for the text, where none is "0 ns", a long time stays one in seconds, and the unit of
// prices stands in the title.
const char *document_text_cell(const char *key, const cJSON *cell, Arena *arena);

typedef enum {
    FORMAT_HTML,
    FORMAT_MD,
    FORMAT_CSV,
    FORMAT_JSON,
    NUM_FORMATS,
} DocumentFormat;

extern const char *const FORMAT_NAMES[NUM_FORMATS + 1]; // ends with NULL

// Fails (STATUS_MACHINE) only for FORMAT_HTML in a build without its page.
Status document_write(const Document *document, DocumentFormat format, FILE *stream);

// The terminal's text: each section with an empty line before it, then what is said first on a
// page, which on a terminal stands last.
void document_print(const Document *document, const Paper *paper);

// Of that the table of the last part's first section, and nothing around it.
void document_print_table(const Document *document, const Paper *paper);

// What only the text needs stands under this key of a section, and is dropped from a report.
#define DOCUMENT_TEXT_KEY "in_text"
void document_drop_text(cJSON *root);

// Whether this build has the page: else STATUS_MACHINE says what is missing.
Status document_check_format(DocumentFormat format);

// The formats, each in a file of its own.
void document_write_md(const cJSON *root, FILE *stream);
void document_write_csv(const cJSON *root, FILE *stream);
void document_write_html(const cJSON *root, FILE *stream);
