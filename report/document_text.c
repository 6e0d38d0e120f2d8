// The terminal's text of a document: its sections as tables (report/table.h).
#include "report/document.h"

#include <stdbool.h>
#include <string.h>

static const cJSON *text_of(const cJSON *section) {
    return cJSON_GetObjectItemCaseSensitive(section, DOCUMENT_TEXT_KEY);
}

// What the text makes of a section's column (SectionSpec.in_text).
typedef struct {
    char side;
    int priority;
} ColumnText;

static ColumnText column_text(const cJSON *section, int column) {
    const char *at =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(text_of(section), "columns"));
    for (int c = 0; *at; at++) {
        if (*at >= '0' && *at <= '9') continue;
        const bool has_priority = at[1] >= '0' && at[1] <= '9';
        if (c++ == column) return (ColumnText){*at, has_priority ? at[1] - '0' : 0};
    }
    return (ColumnText){'-', 0};
}

static bool is_list(const cJSON *section) {
    const cJSON *columns = cJSON_GetObjectItemCaseSensitive(text_of(section), "columns");
    return columns && columns->valuestring[0] == '*';
}

static bool in_table(ColumnText shown) {
    return strchr("lrLR", shown.side) != NULL;
}

// --- The text

// The columns that the text has; returns their number.
static int columns_of(const cJSON *section, TableColumn *out) {
    const cJSON *column;
    int c = 0, num = 0;
    cJSON_ArrayForEach(column, cJSON_GetObjectItemCaseSensitive(section, "columns")) {
        const ColumnText shown = column_text(section, c++);
        const char *title = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(column, "title"));
        if (in_table(shown))
            out[num++] =
                (TableColumn){title, shown.side == 'r' || shown.side == 'R', shown.priority};
    }
    return num;
}

static Style row_style(const cJSON *section, int number) {
    const cJSON *styles = cJSON_GetObjectItemCaseSensitive(text_of(section), "styles");
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    const cJSON *style = cJSON_GetObjectItemCaseSensitive(styles, name);
    return style ? (Style)style->valueint : STYLE_PLAIN;
}

static void row_add(Table *table, const cJSON *section, const cJSON *row, int number) {
    const cJSON *column = cJSON_GetObjectItemCaseSensitive(section, "columns")->child, *cell;
    const char *cells[TABLE_MAX_COLUMNS] = {NULL}, *note = NULL;
    int c = 0, num = 0;
    cJSON_ArrayForEach(cell, row) {
        const ColumnText shown = column_text(section, c++);
        const char *key = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(column, "key"));
        const char *text = document_text_cell(key, cell, table->arena);
        if (in_table(shown)) cells[num++] = text;
        if (shown.side == 'n' && text[0]) note = text;
        column = column->next;
    }
    table_add(table, row_style(section, number), cells, note);
}

static void rows_add(Table *table, const cJSON *section) {
    const cJSON *row;
    int number = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(section, "rows"))
        row_add(table, section, row, number++);
}

static void notes_print(const cJSON *section, bool below_table, const Paper *paper) {
    const cJSON *notes = cJSON_GetObjectItemCaseSensitive(text_of(section), "notes"), *note;
    if (below_table && notes->child) fputc('\n', paper->stream);
    cJSON_ArrayForEach(note, notes) paper_wrap(paper, 0, STYLE_PLAIN, note->valuestring);
}

// "what            text", a line a row.
static void list_print(const cJSON *section, const Paper *paper) {
    const cJSON *row;
    Arena arena = {0};
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(section, "rows")) {
        const char *what = cJSON_GetStringValue(row->child);
        const char *text = cJSON_GetStringValue(row->child->next);
        paper_wrap(paper, 0, STYLE_PLAIN, arena_printf(&arena, "%-16s%s", what, text));
    }
    arena_free(&arena);
}

// Returns the first section behind those whose rows are in this table.
static const cJSON *table_of(const cJSON *section, const Paper *paper) {
    TableColumn columns[TABLE_MAX_COLUMNS];
    Arena arena = {0};
    Table table = table_new(&arena, columns, columns_of(section, columns));
    const cJSON *first = section;
    do {
        rows_add(&table, section);
        section = section->next;
    } while (section && cJSON_GetObjectItemCaseSensitive(text_of(section), "goes_on"));
    if (table.num_columns > 0) table_print(&table, paper);
    notes_print(first, table.num_columns > 0, paper);
    arena_free(&arena);
    return section;
}

void document_print_table(const Document *document, const Paper *paper) {
    table_of(cJSON_GetObjectItemCaseSensitive(document->part, "sections")->child, paper);
}

void document_print(const Document *document, const Paper *paper) {
    const cJSON *part, *sentence;
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(document->root, "parts")) {
        const cJSON *section = cJSON_GetObjectItemCaseSensitive(part, "sections")->child;
        while (section) {
            if (text_of(section)) fputc('\n', paper->stream);
            if (is_list(section)) list_print(section, paper);
            section =
                text_of(section) && !is_list(section) ? table_of(section, paper) : section->next;
        }
    }
    const cJSON *summary = cJSON_GetObjectItemCaseSensitive(document->root, "summary");
    if (summary->child) fputc('\n', paper->stream);
    cJSON_ArrayForEach(sentence, summary)
        paper_wrap(paper, 0, STYLE_GOOD, cJSON_GetStringValue(sentence));
}

// --- Without it

static void column_drop(cJSON *section, int column) {
    cJSON *row;
    cJSON_DeleteItemFromArray(cJSON_GetObjectItemCaseSensitive(section, "columns"), column);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(section, "rows"))
        cJSON_DeleteItemFromArray(row, column);
}

static void section_drop(cJSON *section) {
    if (!text_of(section)) return;
    const int num = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(section, "columns"));
    for (int c = num - 1; c >= 0; c--)
        if (strchr("LRx", column_text(section, c).side)) column_drop(section, c);
    cJSON_DeleteItemFromObjectCaseSensitive(section, DOCUMENT_TEXT_KEY);
}

void document_drop_text(cJSON *root) {
    cJSON *part, *section;
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(root, "parts"))
        cJSON_ArrayForEach(section, cJSON_GetObjectItemCaseSensitive(part, "sections"))
            section_drop(section);
}
