// Which variables there are, whose they are, and what commands do to them.
#include "import/shell_state.h"

#include "import/shell_sum.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static Variable *slot_find(Shell *shell, const char *name) {
    for (int i = 0; i < shell->num_variables; i++)
        if (strcmp(shell->variables[i].name, name) == 0) return &shell->variables[i];
    return NULL;
}

Variable *variable_find(Shell *shell, const char *name) {
    Variable *variable = slot_find(shell, name);
    return variable && !variable->absent ? variable : NULL;
}

bool variable_is_keyed(const Variable *variable) {
    return variable && variable->array && variable->words.num_words > 0 &&
           variable->words.words[0][0] == '[';
}

bool words_known(const WordList *words) {
    for (int i = 0; i < words->num_words; i++)
        if (!is_known(words->words[i])) return false;
    return true;
}

const Variable *variable_read(Shell *shell, const char *name) {
    Variable *variable = variable_find(shell, name);
    if (variable) variable->read = true;
    return variable;
}

const char *variable_value(void *context, const char *name) {
    Shell *shell = context;
    const long number = isdigit((unsigned char)name[0]) ? strtol(name, NULL, 10) : 0;
    if (number > 0)
        return shell->args && number <= shell->args->num_words ? shell->args->words[number - 1]
                                                               : NULL;
    const Variable *variable = variable_read(shell, name);
    return variable && variable->words.num_words > 0 ? variable->words.words[0] : NULL;
}

void shell_overflow(Shell *shell) {
    if (shell->out.overflow == 0) shell->out.overflow = shell->line;
}

Variable *variable_make(Shell *shell, const char *name) {
    Variable *variable = slot_find(shell, name);
    if (!variable && shell->num_variables == MAX_VARIABLES) {
        shell_overflow(shell);
        return NULL;
    }
    if (!variable) {
        variable = &shell->variables[shell->num_variables++];
        *variable = (Variable){.name = name};
    }
    if (variable->absent) {
        variable->words = (WordList){0};
        variable->array = false;
    }
    variable->absent = false;
    return variable;
}

void undecided_note(Shell *shell, const char *name) {
    ShellCommand *out = &shell->out;
    for (int i = 0; i < out->num_undecided; i++)
        if (strcmp(out->undecided[i].name, name) == 0) {
            out->undecided[i].line = undecided_line(shell);
            return;
        }
    if (out->num_undecided == MAX_UNDECIDED)
        shell_overflow(shell);
    else
        out->undecided[out->num_undecided++] = (Undecided){name, undecided_line(shell)};
}

bool variable_is_hidden(const Variable *variable) {
    const WordList *words = &variable->words;
    return words->num_words == 1 && words->words[0][0] == '$' &&
           strcmp(words->words[0] + 1, variable->name) == 0;
}

void variable_hide(Shell *shell, const char *name) {
    Variable *variable = variable_make(shell, name);
    if (variable) {
        variable->words = (WordList){0};
        words_add(shell->arena, &variable->words, arena_printf(shell->arena, "$%s", name));
    }
    undecided_note(shell, name);
}

static void variable_unset(Shell *shell, const char *name) {
    Variable *variable = variable_find(shell, name);
    if (variable) variable->absent = true;
}

// "unset NAME[KEY]"
static void element_unset(Shell *shell, const char *word) {
    const size_t length = name_length(word);
    const char *name = text_part(shell, word, length);
    if (length > 0 && word[length] == '[' && variable_find(shell, name)) variable_hide(shell, name);
}

void local_begin(Shell *shell, const char *name) {
    if (shell->in_function == 0 || shell_runs(shell) == TRUTH_NO) return;
    if (shell->num_locals == MAX_LOCALS) {
        shell_overflow(shell);
        return;
    }
    const Variable *variable = variable_find(shell, name);
    shell->locals[shell->num_locals++] =
        variable ? *variable : (Variable){.name = name, .absent = true};
}

// A variable as it was, but for what the user is told of it.
static void variable_restore(Variable *variable, const Variable *old) {
    variable->words = old->words;
    variable->absent = old->absent;
    variable->exported = old->exported;
    variable->array = old->array;
}

void variable_put(Shell *shell, const Variable *as) {
    Variable *variable = variable_make(shell, as->name);
    if (variable) variable_restore(variable, as);
}

void locals_end(Shell *shell, int num_before) {
    while (shell->num_locals > num_before) {
        const Variable *old = &shell->locals[--shell->num_locals];
        Variable *variable = slot_find(shell, old->name);
        if (variable) variable_restore(variable, old);
    }
}

Scope scope_keep(Shell *shell, Variable *room) {
    if (!room && ++shell->num_scopes > MAX_SCOPES) {
        shell_overflow(shell);
        return (Scope){0};
    }
    const int num = shell->num_variables;
    Variable *kept = room ? room : ARENA_ARRAY(shell->arena, num + 1, Variable);
    memcpy(kept, shell->variables, (size_t)num * sizeof *kept);
    return (Scope){kept, num, shell->args};
}

void scope_restore(Shell *shell, const Scope *scope) {
    if (!scope->variables) return;
    shell->args = scope->args;
    for (int i = 0; i < shell->num_variables; i++) {
        if (i < scope->num)
            variable_restore(&shell->variables[i], &scope->variables[i]);
        else
            shell->variables[i].absent = true;
    }
}

// "NAME[KEY]=VALUE": an element more, or an array that is not known.
static bool element_set(Shell *shell, const char *word) {
    const size_t length = name_length(word);
    if (length == 0 || word[length] != '[') return false;
    const char *end = bracket_end(word + length, '[', ']');
    if (*end != '=' && !(end[0] == '+' && end[1] == '=')) return false;
    const char *name = text_part(shell, word, length);
    const Variable *variable = variable_find(shell, name);
    const bool keyed = variable && *end == '=' && is_known(word) &&
                       (variable->words.num_words == 0 || variable->words.words[0][0] == '[');
    if (!keyed || shell_runs(shell) != TRUTH_YES)
        variable_hide(shell, name);
    else
        words_add(shell->arena, &variable_make(shell, name)->words, word + length);
    if (shell_runs(shell) != TRUTH_NO && variable_find(shell, name))
        variable_find(shell, name)->array = true;
    return true;
}

// "NAME = SUM", "NAME += SUM", "NAME++": true where it is one, with its new value.
static bool sum_assigns(Shell *shell, const char *text, const char **name, long long *value) {
    text += strspn(text, " \t\n");
    const size_t length = name_length(text);
    const char *at = text + length + strspn(text + length, " \t\n");
    if (length == 0) return false;
    *name = text_part(shell, text, length);
    if ((at[0] == '+' || at[0] == '-') && at[1] == at[0] && !at[2 + strspn(at + 2, " \t\n")])
        at = at[0] == '+' ? "+=1" : "-=1";
    const bool more = at[0] && strchr("+-*/%", at[0]) && at[1] == '=';
    if (!more && (at[0] != '=' || at[1] == '=')) return false;
    const char *sum = at + 1 + more;
    if (more) sum = arena_printf(shell->arena, "%s %c (%s)", *name, at[0], sum);
    return shell_sum(sum, variable_value, shell, shell->arena, value);
}

// Hides every variable of a sum that may set one.
static void sum_hide(Shell *shell, const char *text) {
    bool sets = strstr(text, "++") || strstr(text, "--");
    for (const char *at = strchr(text, '='); at && !sets; at = strchr(at + 1, '=')) {
        if (at[1] == '=')
            at++;
        else
            sets = at == text || !strchr("!<>", at[-1]);
    }
    for (const char *at = text; sets && *at;) {
        const size_t length = name_length(at);
        if (length > 0) variable_hide(shell, text_part(shell, at, length));
        at += length > 0 ? length : 1;
    }
}

void sum_changes(Shell *shell, const char *text) {
    const Truth runs = shell_runs(shell);
    const char *name;
    long long value;
    if (runs == TRUTH_NO) return;
    if (runs == TRUTH_UNKNOWN || !sum_assigns(shell, text, &name, &value)) {
        sum_hide(shell, text);
        return;
    }
    Variable *variable = variable_make(shell, name);
    if (!variable) return;
    variable->words = (WordList){0};
    words_add(shell->arena, &variable->words, arena_printf(shell->arena, "%lld", value));
}

// The names that a command's words are, from the first on that is no option.
static void names_change(Shell *shell, const WordList *words, bool hide) {
    for (int i = 1; i < words->num_words; i++) {
        const char *name = words->words[i];
        if (strcmp(words->words[0], "unset") == 0) element_unset(shell, name);
        if (name[0] == '-' || name_length(name) != strlen(name)) continue;
        if (hide)
            variable_hide(shell, name);
        else
            variable_unset(shell, name);
    }
}

// "local NAME", "declare -A NAME".
static void names_declare(Shell *shell, const WordList *words) {
    bool keyed = false;
    for (int i = 1; i < words->num_words; i++) {
        const char *name = words->words[i];
        if (name[0] == '-') keyed |= strchr(name, 'A') != NULL;
        if (name[0] == '-' || name_length(name) != strlen(name)) continue;
        local_begin(shell, name);
        if (shell->in_function > 0) variable_unset(shell, name);
        Variable *array = keyed ? variable_make(shell, name) : NULL;
        if (array) array->array = true;
    }
}

// "export NAME", "export -n NAME", "declare -x NAME": processes see it, or do so no more.
static void names_export(Shell *shell, const WordList *words, Truth runs) {
    bool exports = strcmp(words->words[0], "export") == 0, ends = false;
    for (int i = 1; i < words->num_words; i++) {
        const char *word = words->words[i];
        const size_t length = name_length(word);
        if (word[0] == '-' || word[0] == '+') {
            exports |= word[0] == '-' && strchr(word, 'x') != NULL;
            ends |= word[0] == '+' ? strchr(word, 'x') != NULL : strchr(word, 'n') != NULL;
        }
        if (length == 0 || (word[length] && word[length] != '=')) continue;
        const char *name = text_part(shell, word, length);
        Variable *variable = variable_find(shell, name);
        if (!variable || (!exports && !ends) || variable->exported == !ends) continue;
        if (runs == TRUTH_UNKNOWN)
            variable_hide(shell, name);
        else
            variable->exported = !ends;
    }
}

// "set -a", "set +a", "set -o allexport".
static void options_change(Shell *shell, const WordList *words) {
    for (int i = 1; i < words->num_words; i++) {
        const char *word = words->words[i];
        if (strcmp(word, "--") == 0) return;
        const bool named = strcmp(word, "allexport") == 0 && i > 1;
        const char sign = named ? words->words[i - 1][0] : word[0];
        const bool letter = (sign == '-' || sign == '+') && strchr(word + 1, 'a');
        if (named || (letter && word[1] != 'o')) shell->exports_all = sign == '-';
    }
}

// "shift N" and "set -- WORDS".
static void args_change(Shell *shell, const WordList *words, Truth runs) {
    const bool shifts = strcmp(words->words[0], "shift") == 0;
    if (!shifts && (words->num_words < 2 || strcmp(words->words[1], "--") != 0)) return;
    WordList *args = ARENA_NEW(shell->arena, WordList);
    const WordList *from = shifts ? shell->args : words;
    long skip = shifts && words->num_words > 1 ? strtol(words->words[1], NULL, 10) : 1;
    if (!shifts) skip = 2;
    for (int i = 0; from && i < from->num_words; i++)
        if (i >= skip) words_add(shell->arena, args, from->words[i]);
    for (int i = 0; i < args->num_words; i++) // which may be none, or several
        if (!is_known(args->words[i])) from = NULL;
    shell->args = from && runs == TRUTH_YES ? args : NULL;
}

void command_changes(Shell *shell, const WordList *words) {
    static const char *const hiding[] = {"read", "mapfile", "readarray", "getopts", NULL};
    static const char *const declaring[] = {"local", "declare", "typeset", NULL};
    const Truth runs = shell_runs(shell);
    const char *word = words->words[0];
    if (runs == TRUTH_NO) return;
    const bool declares = word_is(word, declaring);
    const bool sets = element_set(shell, word); // A[1]=2 A[2]=3
    for (int i = 1; i < words->num_words && (declares || sets); i++)
        element_set(shell, words->words[i]);
    if (word_is(word, hiding)) names_change(shell, words, true);
    if (strcmp(word, "unset") == 0) names_change(shell, words, runs == TRUTH_UNKNOWN);
    if (strcmp(word, "shift") == 0 || strcmp(word, "set") == 0) args_change(shell, words, runs);
    if (strcmp(word, "printf") == 0 && words->num_words > 2 && strcmp(words->words[1], "-v") == 0)
        variable_hide(shell, words->words[2]);
    for (int i = 1; i < words->num_words && strcmp(word, "let") == 0; i++)
        sum_changes(shell, words->words[i]);
    if (declares) names_declare(shell, words);
    if (declares || strcmp(word, "export") == 0) names_export(shell, words, runs);
    if (strcmp(word, "set") == 0) options_change(shell, words);
}
