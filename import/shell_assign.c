// Variables that a script sets.
#include "import/shell_state.h"

#include <string.h>

// Notes the flags of a text, which may or may not be there. True where there are some.
static bool text_maybe(Shell *shell, const char *text) {
    ShellCommand *out = &shell->out;
    bool found = false;
    char *words = arena_strdup(shell->arena, text), *rest = NULL;
    for (char *word = strtok_r(words, " \t\n", &rest); word;
         word = strtok_r(NULL, " \t\n", &rest)) {
        if (strncmp(word, "--", 2) != 0) continue;
        found = true;
        word[strcspn(word, "=")] = '\0';
        if (out->num_maybe == MAX_MAYBE) {
            shell_overflow(shell);
            return found;
        }
        out->maybe[out->num_maybe++] = (Undecided){word, undecided_line(shell)};
    }
    return found;
}

// Whether a value begins with all of the old one: ARGS="$ARGS --more".
static bool value_extends(const WordList *value, const WordList *old) {
    if (value->num_words < old->num_words) return false;
    for (int i = 0; i + 1 < old->num_words; i++)
        if (strcmp(value->words[i], old->words[i]) != 0) return false;
    const char *last = old->words[old->num_words - 1];
    return strncmp(value->words[old->num_words - 1], last, strlen(last)) == 0;
}

// Notes the flags that a block which may or may not run puts into a variable, or takes from it.
// True where there are some.
static bool flags_maybe(Shell *shell, const char *name, const WordList *value, bool more) {
    const Variable *variable = variable_find(shell, name);
    const WordList *old = variable && variable->words.num_words > 0 ? &variable->words : NULL;
    bool found = false, extends = !more && old && value_extends(value, old);
    int first = extends ? old->num_words : 0;
    if (extends) // what stands behind the old text in the same word
        found = text_maybe(shell, value->words[first - 1] + strlen(old->words[first - 1]));
    for (int i = first; i < value->num_words; i++) found |= text_maybe(shell, value->words[i]);
    if (!more && !extends)
        for (int i = 0; old && i < old->num_words; i++) text_maybe(shell, old->words[i]);
    return found;
}

// (WORDS) at shell->at.
static void array_read(Shell *shell, WordList *value) {
    shell->at++;
    for (gap_skip(shell, true); *shell->at && *shell->at != ')'; gap_skip(shell, true)) {
        const char *before = shell->at;
        word_read(shell, value);
        if (shell->at == before) shell->at++;
    }
    if (*shell->at) shell->at++;
}

// One text at shell->at. *more: it is added to the variable; false where value has all of it.
static void text_read(Shell *shell, const char *name, bool *more, WordList *value) {
    WordList parts = {0};
    const char *text = "";
    shell->whole = true;
    word_read(shell, &parts);
    shell->whole = false;
    for (int i = 0; i < parts.num_words; i++)
        text = arena_printf(shell->arena, "%s%s%s", text, i ? " " : "", parts.words[i]);
    const Variable *old = *more ? variable_read(shell, name) : NULL;
    if (old && old->words.num_words == 1) {
        text = arena_printf(shell->arena, "%s%s", old->words.words[0], text);
        *more = false;
    }
    words_add(shell->arena, value, text);
}

static void variable_set(Shell *shell, const char *name, const WordList *value, bool more,
                         int line) {
    Variable *variable = variable_make(shell, name);
    if (!variable) return;
    if (variable->given && !variable->read && !more && !shell->out.overwritten.name)
        shell->out.overwritten = (Undecided){name, line};
    variable->given = false;
    variable->exported |= shell->exports_all;
    if (!more) variable->words = (WordList){0};
    for (int i = 0; i < value->num_words; i++)
        words_add(shell->arena, &variable->words, value->words[i]);
}

bool assignment_is(const Shell *shell) {
    const char *rest = shell->at + name_length(shell->at);
    return rest != shell->at && (rest[0] == '=' || (rest[0] == '+' && rest[1] == '='));
}

bool assignment_read(Shell *shell, bool own) {
    size_t length = name_length(shell->at);
    const char *rest = shell->at + length;
    bool more = rest[0] == '+' && rest[1] == '=';
    if (!assignment_is(shell)) return false;
    const char *name = text_part(shell, shell->at, length);
    WordList value = {0};
    int line = shell->line;
    shell->at = rest + 1 + more;
    if (own) local_begin(shell, name);
    if (*shell->at == '(')
        array_read(shell, &value);
    else
        text_read(shell, name, &more, &value);
    for (int i = 0; i < value.num_words; i++) // a command, which may fail
        if (strstr(value.words[i], "$(") || strchr(value.words[i], '`'))
            shell->said = TRUTH_UNKNOWN;
    Truth runs = shell_runs(shell);
    if (runs == TRUTH_UNKNOWN && !flags_maybe(shell, name, &value, more))
        variable_hide(shell, name);
    if (runs == TRUTH_YES) variable_set(shell, name, &value, more, line);
    return true;
}
