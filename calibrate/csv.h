// calibrate/csv.h - the records of a CSV text and their cells.
//
// Source: RFC 4180: cells between quotes hold commas, line ends and, twice each, quotes.
// Beyond it: blanks around a cell, before and behind its quotes, do not count; a lone LF ends a
// line.
#pragma once

#include <stdbool.h>

// What is wrong with a record; the texts finish a sentence.
typedef enum { CSV_GOOD, CSV_UNCLOSED, CSV_BEHIND_QUOTE, CSV_QUOTE_INSIDE } CsvFault;

extern const char *const CSV_FAULT_TEXTS[];

// Ends the record that begins at text with a NUL in place of its line end. Returns where the next
// begins, or NULL after the last; *num_lines says how many lines it takes. A quote that is never
// closed takes the rest of the text.
char *csv_record(char *text, int *num_lines);

// Cuts a record, which it overwrites, into cells, without their quotes. Returns how many there
// are, of which at most max are kept.
int csv_cells(char *record, const char **cells, int max, CsvFault *fault);
