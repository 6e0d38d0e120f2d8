// Words: quotes and expansions.
#include "import/shell_state.h"

#include "import/shell_sum.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void words_add(Arena *arena, WordList *list, const char *word) {
    if (list->num_words == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 16;
        const char **words = ARENA_ARRAY(arena, capacity, const char *);
        for (int i = 0; i < list->num_words; i++) words[i] = list->words[i];
        list->words = words;
        list->capacity = capacity;
    }
    list->words[list->num_words++] = word;
}

const char *words_join(Arena *arena, const char *const *words, int num_words) {
    size_t size = 1;
    for (int i = 0; i < num_words; i++) size += strlen(words[i]) + 1;
    char *text = arena_alloc(arena, size), *end = text;
    for (int i = 0; i < num_words; i++) {
        if (i > 0) *end++ = ' ';
        end = stpcpy(end, words[i]);
    }
    return text;
}

bool shell_is_full(Shell *shell) {
    const size_t used = arena_used(shell->arena) - shell->used_before;
    if (shell->out.too_large == 0 && used > SHELL_MAX_BYTES) shell->out.too_large = shell->line;
    return shell->out.too_large > 0;
}

void piece_add(Shell *shell, Piece *piece, const char *text, size_t length) {
    if (shell->out.too_large == 0 && piece->size + length > SHELL_MAX_WORD_BYTES)
        shell->out.too_large = shell->line;
    if (shell_is_full(shell)) return;
    if (piece->size + length + 1 > piece->capacity) {
        size_t capacity = 2 * (piece->size + length + 1) + 32;
        char *larger = arena_alloc(shell->arena, capacity);
        if (piece->size > 0) memcpy(larger, piece->text, piece->size);
        piece->text = larger;
        piece->capacity = capacity;
    }
    memcpy(piece->text + piece->size, text, length);
    piece->size += length;
    piece->text[piece->size] = '\0';
    piece->begun = true;
}

void piece_end(Shell *shell, Piece *piece, WordList *out) {
    if (piece->begun && !shell_is_full(shell))
        words_add(shell->arena, out, piece->size > 0 ? piece->text : "");
    *piece = (Piece){0};
}

bool word_is(const char *word, const char *const *names) {
    for (; *names; names++)
        if (strcmp(word, *names) == 0) return true;
    return false;
}

void comment_skip(Shell *shell) {
    while (*shell->at && *shell->at != '\n') shell->at++;
}

void gap_skip(Shell *shell, bool with_lines) {
    for (;; shell->at++) {
        if (shell->at[0] == '\\' && shell->at[1] == '\n') {
            shell->line++;
            shell->at++;
        } else if (with_lines && *shell->at == '#') {
            comment_skip(shell);
            shell->at--;
        } else if (with_lines && *shell->at == '\n') {
            shell->line++;
        } else if (*shell->at != ' ' && *shell->at != '\t') {
            return;
        }
    }
}

size_t name_length(const char *text) {
    size_t n = 0;
    if (isalpha((unsigned char)*text) || *text == '_')
        while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
    return n;
}

char *text_part(Shell *shell, const char *text, size_t length) {
    char *copy = arena_alloc(shell->arena, length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

// The place of the quote that closes the one at text; NULL: there is none.
static const char *quote_end(const char *text) {
    if (*text == '\'') return strchr(text + 1, '\'');
    for (const char *at = text + 1; *at; at++) {
        if (*at == '\\' && at[1])
            at++;
        else if (*at == '"')
            return at;
    }
    return NULL;
}

const char *bracket_end(const char *text, char open, char close) {
    int depth = 0;
    for (; *text; text++) {
        if (*text == '\\' && text[1]) text++;
        // A command has quotes of its own; in ${...} between quotes one may be a letter.
        const bool quotes = open == '(' && (*text == '\'' || *text == '"');
        const char *end = quotes ? quote_end(text) : NULL;
        if (end) text = end;
        if (*text == open) depth++;
        if (*text == close && --depth == 0) return text + 1;
    }
    return text;
}

// Letters up to a space; what was not expanded ($(...), ${...}, `...`) stays in one piece.
static size_t part_length(const char *text) {
    const char *at = text;
    while (*at && !strchr(" \t\n", *at)) {
        const char *end = at + 1;
        if (at[0] == '$' && at[1] == '(') end = bracket_end(at + 1, '(', ')');
        if (at[0] == '$' && at[1] == '{') end = bracket_end(at + 1, '{', '}');
        if (at[0] == '`' && strchr(at + 1, '`')) end = strchr(at + 1, '`') + 1;
        at = end;
    }
    return (size_t)(at - text);
}

const char *separators(Shell *shell) {
    const Variable *variable = variable_find(shell, "IFS");
    if (!variable) return NULL;
    const char *text = variable->words.num_words > 0 ? variable->words.words[0] : "";
    return strcmp(text, " \t\n") == 0 ? NULL : text;
}

void unknown_add(Shell *shell, Piece *piece, const char *text) {
    shell->unsure = true;
    piece_add(shell, piece, text, strlen(text));
}

// An unquoted value where IFS is set: one word where none of its letters part it, or not followed.
static void unparted_add(Shell *shell, const char *text, const char *ifs, Piece *piece) {
    if (!is_known(ifs) || strpbrk(text, ifs))
        unknown_add(shell, piece, "$IFS");
    else if (*text)
        piece_add(shell, piece, text, strlen(text));
}

void value_add(Shell *shell, const WordList *value, bool quoted, Piece *piece, WordList *out) {
    const char *ifs = separators(shell);
    if (ifs && shell->whole && value->num_words > 1) { // "$*" has it between its words
        unknown_add(shell, piece, "$IFS");
        return;
    }
    for (int i = 0; i < value->num_words && !shell_is_full(shell); i++) {
        const char *text = value->words[i];
        if (i > 0) piece_end(shell, piece, out);
        shell->unsure |= !is_known(text);
        if (quoted || shell->whole) {
            piece_add(shell, piece, text, strlen(text));
            continue;
        }
        if (ifs) {
            unparted_add(shell, text, ifs, piece);
            continue;
        }
        for (const char *space = " \t\n"; *text;) {
            size_t length = part_length(text), gap = strspn(text + length, space);
            if (length > 0) piece_add(shell, piece, text, length);
            if (gap > 0) piece_end(shell, piece, out);
            text += length + gap;
        }
    }
}

// $((SUM)) up to end: true where its value is known, and added.
static bool sum_add(Shell *shell, const char *at, const char *end, Piece *piece) {
    long long value;
    if (end - at < 6 || end[-1] != ')' || end[-2] != ')') return false;
    const char *sum = text_part(shell, at + 3, (size_t)(end - at) - 5);
    if (!shell_sum(sum, variable_value, shell, shell->arena, &value)) {
        sum_changes(shell, sum);
        return false;
    }
    const char *text = arena_printf(shell->arena, "%lld", value);
    piece_add(shell, piece, text, strlen(text));
    return true;
}

// At a '$'. Returns the place behind it and what it stands for.
static const char *dollar_add(Shell *shell, const char *at, bool quoted, Piece *piece,
                              WordList *out) {
    const char *end = at + 1;
    if (at[1] == '(') {
        end = bracket_end(at + 1, '(', ')');
        if (end[-1] != ')') syntax_note(shell, "$(", shell->line);
        if (at[2] == '(' && sum_add(shell, at, end, piece)) return end;
    } else if (at[1] == '{') {
        end = bracket_end(at + 1, '{', '}');
        if (end[-1] != '}') syntax_note(shell, "${", shell->line);
        if (end - at > 3 && end[-1] == '}') {
            braces_add(shell, text_part(shell, at + 2, (size_t)(end - at) - 3),
                       text_part(shell, at, (size_t)(end - at)), quoted, piece, out);
            return end;
        }
    } else {
        size_t length = name_length(at + 1), parameter = 0;
        if (length == 0) parameter = parameter_add(shell, at + 1, quoted, piece, out);
        if (parameter > 0) return at + 1 + parameter;
        end = at + 1 + (length > 0 ? length : isdigit((unsigned char)at[1]) || at[1] == '@');
        const Variable *variable = variable_read(shell, text_part(shell, at + 1, length));
        if (length > 0 && variable && !variable_is_keyed(variable)) {
            const WordList first = {.words = variable->words.words,
                                    .num_words = variable->words.num_words > 0};
            value_add(shell, &first, quoted, piece, out);
            return end;
        }
    }
    shell->unsure = true;
    piece_add(shell, piece, at, (size_t)(end - at));
    return end;
}

// Inside double quotes (or a here document, which ends with the text), up to what ends them.
// Returns the place behind it.
static const char *quotes_add(Shell *shell, const char *at, char end, Piece *piece, WordList *out) {
    const bool begun = piece->begun;
    const size_t size = piece->size;
    const int line = shell->line;
    piece->vanished = false;
    while (*at && *at != end) {
        if (*at == '\n' || (at[0] == '\\' && at[1] == '\n')) shell->line++;
        if (at[0] == '\\' && at[1] == '\n') {
            at += 2;
        } else if (at[0] == '\\' && at[1] && (strchr("$`\\", at[1]) || at[1] == end)) {
            piece_add(shell, piece, at + 1, 1);
            at += 2;
        } else if (*at == '$') {
            at = dollar_add(shell, at, true, piece, out);
        } else {
            piece_add(shell, piece, at++, 1);
        }
    }
    piece->begun = begun || !piece->vanished || piece->size > size;
    if (!*at && end) syntax_note(shell, "\"", line);
    return *at ? at + 1 : at;
}

const char *here_text(Shell *shell, const char *text) {
    Piece piece = {0};
    WordList parts = {0};
    const char *all = "";
    const int line = shell->line;
    quotes_add(shell, text, '\0', &piece, &parts);
    piece_end(shell, &piece, &parts);
    shell->line = line;
    for (int i = 0; i < parts.num_words; i++)
        all = arena_printf(shell->arena, "%s%s%s", all, i ? " " : "", parts.words[i]);
    return all;
}

// One letter of $'TEXT' at the backslash. Returns the place behind it; NULL: not followed.
static const char *escape_add(Shell *shell, const char *at, Piece *piece) {
    static const char LETTERS[] = "abefnrtv\\'\"?E", MEANT[] = "\a\b\033\f\n\r\t\v\\'\"?\033";
    const char *letter = at[1] ? strchr(LETTERS, at[1]) : NULL, *end = at + 2;
    long code = letter ? MEANT[letter - LETTERS] : 0;
    if (!letter && at[1] == 'x' && isxdigit((unsigned char)at[2])) {
        const char digits[] = {at[2], isxdigit((unsigned char)at[3]) ? at[3] : '\0', '\0'};
        code = strtol(digits, NULL, 16);
        end = at + 2 + strlen(digits);
    } else if (!letter) {
        const size_t num = strspn(at + 1, "01234567");
        const char digits[] = {at[1], num > 1 ? at[2] : '\0', num > 2 ? at[3] : '\0', '\0'};
        if (num == 0) return NULL;
        code = strtol(digits, NULL, 8);
        end = at + 1 + strlen(digits);
    }
    if (code <= 0 || code > 127) return NULL;
    piece_add(shell, piece, (const char[]){(char)code}, 1);
    return end;
}

// $'TEXT', whose escapes are letters. Returns the place behind it.
static const char *escapes_add(Shell *shell, const char *at, Piece *piece) {
    piece->begun = true;
    for (at += 2; *at && *at != '\'';) {
        const char *end = *at == '\\' ? escape_add(shell, at, piece) : NULL;
        shell->line += *at == '\n';
        if (*at != '\\')
            piece_add(shell, piece, at, 1);
        else if (!end) // what it stands for is not followed
            unknown_add(shell, piece, "$");
        at = end ? end : at + 1 + (at[0] == '\\' && at[1] != '\0');
    }
    if (!*at) syntax_note(shell, "$'", shell->line);
    return *at ? at + 1 : at;
}

// One step of a word: a quoted part, an expansion or a letter. Returns the place behind it.
static const char *word_step(Shell *shell, const char *at, bool quoted, Piece *piece,
                             WordList *out) {
    if (*at == '\\' && at[1] == '\n') {
        shell->line++;
        return at + 2;
    }
    if (*at == '\\' && at[1]) {
        piece_add(shell, piece, at + 1, 1);
        return at + 2;
    }
    if (*at == '\'' && !quoted) {
        const char *end = strchr(at + 1, '\'');
        if (!end) syntax_note(shell, "'", shell->line);
        size_t length = end ? (size_t)(end - at) - 1 : strlen(at + 1);
        for (size_t i = 0; i < length; i++) shell->line += at[1 + i] == '\n';
        piece_add(shell, piece, at + 1, length);
        return end ? end + 1 : at + 1 + length;
    }
    if (at[0] == '$' && at[1] == '"' && !quoted) at++; // translated, which is here the same
    if (at[0] == '$' && at[1] == '\'' && !quoted) return escapes_add(shell, at, piece);
    if (*at == '"') return quotes_add(shell, at + 1, '"', piece, out);
    if (*at == '$') return dollar_add(shell, at, quoted, piece, out);
    if (*at == '`') {
        const char *end = strchr(at + 1, '`');
        if (!end) syntax_note(shell, "`", shell->line);
        end = end ? end + 1 : at + strlen(at);
        piece_add(shell, piece, at, (size_t)(end - at));
        return end;
    }
    piece_add(shell, piece, at, 1);
    return at + 1;
}

// All of a text as parts of a word.
void words_read(Shell *shell, const char *text, bool quoted, Piece *piece, WordList *out) {
    while (*text) {
        const size_t gap = quoted || shell->whole ? 0 : strspn(text, " \t\n");
        if (gap > 0) piece_end(shell, piece, out);
        text += gap;
        if (*text) text = word_step(shell, text, quoted, piece, out);
    }
}

bool word_ends(char c) {
    return c == '\0' || strchr(" \t\n;&|<>()", c) != NULL;
}

void word_read(Shell *shell, WordList *out) {
    Piece piece = {0};
    while (!word_ends(*shell->at)) shell->at = word_step(shell, shell->at, false, &piece, out);
    piece_end(shell, &piece, out);
}
