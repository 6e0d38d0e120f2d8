// Variables that a script sets.
#include "import/shell_state.h"

#include <string.h>

// Notes a flag that may or may not be there.
static void flag_maybe(Shell *shell, const char *flag) {
    ShellCommand *out = &shell->out;
    const int line = undecided_line(shell);
    for (int i = 0; i < out->num_maybe; i++) // as of a loop that is read again
        if (out->maybe[i].line == line && strcmp(out->maybe[i].name, flag) == 0) return;
    if (out->num_maybe == MAX_MAYBE)
        shell_overflow(shell);
    else
        out->maybe[out->num_maybe++] = (Undecided){flag, line};
}

// Notes the flags of a text, which may or may not be there. True where there are some.
static bool text_maybe(Shell *shell, const char *text) {
    bool found = false;
    char *words = arena_strdup(shell->arena, text), *rest = NULL;
    for (char *word = strtok_r(words, " \t\n", &rest); word;
         word = strtok_r(NULL, " \t\n", &rest)) {
        if (strncmp(word, "--", 2) != 0) continue;
        found = true;
        word[strcspn(word, "=")] = '\0';
        flag_maybe(shell, word);
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
    if (!*shell->at) syntax_note(shell, "=(", shell->line);
    if (*shell->at) shell->at++;
}

// One text at shell->at, behind what the variable has where there is more. Of an array it is the
// first element: value has the others, too.
//   old  the variable; NULL: there is none
static void text_read(Shell *shell, const Variable *old, bool more, WordList *value) {
    WordList parts = {0};
    const char *text = "";
    shell->whole = true;
    word_read(shell, &parts);
    shell->whole = false;
    for (int i = 0; i < parts.num_words; i++)
        text = arena_printf(shell->arena, "%s%s%s", text, i ? " " : "", parts.words[i]);
    const WordList none = {0}, *words = old ? &old->words : &none;
    if (more && words->num_words > 0)
        text = arena_printf(shell->arena, "%s%s", words->words[0], text);
    words_add(shell->arena, value, text);
    for (int i = 1; i < words->num_words; i++) words_add(shell->arena, value, words->words[i]);
}

typedef struct {
    WordList words;
    bool array; // between brackets
    bool more;  // words behind those that it has
    int line;
} Value;

static void variable_set(Shell *shell, const char *name, const Value *value) {
    Variable *variable = variable_make(shell, name);
    if (!variable) return;
    if (variable->given && !variable->read && !value->more && !shell->out.overwritten.name)
        shell->out.overwritten = (Undecided){name, value->line};
    variable->given = false;
    variable->array |= value->array;
    variable->exported |= shell->exports_all;
    if (!value->more) variable->words = (WordList){0};
    for (int i = 0; i < value->words.num_words; i++)
        words_add(shell->arena, &variable->words, value->words.words[i]);
}

bool assignment_is(const Shell *shell) {
    const char *rest = shell->at + name_length(shell->at);
    return rest != shell->at && (rest[0] == '=' || (rest[0] == '+' && rest[1] == '='));
}

bool assignment_read(Shell *shell, bool own) {
    size_t length = name_length(shell->at);
    const char *rest = shell->at + length;
    const bool more = rest[0] == '+' && rest[1] == '=';
    if (!assignment_is(shell)) return false;
    const char *name = text_part(shell, shell->at, length);
    Value value = {.line = shell->line};
    shell->at = rest + 1 + more;
    if (own) local_begin(shell, name);
    const bool fresh = own && shell->in_function > 0;
    const Variable *old = fresh ? NULL : variable_find(shell, name);
    value.array = *shell->at == '(';
    value.more = value.array && more && !fresh;
    if (value.array) {
        array_read(shell, &value.words);
    } else {
        if (more && !fresh) variable_read(shell, name);
        text_read(shell, old && (more || old->array) ? old : NULL, more, &value.words);
    }
    for (int i = 0; i < value.words.num_words; i++) // a command, which may fail
        if (strstr(value.words.words[i], "$(") || strchr(value.words.words[i], '`'))
            shell->said = TRUTH_UNKNOWN;
    const Truth runs = shell_runs(shell);
    if (runs == TRUTH_NO) return true;
    // Of an array the first element is set: others that are not known stay.
    const bool hides = variable_is_keyed(old) || (old && old->array && !words_known(&old->words));
    if (!value.array && hides)
        variable_hide(shell, name);
    else if (runs == TRUTH_YES)
        variable_set(shell, name, &value);
    else if (!flags_maybe(shell, name, &value.words, value.more))
        variable_hide(shell, name);
    return true;
}
