#include "report/table.h"

#include "base/shown_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    MIN_WIDTH = 40,
    MAX_WIDTH = 10000,
    MIN_TEXT = 12,
    COLUMN_GAP = 2,
    LABEL_WIDTH = 16,
    TEXT_WIDTH = 12
};

Paper paper_of(FILE *stream) {
    Paper paper = {.stream = stream, .width = TABLE_PLAIN_WIDTH};
    const char *columns = getenv("COLUMNS"); // shells set it, and export it only where asked to
    const int stated = columns ? atoi(columns) : 0;
    const bool terminal = isatty(fileno(stream));
    struct winsize size;
    if (stated > 0 && stated <= MAX_WIDTH)
        paper.width = stated;
    else if (terminal && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        paper.width = size.ws_col;
    if (paper.width < MIN_WIDTH) paper.width = MIN_WIDTH;
    if (!terminal) return paper;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    paper.colour = !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
    return paper;
}

const char *paper_style(const Paper *paper, Style style) {
    static const char *const codes[] = {
        [STYLE_PLAIN] = "",        [STYLE_BOLD] = "\033[1m", [STYLE_DIM] = "\033[2m",
        [STYLE_GOOD] = "\033[32m", [STYLE_BAD] = "\033[31m",
    };
    return paper->colour ? codes[style] : "";
}

const char *paper_plain(const Paper *paper) {
    return paper->colour ? "\033[0m" : "";
}

void paper_heading(const Paper *paper, const char *text) {
    Arena scratch = {0};
    fprintf(paper->stream, "%s%s%s\n", paper_style(paper, STYLE_BOLD), shown_text(text, &scratch),
            paper_plain(paper));
    arena_free(&scratch);
}

static void text_wrap(const Paper *paper, int indent, Style style, const char *text) {
    int space = paper->width - indent;
    while (*text) {
        int length = (int)strlen(text);
        if (length > space) {
            length = space;
            // "4.1 %" stays together.
            while (length > 0 && (text[length] != ' ' || text[length + 1] == '%')) length--;
            if (length == 0) length = (int)strcspn(text, " "); // a word longer than the line
        }
        fprintf(paper->stream, "%*s%s%.*s%s\n", indent, "", paper_style(paper, style), length, text,
                paper_plain(paper));
        text += length;
        while (*text == ' ') text++;
    }
}

void paper_wrap(const Paper *paper, int indent, Style style, const char *text) {
    Arena scratch = {0};
    text_wrap(paper, indent, style, shown_text(text, &scratch));
    arena_free(&scratch);
}

void paper_bar(const Paper *paper, const char *label, const char *text, double frac, Style style) {
    int space = paper->width - 2 - LABEL_WIDTH - TEXT_WIDTH - 12;
    if (space > 40) space = 40;
    double clipped = frac < 0 ? 0 : frac > 1 ? 1 : frac;
    int length = space > 0 ? (int)(clipped * space + 0.5) : 0;
    int wider = (int)strlen(label) - LABEL_WIDTH; // a long label takes room of the text
    int text_width = wider > 0 ? TEXT_WIDTH - wider : TEXT_WIDTH;
    fprintf(paper->stream, "  %-*s %*s  %5.1f %%", LABEL_WIDTH, label,
            text_width > 0 ? text_width : 0, text, frac * 100);
    if (length > 0) {
        fprintf(paper->stream, "  %s", paper_style(paper, style));
        for (int i = 0; i < length; i++) fputc('#', paper->stream);
        fprintf(paper->stream, "%s", paper_plain(paper));
    }
    fputc('\n', paper->stream);
}

Table table_new(Arena *arena, const TableColumn *columns, int num_columns) {
    return (Table){.columns = columns, .num_columns = num_columns, .arena = arena};
}

static void table_grow(Table *table) {
    if (table->num_rows < table->capacity) return;
    int capacity = table->capacity ? 2 * table->capacity : 8;
    const char ***rows = ARENA_ARRAY(table->arena, capacity, const char **);
    Style *styles = ARENA_ARRAY(table->arena, capacity, Style);
    for (int i = 0; i < table->num_rows; i++) {
        rows[i] = table->rows[i];
        styles[i] = table->styles[i];
    }
    table->rows = rows;
    table->styles = styles;
    table->capacity = capacity;
}

static const char *shown_copy(Arena *arena, const char *text) {
    return arena_strdup(arena, shown_text(text, arena));
}

void table_add(Table *table, Style style, const char *const *cells, const char *note) {
    table_grow(table);
    const char **row = ARENA_ARRAY(table->arena, table->num_columns + 1, const char *);
    for (int c = 0; c < table->num_columns; c++)
        row[c] = shown_copy(table->arena, cells[c] ? cells[c] : "");
    row[table->num_columns] = note ? shown_copy(table->arena, note) : NULL;
    table->rows[table->num_rows] = row;
    table->styles[table->num_rows] = style;
    table->num_rows++;
}

static int column_width(const Table *table, int column) {
    size_t width = strlen(table->columns[column].title);
    for (int r = 0; r < table->num_rows; r++) {
        size_t length = strlen(table->rows[r][column]);
        if (length > width) width = length;
    }
    return (int)width;
}

// Takes room from the widest column of texts: its cells go on in further lines.
static void text_shrink(const Table *table, int excess, int *widths) {
    int widest = -1;
    for (int c = 0; c < table->num_columns; c++)
        if (!table->columns[c].right && (widest < 0 || widths[c] > widths[widest])) widest = c;
    if (widest < 0 || widths[widest] <= MIN_TEXT) return;
    widths[widest] -= excess;
    if (widths[widest] < MIN_TEXT) widths[widest] = MIN_TEXT;
}

// Chooses which columns are shown: widths[c] is 0 for those left out.
//   returns  whether there are any left out
static bool table_fit(const Table *table, int width, int *widths) {
    int total = -COLUMN_GAP;
    for (int c = 0; c < table->num_columns; c++) {
        widths[c] = column_width(table, c);
        if (widths[c] > 0) total += widths[c] + COLUMN_GAP;
    }
    bool hides = false;
    while (total > width) {
        int victim = -1;
        for (int c = 0; c < table->num_columns; c++) {
            int priority = table->columns[c].priority;
            if (widths[c] == 0 || priority == 0) continue;
            if (victim < 0 || priority >= table->columns[victim].priority) victim = c;
        }
        if (victim < 0) break;
        hides = true;
        total -= widths[victim] + COLUMN_GAP;
        widths[victim] = 0;
    }
    if (total > width) text_shrink(table, total - width, widths);
    return hides;
}

// How much of a cell stands in a line of this width: all of it, or up to a space.
static int cell_part(const char *cell, int width) {
    int length = (int)strlen(cell);
    if (length <= width) return length;
    int part = width;
    while (part > 0 && cell[part] != ' ') part--;
    return part > 0 ? part : width;
}

// One line of a row; cells[c] moves over what was printed of it. Returns whether some are left.
static bool line_print(const Table *table, const Paper *paper, const int *widths, Style style,
                       const char **cells) {
    bool left = false;
    fprintf(paper->stream, "%s", paper_style(paper, style));
    int pending = 0; // spaces owed: none are printed at the end of a line
    for (int c = 0; c < table->num_columns; c++) {
        if (widths[c] == 0) continue;
        int length = cell_part(cells[c], widths[c]), padding = widths[c] - length;
        int before = table->columns[c].right ? padding : 0;
        if (length > 0) fprintf(paper->stream, "%*s%.*s", pending + before, "", length, cells[c]);
        pending = (length > 0 ? padding - before : pending + widths[c]) + COLUMN_GAP;
        cells[c] += length;
        while (*cells[c] == ' ') cells[c]++;
        left |= *cells[c] != '\0';
    }
    fprintf(paper->stream, "%s\n", paper_plain(paper));
    return left;
}

static void row_print(const Table *table, const Paper *paper, const int *widths, int row) {
    const char *cells[TABLE_MAX_COLUMNS];
    for (int c = 0; c < table->num_columns; c++)
        cells[c] = row < 0 ? table->columns[c].title : table->rows[row][c];
    const Style style = row < 0 ? STYLE_BOLD : table->styles[row];
    while (line_print(table, paper, widths, style, cells)) {
    }
}

// "tokens/s 110 k; MFU 44.0 %": what of a row has no column on this paper.
static void hidden_print(const Table *table, const Paper *paper, const int *widths, int row) {
    const char *text = "";
    for (int c = 0; c < table->num_columns; c++) {
        const char *cell = table->rows[row][c];
        if (widths[c] > 0 || !cell[0]) continue;
        text = arena_printf(table->arena, "%s%s%s %s", text, text[0] ? "; " : "",
                            table->columns[c].title, cell);
    }
    if (text[0]) paper_wrap(paper, widths[0] + COLUMN_GAP, STYLE_PLAIN, text);
}

void table_print(const Table *table, const Paper *paper) {
    int widths[TABLE_MAX_COLUMNS];
    const bool hides = table_fit(table, paper->width, widths);
    row_print(table, paper, widths, -1);
    for (int r = 0; r < table->num_rows; r++) {
        row_print(table, paper, widths, r);
        if (hides) hidden_print(table, paper, widths, r);
        const char *note = table->rows[r][table->num_columns];
        if (note) paper_wrap(paper, widths[0] + COLUMN_GAP, STYLE_DIM, note);
    }
}
