// A report as Markdown: GitHub's tables, with the quantities as people read them.
#include "report/document.h"

#include <string.h>

static const char *text_of(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

// Nothing in a text is markup: what could be gets a backslash, or is an entity; a line break is a
// space.
static void print_text(const char *text, FILE *stream) {
    for (const char *c = text; *c; c++) {
        if (*c == '<')
            fputs("&lt;", stream);
        else if (*c == '>')
            fputs("&gt;", stream);
        else if (*c == '&')
            fputs("&amp;", stream);
        else if ((unsigned char)*c < ' ')
            fputc(' ', stream);
        else
            fprintf(stream, strchr("\\`*_|[]#~$", *c) ? "\\%c" : "%c", *c);
    }
}

static void print_table(const cJSON *section, FILE *stream) {
    const cJSON *columns = cJSON_GetObjectItemCaseSensitive(section, "columns"), *column, *row;
    Arena scratch = {0};
    fputc('|', stream);
    cJSON_ArrayForEach(column, columns) {
        fputc(' ', stream);
        print_text(text_of(column, "title"), stream);
        fputs(" |", stream);
    }
    fputs("\n|", stream);
    cJSON_ArrayForEach(column, columns) fputs(" --- |", stream);
    fputc('\n', stream);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(section, "rows")) {
        const cJSON *cell = row->child;
        fputc('|', stream);
        cJSON_ArrayForEach(column, columns) {
            fputc(' ', stream);
            print_text(document_cell_text(text_of(column, "key"), cell, &scratch), stream);
            fputs(" |", stream);
            cell = cell ? cell->next : NULL;
        }
        fputc('\n', stream);
        arena_reset(&scratch);
    }
    fputc('\n', stream);
    arena_free(&scratch);
}

static void print_paragraph(const char *text, FILE *stream) {
    if (!*text) return;
    print_text(text, stream);
    fputs("\n\n", stream);
}

void document_write_md(const cJSON *root, FILE *stream) {
    const cJSON *sentence, *part, *section;
    fputs("# ", stream);
    print_paragraph(text_of(root, "title"), stream);
    cJSON_ArrayForEach(sentence, cJSON_GetObjectItemCaseSensitive(root, "summary"))
        print_paragraph(cJSON_GetStringValue(sentence), stream);
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(root, "parts")) {
        fputs("## ", stream);
        print_paragraph(text_of(part, "title"), stream);
        print_paragraph(text_of(part, "text"), stream);
        cJSON_ArrayForEach(section, cJSON_GetObjectItemCaseSensitive(part, "sections")) {
            fputs("### ", stream);
            print_paragraph(text_of(section, "title"), stream);
            print_paragraph(text_of(section, "text"), stream);
            print_table(section, stream);
        }
    }
    fputs("Made by ", stream);
    print_text(text_of(root, "report"), stream);
    fputs(".\n", stream);
}
