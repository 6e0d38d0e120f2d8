// A report as one HTML file: the page of report/web with the document in it.
#include "report/document.h"

#include "report/page.h"

#include <string.h>

static void print_title(const char *text, FILE *stream) {
    for (const char *c = text; *c; c++) {
        if (*c == '<')
            fputs("&lt;", stream);
        else if (*c == '>')
            fputs("&gt;", stream);
        else if (*c == '&')
            fputs("&amp;", stream);
        else
            fputc(*c, stream);
    }
}

// JSON inside a script element: no text of it may end the element or begin another, so the
// characters that could are written as JSON's escapes. Outside of texts JSON has none of them.
static void print_data(const cJSON *root, FILE *stream) {
    char *text = cJSON_PrintUnformatted(root);
    if (!text) return;
    for (const char *c = text; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&')
            fprintf(stream, "\\u%04x", (unsigned)*c);
        else
            fputc(*c, stream);
    }
    cJSON_free(text);
}

static const char *find(const char *from, const char *end, const char *what) {
    return memmem(from, (size_t)(end - from), what, strlen(what));
}

void document_write_html(const cJSON *root, FILE *stream) {
    const Page page = page_of_build();
    const char *text = page.text, *end = page.text + page.size;
    for (;;) {
        const char *title = find(text, end, PAGE_TITLE), *data = find(text, end, PAGE_DATA);
        const char *next = !title || (data && data < title) ? data : title;
        if (!next) break;
        fwrite(text, 1, (size_t)(next - text), stream);
        if (next == data) {
            print_data(root, stream);
            text = next + strlen(PAGE_DATA);
        } else {
            print_title(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "title")),
                        stream);
            text = next + strlen(PAGE_TITLE);
        }
    }
    fwrite(text, 1, (size_t)(end - text), stream);
}
