// ${...}: values that may be absent, elements of arrays, parts of texts; $1, $@, $#.
#include "import/shell_state.h"

#include "import/shell_sum.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANGED = 4096 }; // letters of a text that patterns are tried on

typedef struct {
    const char *name;
    const char *rest; // what is done to it: ":-WORD", "##PATTERN"
    WordList words;
    bool set, unknown;
    bool many, joined; // of "[@]" or "@"; of "[*]" or "*" between quotes
} Expansion;

bool is_known(const char *text) {
    return !strpbrk(text, "$`");
}

// All of a text as one; NULL where it is not known.
static const char *text_expand(Shell *shell, const char *text) {
    Piece piece = {0};
    WordList parts = {0};
    if (shell->num_defaults >= MAX_NESTED) return NULL;
    shell->num_defaults++;
    words_read(shell, text, true, &piece, &parts);
    shell->num_defaults--;
    const char *value = piece.size > 0 ? piece.text : "";
    return parts.num_words == 0 && is_known(value) ? value : NULL;
}

// "NAME[INDEX]": by a number, or by the key of an element "[KEY]=VALUE".
static bool element_find(Shell *shell, const Variable *variable, const char *index, WordList *out) {
    const WordList *words = &variable->words;
    const char *key = text_expand(shell, index);
    if (!key || !words_known(words)) return false;
    const char *mark = arena_printf(shell->arena, "[%s]=", key);
    for (int i = words->num_words - 1; i >= 0; i--) {
        if (strncmp(words->words[i], mark, strlen(mark)) != 0) continue;
        words_add(shell->arena, out, words->words[i] + strlen(mark));
        return true;
    }
    long long number;
    if (!shell_sum(index, variable_value, shell, shell->arena, &number)) return false;
    if (number < 0 || number >= words->num_words || words->words[0][0] == '[') return false;
    words_add(shell->arena, out, words->words[number]);
    return true;
}

// $1, $@ and $*.
static void parameters_find(Shell *shell, const char *inside, bool quoted, Expansion *out) {
    const size_t digits = strspn(inside, "0123456789");
    const long number = digits > 0 && digits < 4 ? strtol(inside, NULL, 10) : 0;
    out->many = inside[0] == '@' || inside[0] == '*';
    out->joined = inside[0] == '*' && quoted;
    out->rest = inside + (out->many ? 1 : digits);
    out->unknown = !shell->args || (!out->many && number < 1);
    if (out->unknown) return;
    out->set = out->many || number <= shell->args->num_words;
    if (out->many)
        out->words = *shell->args;
    else if (out->set)
        words_add(shell->arena, &out->words, shell->args->words[number - 1]);
}

static void expansion_find(Shell *shell, const char *inside, bool quoted, Expansion *out) {
    const size_t length = name_length(inside);
    out->name = text_part(shell, inside, length);
    if (length == 0) {
        parameters_find(shell, inside, quoted, out);
        return;
    }
    const Variable *variable = variable_read(shell, out->name);
    out->rest = inside + length;
    out->set = variable != NULL;
    out->unknown = variable_is_keyed(variable) && *out->rest != '[';
    if (*out->rest != '[') { // of an array its first element
        if (variable && variable->words.num_words > 0)
            words_add(shell->arena, &out->words, variable->words.words[0]);
        return;
    }
    const char *end = bracket_end(out->rest, '[', ']');
    const char *index = text_part(shell, out->rest + 1, (size_t)(end - out->rest) - 1);
    ((char *)index)[strlen(index) - (end[-1] == ']')] = '\0';
    out->rest = end;
    out->many = strcmp(index, "@") == 0 || strcmp(index, "*") == 0;
    out->joined = index[0] == '*' && quoted;
    out->unknown = variable_is_keyed(variable) && out->many; // their order is the shell's
    if (variable && out->many)
        out->words = variable->words;
    else if (variable)
        out->unknown = !element_find(shell, variable, index, &out->words);
}

static void words_put(Shell *shell, const Expansion *e, const WordList *words, bool quoted,
                      Piece *piece, WordList *out) {
    if (e->many && quoted && !e->joined && words->num_words == 0) piece->vanished = true;
    if (!e->joined) {
        value_add(shell, words, quoted, piece, out);
        return;
    }
    const char *ifs = separators(shell);
    piece->begun = true;
    if (ifs && !is_known(ifs)) unknown_add(shell, piece, "$IFS");
    for (int i = 0; i < words->num_words; i++) {
        if (i > 0) piece_add(shell, piece, ifs ? ifs : " ", ifs ? *ifs != '\0' : 1);
        piece_add(shell, piece, words->words[i], strlen(words->words[i]));
    }
}

// ${NAME:=WORD} of a variable that is not set.
static bool default_set(Shell *shell, const Expansion *e, const char *word, bool quoted,
                        Piece *piece, WordList *out) {
    Piece value = {0};
    WordList parts = {0}, words = {0};
    words_read(shell, word, true, &value, &parts);
    if (parts.num_words > 0 || !e->name[0]) return false;
    words_add(shell->arena, &words, value.size > 0 ? value.text : "");
    words_put(shell, e, &words, quoted, piece, out);
    const Truth runs = shell_runs(shell);
    if (runs == TRUTH_UNKNOWN) variable_hide(shell, e->name);
    Variable *variable = runs == TRUTH_YES ? variable_make(shell, e->name) : NULL;
    if (variable) variable->words = words;
    return true;
}

// ${NAME:-WORD}, ${NAME=WORD}, ${NAME:+WORD}, ${NAME?WORD}.
static bool default_put(Shell *shell, const Expansion *e, bool quoted, Piece *piece,
                        WordList *out) {
    const bool colon = e->rest[0] == ':';
    const char kind = e->rest[colon], *word = e->rest + colon + 1;
    const WordList *words = &e->words;
    const bool empty =
        words->num_words == 0 || (words->num_words == 1 && words->words[0][0] == '\0');
    const bool has = e->set && !(colon && empty);
    if (kind == '+') {
        if (e->set && !words_known(words)) undecided_note(shell, e->name);
        if (!e->set || !words_known(words)) return false;
        if (has) words_read(shell, word, quoted, piece, out);
        return true;
    }
    if (has) {
        words_put(shell, e, words, quoted, piece, out);
        return true;
    }
    if (kind == '?') return false;
    if (kind == '=') return default_set(shell, e, word, quoted, piece, out);
    words_read(shell, word, quoted, piece, out);
    return true;
}

// ":OFFSET" or ":OFFSET:LENGTH" of a text or of words.
static bool part_put(Shell *shell, const Expansion *e, bool quoted, Piece *piece, WordList *out) {
    char *offset = arena_strdup(shell->arena, e->rest + 1), *length = strchr(offset, ':');
    long long first, most = 1 << 30;
    if (length) *length++ = '\0';
    if (!shell_sum(offset, variable_value, shell, shell->arena, &first)) return false;
    if (length && !shell_sum(length, variable_value, shell, shell->arena, &most)) return false;
    if (!e->name[0]) first--; // $1 is the first
    if (first < 0 || most < 0 || !words_known(&e->words)) return false;
    WordList words = {0};
    for (int i = 0; e->many && i < e->words.num_words; i++)
        if (i >= first && i - first < most) words_add(shell->arena, &words, e->words.words[i]);
    if (!e->many) {
        const char *text = e->words.num_words > 0 ? e->words.words[0] : "";
        const size_t size = strlen(text);
        const size_t begin = (size_t)first < size ? (size_t)first : size;
        const size_t left = size - begin;
        words_add(
            shell->arena, &words,
            text_part(shell, text + begin, (unsigned long long)most < left ? (size_t)most : left));
    }
    words_put(shell, e, &words, quoted, piece, out);
    return true;
}

// text without what the pattern matches at its begin (or end): the least, or the most of it.
static const char *pattern_cut(Shell *shell, const char *text, const char *pattern, bool end,
                               bool most) {
    const size_t size = strlen(text);
    for (size_t i = 0; i <= size; i++) {
        const size_t cut = most ? size - i : i;
        const char *part = end ? text + size - cut : text_part(shell, text, cut);
        if (fnmatch(pattern, part, 0) == 0)
            return end ? text_part(shell, text, size - cut) : text + cut;
    }
    return text;
}

// "/TEXT/TEXT": the first, or all, of one by another; NULL where it is a pattern.
static const char *text_replace(Shell *shell, const char *text, const char *operation) {
    const bool all = operation[1] == '/';
    char *from = arena_strdup(shell->arena, operation + 1 + all), *to = strchr(from, '/');
    if (to) *to++ = '\0';
    const char *old = text_expand(shell, from), *new = to ? text_expand(shell, to) : "";
    if (!old || !new || !old[0] || strpbrk(old, "*?[\\#%")) return NULL;
    const char *result = "", *at = text, *found;
    int num = 0;
    while ((found = strstr(at, old)) != NULL && (all || num++ == 0)) {
        result = arena_printf(shell->arena, "%s%.*s%s", result, (int)(found - at), at, new);
        at = found + strlen(old);
    }
    return arena_printf(shell->arena, "%s%s", result, at);
}

// What an operation makes of a text; NULL where it is none that is known.
static const char *text_change(Shell *shell, const char *text, const char *operation) {
    const char kind = operation[0];
    const bool twice = kind && operation[1] == kind;
    if (strlen(text) > MAX_CHANGED) return NULL;
    if (kind == '/') return text_replace(shell, text, operation);
    if (kind == '#' || kind == '%') {
        const char *pattern = text_expand(shell, operation + 1 + twice);
        return pattern ? pattern_cut(shell, text, pattern, kind == '%', twice) : NULL;
    }
    if ((kind != ',' && kind != '^') || operation[1 + twice]) return NULL;
    char *changed = arena_strdup(shell->arena, text);
    for (char *c = changed; *c && (twice || c == changed); c++)
        *c = (char)(kind == ',' ? tolower((unsigned char)*c) : toupper((unsigned char)*c));
    return changed;
}

// True where the expansion is known, and added.
static bool expansion_put(Shell *shell, const Expansion *e, bool quoted, Piece *piece,
                          WordList *out) {
    const char *rest = e->rest;
    if (e->unknown) return false;
    if (rest[0] && (strchr("-=+?", rest[0]) || (rest[0] == ':' && strchr("-=+?", rest[1])))) {
        if (shell->num_defaults >= MAX_NESTED || !rest[rest[0] == ':']) return false;
        shell->num_defaults++;
        const bool done = default_put(shell, e, quoted, piece, out);
        shell->num_defaults--;
        return done;
    }
    if (!e->set) return false;
    if (rest[0] == ':') return part_put(shell, e, quoted, piece, out);
    WordList words = e->words;
    if (rest[0]) {
        words = (WordList){0};
        for (int i = 0; i < e->words.num_words; i++) {
            const char *word = e->words.words[i];
            const char *changed = is_known(word) ? text_change(shell, word, rest) : NULL;
            if (!changed) return false;
            words_add(shell->arena, &words, changed);
        }
    }
    words_put(shell, e, &words, quoted, piece, out);
    return true;
}

// ${#NAME}, ${#NAME[@]}: letters or words. True where it is known, and added.
static bool length_put(Shell *shell, const char *inside, Piece *piece) {
    Expansion e = {0};
    expansion_find(shell, inside, true, &e);
    if (!e.set || e.unknown || *e.rest || !words_known(&e.words)) return false;
    const int count =
        e.many ? e.words.num_words : (e.words.num_words > 0 ? (int)strlen(e.words.words[0]) : 0);
    const char *text = arena_printf(shell->arena, "%d", count);
    piece_add(shell, piece, text, strlen(text));
    return true;
}

void braces_add(Shell *shell, const char *inside, const char *whole, bool quoted, Piece *piece,
                WordList *out) {
    Expansion e = {0};
    bool done;
    if (inside[0] == '#' && inside[1]) {
        done = length_put(shell, inside + 1, piece);
    } else if (inside[0] == '#') {
        done = parameter_add(shell, inside, quoted, piece, out) > 0;
    } else {
        const bool other = inside[0] == '!'; // the variable that this one names
        const char *name = other ? variable_value(shell, inside + 1) : inside;
        if (name && (!other || (name[0] && name_length(name) == strlen(name))))
            expansion_find(shell, name, quoted, &e);
        else
            e.unknown = true;
        done = expansion_put(shell, &e, quoted, piece, out);
    }
    if (done) return;
    shell->unsure = true;
    piece_add(shell, piece, whole, strlen(whole));
}

size_t parameter_add(Shell *shell, const char *text, bool quoted, Piece *piece, WordList *out) {
    if (!shell->args || !text[0]) return 0;
    if (text[0] == '#') {
        if (!words_known(shell->args)) return 0;
        const char *number = arena_printf(shell->arena, "%d", shell->args->num_words);
        piece_add(shell, piece, number, strlen(number));
        return 1;
    }
    if (!isdigit((unsigned char)text[0]) && text[0] != '@' && text[0] != '*') return 0;
    Expansion e = {0};
    parameters_find(shell, text_part(shell, text, 1), quoted, &e);
    if (e.set) words_put(shell, &e, &e.words, quoted, piece, out);
    // What a function is not given is empty; what the script is not given is not known.
    return e.set || (shell->in_function > 0 && !e.unknown);
}
