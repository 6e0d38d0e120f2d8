#include "report/document.h"

#include "base/shown_text.h"

#include "report/page.h"

#include <math.h>
#include <string.h>

const char *const FORMAT_NAMES[NUM_FORMATS + 1] = {"html", "md", "csv", "json", NULL};

Document document_new(const char *title) {
    Document document = {.root = cJSON_CreateObject()};
    json_add_number(document.root, "schema", 1);
    cJSON_AddStringToObject(document.root, "report", "meshwright " MESHWRIGHT_VERSION);
    cJSON_AddStringToObject(document.root, "title", title);
    cJSON_AddArrayToObject(document.root, "summary");
    cJSON_AddArrayToObject(document.root, "parts");
    return document;
}

void document_say(Document *document, const char *paragraph) {
    cJSON *summary = cJSON_GetObjectItemCaseSensitive(document->root, "summary");
    cJSON_AddItemToArray(summary, cJSON_CreateString(paragraph));
}

void document_part(Document *document, const char *title, const char *text) {
    document->part = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(document->root, "parts"), document->part);
    cJSON_AddStringToObject(document->part, "title", title);
    if (text) cJSON_AddStringToObject(document->part, "text", text);
    cJSON_AddArrayToObject(document->part, "sections");
}

// Sections of this name: "ID" itself and "ID-2", "ID-3".
static int num_sections_named(const Document *document, const char *id) {
    const size_t length = strlen(id);
    int num = 0;
    const cJSON *part, *section;
    cJSON_ArrayForEach(part, cJSON_GetObjectItemCaseSensitive(document->root, "parts"))
        cJSON_ArrayForEach(section, cJSON_GetObjectItemCaseSensitive(part, "sections")) {
        const char *other = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(section, "id"));
        if (strncmp(other, id, length) != 0) continue;
        const char *tail = other + length;
        if (!*tail || (*tail == '-' && strspn(tail + 1, "0123456789") == strlen(tail + 1))) num++;
    }
    return num;
}

static void text_add(cJSON *section, const SectionSpec *spec) {
    cJSON *text = cJSON_AddObjectToObject(section, DOCUMENT_TEXT_KEY);
    cJSON_AddStringToObject(text, "columns", spec->in_text);
    cJSON_AddObjectToObject(text, "styles"); // of rows that have one, by their number
    cJSON_AddArrayToObject(text, "notes");
    if (spec->goes_on) cJSON_AddTrueToObject(text, "goes_on");
}

cJSON *document_section(Document *document, const SectionSpec *spec) {
    char id[80];
    const int num = num_sections_named(document, spec->id);
    snprintf(id, sizeof id, num > 0 ? "%s-%d" : "%s", spec->id, num + 1);
    cJSON *section = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(document->part, "sections"), section);
    cJSON_AddStringToObject(section, "id", id);
    cJSON_AddStringToObject(section, "title", spec->title);
    if (spec->text) cJSON_AddStringToObject(section, "text", spec->text);
    if (spec->chart) cJSON_AddStringToObject(section, "chart", spec->chart);
    cJSON *columns = cJSON_AddArrayToObject(section, "columns");
    for (int i = 0; i < spec->num_columns; i++) {
        cJSON *column = cJSON_CreateObject();
        cJSON_AddItemToArray(columns, column);
        cJSON_AddStringToObject(column, "key", spec->columns[i].key);
        cJSON_AddStringToObject(column, "title", spec->columns[i].title);
    }
    cJSON_AddArrayToObject(section, "rows");
    if (spec->in_text) text_add(section, spec);
    return section;
}

cJSON *section_row(cJSON *section) {
    cJSON *row = cJSON_CreateArray();
    cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(section, "rows"), row);
    return row;
}

void row_text(cJSON *row, const char *text) {
    cJSON_AddItemToArray(row, text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

void row_number(cJSON *row, double value) {
    cJSON_AddItemToArray(row, isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

void row_value(cJSON *row, const cJSON *item) {
    if (cJSON_IsNumber(item)) {
        row_number(row, item->valuedouble);
    } else if (!item || cJSON_IsNull(item) || cJSON_IsString(item)) {
        row_text(row, cJSON_GetStringValue(item));
    } else {
        char *text = cJSON_PrintUnformatted(item);
        row_text(row, text);
        cJSON_free(text);
    }
}

cJSON *section_data(cJSON *section) {
    cJSON *data = cJSON_GetObjectItemCaseSensitive(section, "data");
    return data ? data : cJSON_AddObjectToObject(section, "data");
}

void section_add_text(cJSON *section, const char *sentence) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(section, "text"));
    if (!text) {
        cJSON_AddStringToObject(section, "text", sentence);
        return;
    }
    Arena scratch = {0};
    const char *longer = arena_printf(&scratch, "%s %s", text, sentence);
    cJSON_ReplaceItemInObjectCaseSensitive(section, "text", cJSON_CreateString(longer));
    arena_free(&scratch);
}

void section_say(cJSON *section, const char *sentence) {
    cJSON *text = cJSON_GetObjectItemCaseSensitive(section, DOCUMENT_TEXT_KEY);
    cJSON *notes = cJSON_GetObjectItemCaseSensitive(text, "notes");
    if (text) cJSON_AddItemToArray(notes, cJSON_CreateString(sentence));
    section_add_text(section, sentence);
}

void section_style(cJSON *section, Style style) {
    cJSON *text = cJSON_GetObjectItemCaseSensitive(section, DOCUMENT_TEXT_KEY);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(section, "rows");
    char last[16];
    snprintf(last, sizeof last, "%d", cJSON_GetArraySize(rows) - 1);
    cJSON_AddNumberToObject(cJSON_GetObjectItemCaseSensitive(text, "styles"), last, style);
}

Status document_check_format(DocumentFormat format) {
    if (format != FORMAT_HTML || page_of_build().size > 0) return status_ok();
    return status_error(STATUS_MACHINE,
                        "meshwright: this build has no HTML reports: node, npm or what they "
                        "install was missing when it was built; md, csv and json work");
}

// What is shown of users' texts, in place.
static void texts_show(cJSON *item, Arena *arena) {
    for (; item; item = item->next) {
        const char *text = cJSON_GetStringValue(item);
        const char *shown = text ? shown_text(text, arena) : NULL;
        if (shown != text) cJSON_SetValuestring(item, shown);
        texts_show(item->child, arena);
        arena_reset(arena);
    }
}

Status document_write(const Document *document, DocumentFormat format, FILE *stream) {
    TRY(document_check_format(format));
    document_drop_text(document->root);
    Arena scratch = {0};
    if (format != FORMAT_JSON) texts_show(document->root, &scratch);
    arena_free(&scratch);
    switch (format) {
    case FORMAT_HTML:
        document_write_html(document->root, stream);
        break;
    case FORMAT_MD:
        document_write_md(document->root, stream);
        break;
    case FORMAT_CSV:
        document_write_csv(document->root, stream);
        break;
    case FORMAT_JSON:
    case NUM_FORMATS:
        return json_write(document->root, stream);
    }
    return status_ok();
}
