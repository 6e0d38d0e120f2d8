// Recursive descent; every refusal says what could have stood at its place.
#include "base/json_parse.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *text, *at, *end;
    JsonMistake *mistake;
    char *buffer; // of the string that is being read
    size_t capacity;
    size_t *num_values;
} Parser;

static bool value_parse(Parser *parser, int depth, cJSON **out);

const char *json_space_end(const char *at, bool *unclosed) {
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (at[0] != '/' || (at[1] != '/' && at[1] != '*')) return at;
        const char *end = at[1] == '/' ? at + strcspn(at, "\n") : strstr(at + 2, "*/");
        if (!end) {
            *unclosed = true;
            return at;
        }
        at = at[1] == '/' ? end : end + 2;
    }
}

// Refuses at the parser's place.
static bool refuse(Parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(Parser *parser, const char *format, ...) {
    JsonMistake *mistake = parser->mistake;
    mistake->at = (size_t)(parser->at - parser->text);
    va_list args;
    va_start(args, format);
    vsnprintf(mistake->sentence, sizeof mistake->sentence, format, args);
    va_end(args);
    return false;
}

static bool refuse_memory(Parser *parser) {
    parser->mistake->out_of_memory = true;
    return false;
}

// Length of the word or the character at s; 0 at the end of the text.
static size_t word_length(const char *s) {
    size_t n = strcspn(s, " \t\r\n,:[]{}\"");
    if (n == 0) n = s[0] != '\0';
    while (((unsigned char)s[n] & 0xC0) == 0x80) n++; // the rest of a UTF-8 character
    return n;
}

static bool word_is(const char *s, const char *word) {
    return strlen(word) == word_length(s) && strncmp(s, word, strlen(word)) == 0;
}

// "syntax error: expected WHAT, found ..." at the parser's place.
static bool refuse_expected(Parser *parser, const char *what) {
    if (parser->at >= parser->end)
        return refuse(parser, "syntax error: the text ends here; expected %s", what);
    size_t n = word_length(parser->at);
    int length = n > 24 ? 24 : (int)n;
    const char *open = *parser->at == '"' ? "'" : "\"";
    static const char *const SPELLINGS[][2] = {
        {"True", "true"}, {"False", "false"}, {"None", "null"}, {"nan", "NaN"}, {NULL, NULL}};
    for (int i = 0; SPELLINGS[i][0]; i++)
        if (word_is(parser->at, SPELLINGS[i][0]))
            return refuse(parser, "syntax error: expected %s, found \"%s\", which JSON spells %s",
                          what, SPELLINGS[i][0], SPELLINGS[i][1]);
    return refuse(parser, "syntax error: expected %s, found %s%.*s%s", what, open, length,
                  parser->at, open);
}

static bool space_skip(Parser *parser) {
    bool unclosed = false;
    parser->at = json_space_end(parser->at, &unclosed);
    return !unclosed || refuse(parser, "syntax error: the comment that begins here is not closed; "
                                       "expected */");
}

static bool hex4(const char *s, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef";
        char c = s[i] >= 'A' && s[i] <= 'F' ? (char)(s[i] - 'A' + 'a') : s[i];
        const char *digit = c ? strchr(digits, c) : NULL;
        if (!digit) return false;
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

// Appends a code point as UTF-8.
static char *utf8_put(char *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char LEAD[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = (char)(LEAD[more] | code >> (6 * more));
    while (more-- > 0) *to++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    return to;
}

// The escape \uXXXX at the parser's place, with the second half of a surrogate pair.
static bool unicode_parse(Parser *parser, char **to) {
    uint32_t code, low;
    if (!hex4(parser->at + 2, &code) || code == 0)
        return refuse(parser,
                      "syntax error: expected four hexadecimal digits (not 0000) after \\u");
    size_t length = 6;
    if (code >= 0xD800 && code < 0xE000) {
        bool pair = code < 0xDC00 && parser->at[6] == '\\' && parser->at[7] == 'u' &&
                    hex4(parser->at + 8, &low) && low >= 0xDC00 && low < 0xE000;
        if (!pair) return refuse(parser, "syntax error: expected both halves of a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        length = 12;
    }
    *to = utf8_put(*to, code);
    parser->at += length;
    return true;
}

static bool escape_parse(Parser *parser, char **to) {
    static const char FROM[] = "\"\\/bfnrt", INTO[] = "\"\\/\b\f\n\r\t";
    char c = parser->at[1];
    if (c == 'u') return unicode_parse(parser, to);
    const char *found = c ? strchr(FROM, c) : NULL;
    if (!found)
        return refuse(parser, "syntax error: expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u "
                              "(a backslash itself is \\\\)");
    *(*to)++ = INTO[found - FROM];
    parser->at += 2;
    return true;
}

// The string at the parser's place into its buffer.
static bool string_parse(Parser *parser) {
    const char *begin = parser->at, *close = begin + 1;
    while (close < parser->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= parser->end)
        return refuse(parser, "syntax error: the text ends inside the string that begins here; "
                              "expected its closing quote");
    size_t needed = (size_t)(close - begin);
    if (needed > parser->capacity) {
        char *larger = realloc(parser->buffer, 2 * needed);
        if (!larger) return refuse_memory(parser);
        parser->buffer = larger;
        parser->capacity = 2 * needed;
    }
    char *to = parser->buffer;
    for (parser->at = begin + 1; parser->at < close;) {
        size_t plain = strcspn(parser->at, "\\\"");
        memcpy(to, parser->at, plain);
        to += plain;
        parser->at += plain;
        if (*parser->at == '\\' && !escape_parse(parser, &to)) return false;
    }
    *to = '\0';
    parser->at = close + 1;
    return true;
}

static bool number_parse(Parser *parser, cJSON **out) {
    const char *first = parser->at + (*parser->at == '-');
    if (first[0] == '0' && first[1] >= '0' && first[1] <= '9') // 8, or 10?
        return refuse_expected(parser, "a number that does not begin with 0");
    size_t length = strspn(parser->at, "+-.0123456789eE");
    char digits[64], *own = length < sizeof digits ? digits : malloc(length + 1), *end;
    if (!own) return refuse_memory(parser);
    memcpy(own, parser->at, length);
    own[length] = '\0';
    double value = strtod(own, &end);
    size_t used = (size_t)(end - own);
    if (own != digits) free(own);
    if (used == 0) return refuse_expected(parser, "a number");
    parser->at += used;
    *out = cJSON_CreateNumber(value);
    return *out || refuse_memory(parser);
}

static bool word_parse(Parser *parser, cJSON **out) {
    static const char *const PYTHON[] = {"Infinity", "-Infinity", "NaN"};
    for (int i = 0; i < 3; i++)
        if (word_is(parser->at, PYTHON[i])) {
            *out = cJSON_CreateRaw(PYTHON[i]);
            parser->at += strlen(PYTHON[i]);
            return *out || refuse_memory(parser);
        }
    char c = *parser->at;
    if (c == '-' || (c >= '0' && c <= '9')) return number_parse(parser, out);
    if (word_is(parser->at, "true") || word_is(parser->at, "false"))
        *out = cJSON_CreateBool(c == 't');
    else if (word_is(parser->at, "null"))
        *out = cJSON_CreateNull();
    else
        return refuse_expected(parser, "a value");
    parser->at += word_length(parser->at);
    return *out || refuse_memory(parser);
}

// Steps over what must stand between or behind members; *last where it was `close`.
static bool separator_skip(Parser *parser, char close, const char *opened, bool *last) {
    if (!space_skip(parser)) return false;
    *last = *parser->at == close;
    if (*last || *parser->at == ',') {
        parser->at++;
        return true;
    }
    if (parser->at < parser->end)
        return refuse_expected(parser, close == '}' ? "\",\" or \"}\"" : "\",\" or \"]\"");
    int line = 1;
    for (const char *c = parser->text; c < opened; c++) line += *c == '\n';
    return refuse(parser,
                  "syntax error: the text ends here; expected \",\" or \"%c\", which closes the %s "
                  "that begins in line %d",
                  close, close == '}' ? "object" : "list", line);
}

// Whether `close` stands at the parser's place, behind a comma too; then it is stepped over.
static bool closes(Parser *parser, char close) {
    if (*parser->at != close) return false;
    parser->at++;
    return true;
}

static bool list_parse(Parser *parser, int depth, cJSON *list) {
    const char *opened = parser->at++;
    for (bool last = false; !last;) {
        if (!space_skip(parser)) return false;
        if (closes(parser, ']')) return true;
        cJSON *item = NULL;
        if (parser->at >= parser->end) return refuse_expected(parser, "a value or \"]\"");
        bool good = value_parse(parser, depth + 1, &item);
        if (item) cJSON_AddItemToArray(list, item);
        if (!good || !separator_skip(parser, ']', opened, &last)) return false;
    }
    return true;
}

// A key and its colon; the key is a copy that the caller frees.
static bool key_parse(Parser *parser, char **key) {
    if (*parser->at != '"') return refuse_expected(parser, "a key in double quotes or \"}\"");
    if (!string_parse(parser)) return false;
    if (!space_skip(parser)) return false;
    if (*parser->at != ':') return refuse_expected(parser, "\":\" and a value after the key");
    parser->at++;
    *key = strdup(parser->buffer);
    return *key || refuse_memory(parser);
}

static bool member_parse(Parser *parser, int depth, cJSON *object) {
    char *key = NULL;
    if (!key_parse(parser, &key)) return false;
    cJSON *item = NULL;
    bool good = space_skip(parser) && value_parse(parser, depth + 1, &item);
    if (item && !cJSON_AddItemToObject(object, key, item)) {
        cJSON_Delete(item);
        good = refuse_memory(parser);
    }
    free(key);
    return good;
}

static bool object_parse(Parser *parser, int depth, cJSON *object) {
    const char *opened = parser->at++;
    for (bool last = false; !last;) {
        if (!space_skip(parser)) return false;
        if (closes(parser, '}')) return true;
        if (!member_parse(parser, depth, object)) return false;
        if (!separator_skip(parser, '}', opened, &last)) return false;
    }
    return true;
}

// *out is what there is of the value, also where it is refused; the caller owns it.
static bool value_parse(Parser *parser, int depth, cJSON **out) {
    char c = *parser->at;
    bool object = c == '{', list = c == '[';
    if (++*parser->num_values > JSON_MAX_VALUES)
        return refuse(parser, "more than %d values", JSON_MAX_VALUES);
    if ((object || list) && depth > JSON_MAX_DEPTH)
        return refuse(parser, "nested deeper than %d levels", JSON_MAX_DEPTH);
    if (object) {
        *out = cJSON_CreateObject();
        return *out ? object_parse(parser, depth, *out) : refuse_memory(parser);
    }
    if (list) {
        *out = cJSON_CreateArray();
        return *out ? list_parse(parser, depth, *out) : refuse_memory(parser);
    }
    if (c != '"') return word_parse(parser, out);
    if (!string_parse(parser)) return false;
    *out = cJSON_CreateString(parser->buffer);
    return *out || refuse_memory(parser);
}

static bool document_parse(Parser *parser, cJSON **out) {
    if (!space_skip(parser)) return false;
    if (!value_parse(parser, 1, out)) return false;
    if (!space_skip(parser)) return false;
    return parser->at >= parser->end || refuse(parser, "syntax error: text after the document");
}

cJSON *json_parse_tree(const char *text, size_t size, size_t *num_values, JsonMistake *mistake) {
    *mistake = (JsonMistake){0};
    Parser parser = {
        .text = text, .at = text, .end = text + size, .mistake = mistake, .num_values = num_values};
    cJSON *tree = NULL;
    bool good = document_parse(&parser, &tree);
    free(parser.buffer);
    if (good) return tree;
    cJSON_Delete(tree);
    return NULL;
}
