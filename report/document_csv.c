// A report as one table of comma-separated values (RFC 4180, with lines ended as Unix does), a line
// for each cell: section, row, column, value. Numbers are in the unit that the column's name ends
// with, so that a spreadsheet or a data frame can pivot them back to tables.
#include "report/document.h"

#include <stdbool.h>
#include <string.h>

// A field that a spreadsheet would run as a formula begins with an apostrophe; numbers are ours.
static void print_text(const char *text, FILE *stream) {
    const bool formula = *text && strchr("=+-@\t\r", *text);
    if (!formula && !strpbrk(text, ",\"\n\r")) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    if (formula) fputc('\'', stream);
    for (const char *c = text; *c; c++) {
        if (*c == '"') fputc('"', stream);
        fputc(*c, stream);
    }
    fputc('"', stream);
}

static void print_row(const cJSON *section, const cJSON *row, int number, FILE *stream) {
    const cJSON *column, *cell = row->child;
    cJSON_ArrayForEach(column, cJSON_GetObjectItemCaseSensitive(section, "columns")) {
        if (!cell) return;
        fprintf(stream, "%s,%d,%s,",
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(section, "id")), number,
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(column, "key")));
        if (cJSON_IsNumber(cell))
            fprintf(stream, "%.15g", cell->valuedouble);
        else if (cJSON_IsString(cell))
            print_text(cell->valuestring, stream);
        fputc('\n', stream);
        cell = cell->next;
    }
}

void document_write_csv(const cJSON *root, FILE *stream) {
    const cJSON *part, *section, *row;
    fputs("section,row,column,value\n", stream);
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(root, "parts"))
        cJSON_ArrayForEach(section, cJSON_GetObjectItemCaseSensitive(part, "sections")) {
        int number = 0;
        cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(section, "rows"))
            print_row(section, row, ++number, stream);
    }
}
