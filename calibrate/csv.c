#include "calibrate/csv.h"

#include <string.h>

const char *const CSV_FAULT_TEXTS[] = {
    [CSV_GOOD] = "",
    [CSV_UNCLOSED] = "a quote that opens a cell is not closed",
    [CSV_BEHIND_QUOTE] = "text stands behind a closing quote; expected a comma, or two quotes for "
                         "one inside a cell",
    [CSV_QUOTE_INSIDE] = "a quote stands inside a cell without quotes; expected the whole cell in "
                         "quotes, and two for each inside",
};

// The quote that closes a cell, or the end of the text.
static char *closing_quote(char *cell) {
    char *at = cell + 1;
    while (*at && (*at != '"' || at[1] == '"')) at += *at == '"' ? 2 : 1;
    return at;
}

char *csv_record(char *text, int *num_lines) {
    char *at = text;
    *num_lines = 1;
    for (;;) {
        at += strspn(at, " \t");
        char *end = *at == '"' ? closing_quote(at) : at;
        for (; at < end; at++) *num_lines += *at == '\n';
        at += strcspn(at, ",\n");
        if (*at != ',') break;
        at++;
    }
    bool last = *at == '\0';
    *at = '\0';
    if (at > text && at[-1] == '\r') at[-1] = '\0';
    return last ? NULL : at + 1;
}

// The text between the quotes of a cell, in its place; *next is the next cell, NULL behind the
// last.
static char *unquote(char *cell, char **next, CsvFault *fault) {
    char *to = cell, *close = closing_quote(cell);
    if (!*close) *fault = CSV_UNCLOSED;
    for (char *from = cell + 1; from < close; from++) {
        *to++ = *from;
        if (*from == '"') from++; // the first of two
    }
    char *behind = close + (*close == '"');
    behind += strspn(behind, " \t\r");
    if (*behind && *behind != ',') *fault = CSV_BEHIND_QUOTE;
    behind += strcspn(behind, ",");
    *next = *behind ? behind + 1 : NULL;
    *to = '\0';
    return cell;
}

// A cell without quotes, without the blanks around it.
static char *trim(char *cell, char **next, CsvFault *fault) {
    char *comma = strchr(cell, ',');
    if (comma) *comma = '\0';
    *next = comma ? comma + 1 : NULL;
    size_t length = strlen(cell);
    while (length > 0 && strchr(" \t\r", cell[length - 1])) cell[--length] = '\0';
    if (strchr(cell, '"')) *fault = CSV_QUOTE_INSIDE;
    return cell;
}

int csv_cells(char *record, const char **cells, int max, CsvFault *fault) {
    int num_cells = 0;
    *fault = CSV_GOOD;
    for (char *at = record; at; num_cells++) {
        at += strspn(at, " \t");
        char *cell = *at == '"' ? unquote(at, &at, fault) : trim(at, &at, fault);
        if (num_cells < max) cells[num_cells] = cell;
    }
    return num_cells;
}
