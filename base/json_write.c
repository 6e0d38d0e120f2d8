// Trees as text: numbers, escapes, files.
#include "base/file_hash.h"
#include "base/json.h"
#include "base/json_document.h"
#include "base/output_file.h"
#include "base/shown_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void json_add_number(cJSON *object, const char *key, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}

// cJSON escapes the control characters of ASCII but for DEL. Of the others a terminal obeys some,
// too; all of them stand in texts, where JSON's own escapes mean the same. Bytes that are no UTF-8
// stay: JSON has no escape for them.
static bool text_put(const char *text, size_t length, FILE *stream) {
    const char *end = text + length;
    char out[SHOWN_MAX];
    bool good = true;
    while (text < end && good) {
        const char *plain = text;
        while (text < end && (unsigned char)*text < 0x7f) text++;
        good = fwrite_unlocked(plain, 1, (size_t)(text - plain), stream) == (size_t)(text - plain);
        if (text == end || !good) break;
        const char *at = text;
        const size_t size = shown_next(&text, out);
        good = out[0] == '\\' && out[1] == 'x' ? fputc(*at, stream) != EOF
                                               : fwrite(out, 1, size, stream) == size;
    }
    return good;
}

static Status no_memory(void) {
    return status_error(STATUS_MACHINE, "out of memory while writing JSON");
}

// Fails where there is no memory; whether the stream takes it is not asked.
static Status tree_put(const cJSON *tree, FILE *stream) {
    char *text = cJSON_Print(tree);
    if (!text) return no_memory();
    if (text_put(text, strlen(text), stream)) fputc('\n', stream);
    cJSON_free(text);
    return status_ok();
}

static Status stream_end(FILE *stream) {
    if (!ferror(stream) && fflush(stream) == 0) return status_ok();
    return status_error(STATUS_MACHINE, "cannot write: %s", strerror(errno));
}

Status json_write(const cJSON *tree, FILE *stream) {
    TRY(tree_put(tree, stream));
    return stream_end(stream);
}

Status json_save(const cJSON *tree, const char *path) {
    if (strcmp(path, "-") == 0) return json_write(tree, stdout);
    OutputFile file;
    TRY(output_open(path, &file));
    return output_close(&file, tree_put(tree, file.stream));
}

// --- Piece by piece

// Where the text of a document without spaces goes.
typedef Status (*PieceTake)(void *context, const char *piece);

static Status tree_pieces(const cJSON *tree, PieceTake take, void *context) {
    char *text = cJSON_PrintUnformatted(tree);
    const Status status = text ? take(context, text) : no_memory();
    cJSON_free(text);
    return status;
}

// Between elements it is asked whether somebody wants to stop.
enum { ELEMENTS_A_LOOK = 1024 };

static Status list_pieces(const JsonDocument *document, PieceTake take, void *context) {
    Arena arena = {0};
    Status status = take(context, "[");
    for (int64_t i = 0; i < document->num_elements && status.code == STATUS_OK; i++) {
        if (i % ELEMENTS_A_LOOK == 0 && output_interrupted())
            status = status_error(STATUS_MACHINE, "interrupted: no answer");
        if (status.code != STATUS_OK) break;
        const char *text = document->element(document->context, i, &arena);
        if (i > 0) status = take(context, ",");
        if (status.code == STATUS_OK) status = text ? take(context, text) : no_memory();
        arena_reset(&arena);
    }
    arena_free(&arena);
    TRY(status);
    return take(context, "]");
}

static Status member_pieces(const JsonDocument *document, const cJSON *member, PieceTake take,
                            void *context) {
    return document->list && strcmp(member->string, document->list) == 0
               ? list_pieces(document, take, context)
               : tree_pieces(member, take, context);
}

static Status document_pieces(const JsonDocument *document, PieceTake take, void *context) {
    const cJSON *member;
    TRY(take(context, "{"));
    cJSON_ArrayForEach(member, document->tree) {
        const cJSON key = {.type = cJSON_String, .valuestring = member->string};
        if (member != document->tree->child) TRY(take(context, ","));
        TRY(tree_pieces(&key, take, context));
        TRY(take(context, ":"));
        TRY(member_pieces(document, member, take, context));
    }
    return take(context, "}");
}

static Status hash_take(void *context, const char *piece) {
    text_hash_add(piece, context);
    return status_ok();
}

Status json_document_hash(const JsonDocument *document, const cJSON *member, Arena *arena,
                          const char **out) {
    uint64_t hash = TEXT_HASH_START;
    TRY(member_pieces(document, member, hash_take, &hash));
    *out = text_hash_name(hash, arena);
    return status_ok();
}

// --- Indented, as cJSON_Print does it: members on lines of their own, elements on one

typedef struct {
    FILE *stream;
    bool is_object[CJSON_NESTING_LIMIT + 1]; // [depth] what the text is inside of
    int depth;
    bool line_begins; // the tabs of the next member are due
} Indenter;

static void tabs_put(const Indenter *in) {
    for (int i = 0; i < in->depth; i++) putc_unlocked('\t', in->stream);
}

static void two_put(char first, char second, FILE *stream) {
    putc_unlocked(first, stream);
    putc_unlocked(second, stream);
}

static Status opening_put(Indenter *in, char c) {
    if (in->depth == CJSON_NESTING_LIMIT)
        return status_error(STATUS_MACHINE, "JSON that is to be written is nested too deep");
    in->is_object[++in->depth] = in->line_begins = c == '{';
    putc_unlocked(c, in->stream);
    if (c == '{') putc_unlocked('\n', in->stream);
    return status_ok();
}

static void closing_put(Indenter *in, char c) {
    in->depth--;
    if (c == '}') {
        if (!in->line_begins) putc_unlocked('\n', in->stream);
        tabs_put(in);
    }
    in->line_begins = false;
    putc_unlocked(c, in->stream);
}

static void comma_put(Indenter *in) {
    in->line_begins = in->is_object[in->depth];
    two_put(',', in->line_begins ? '\n' : ' ', in->stream);
}

// The length of the string or other scalar that begins here.
static size_t scalar_length(const char *text) {
    if (*text != '"') return strcspn(text, "{}[],:\"");
    size_t length = 1;
    while (text[length] && text[length] != '"')
        length += text[length] == '\\' && text[length + 1] ? 2 : 1;
    return text[length] ? length + 1 : length;
}

// Strings and braces come whole in a piece.
static Status indented_take(void *context, const char *piece) {
    Indenter *in = context;
    while (*piece) {
        if (in->line_begins && *piece != '}') {
            tabs_put(in);
            in->line_begins = false;
        }
        const size_t length = scalar_length(piece);
        if (length > 0)
            text_put(piece, length, in->stream);
        else if (*piece == '{' || *piece == '[')
            TRY(opening_put(in, *piece));
        else if (*piece == '}' || *piece == ']')
            closing_put(in, *piece);
        else if (*piece == ',')
            comma_put(in);
        else
            two_put(':', '\t', in->stream);
        piece += length > 0 ? length : 1;
    }
    return status_ok();
}

// Hundreds of megabytes come letter by letter: the stream is locked once.
static Status document_put(const JsonDocument *document, FILE *stream) {
    Indenter in = {.stream = stream};
    flockfile(stream);
    const Status status = document_pieces(document, indented_take, &in);
    if (status.code == STATUS_OK) putc_unlocked('\n', stream);
    funlockfile(stream);
    return status;
}

Status json_document_write(const JsonDocument *document, FILE *stream) {
    TRY(document_put(document, stream));
    return stream_end(stream);
}

Status json_document_save(const JsonDocument *document, const char *path) {
    OutputFile file;
    TRY(output_open(path, &file));
    return output_close(&file, document_put(document, file.stream));
}
