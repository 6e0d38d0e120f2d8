// The words of one command, and what stands before and between them.
#include "import/shell_state.h"

#include <string.h>

// Whether the next word stands between "[[" and "]]", where < and > are no redirections.
static bool between_brackets(const Shell *shell, const WordList *words) {
    int first = words->num_words > 0 && strcmp(words->words[0], "!") == 0;
    bool opened = words->num_words > first && strcmp(words->words[first], "[[") == 0;
    bool closed = words->num_words > 0 && strcmp(words->words[words->num_words - 1], "]]") == 0;
    return (opened || shell->brackets) && !closed;
}

// "<", ">", "(", ")" or "|" between them. True where one stands at shell->at, and is read.
static bool sign_read(Shell *shell, WordList *words) {
    if (!*shell->at || !strchr("<>()|", *shell->at) || strncmp(shell->at, "||", 2) == 0)
        return false;
    words_add(shell->arena, words, text_part(shell, shell->at, 1));
    shell->at++;
    return true;
}

bool redirection_is(const char *at) {
    const char *sign = at + strspn(at, "0123456789");
    return *sign == '<' || *sign == '>' || (at[0] == '&' && at[1] == '>');
}

// A pattern between brackets of which a part is quoted, which would stand for itself, is not known.
static void pattern_hide(Shell *shell, WordList *words, const char *begin) {
    const size_t length = (size_t)(shell->at - begin);
    const char *last = words->num_words > 0 ? words->words[words->num_words - 1] : "";
    const bool quoted = strcspn(begin, "'\"\\") < length && strpbrk(last, "*?[");
    if (quoted && strcmp(last, "[[") != 0 && strcmp(last, "[") != 0)
        words->words[words->num_words - 1] = arena_printf(shell->arena, "$%s", last);
}

// One word of a command, which a redirection may follow: 2>&1.
static void operand_read(Shell *shell, WordList *words, bool brackets) {
    const char *begin = shell->at;
    const bool subject = words->num_words == 1 && strcmp(words->words[0], "case") == 0;
    shell->whole = brackets || subject;
    word_read(shell, words);
    shell->whole = false;
    if (brackets) pattern_hide(shell, words, begin);
    bool redirects = !brackets && (*shell->at == '<' || *shell->at == '>');
    const char *last = words->num_words > 0 ? words->words[words->num_words - 1] : "";
    if (redirects && last[0] && last[strspn(last, "0123456789")] == '\0') words->num_words--;
}

static void prefix_note(Shell *shell, Prefixes *prefixes) {
    const char *name = text_part(shell, shell->at, name_length(shell->at));
    const Variable *variable = variable_find(shell, name);
    if (prefixes->num == MAX_PREFIXES)
        shell_overflow(shell);
    else
        prefixes->old[prefixes->num++] =
            variable ? *variable : (Variable){.name = name, .absent = true};
}

void prefixes_swap(Shell *shell, Prefixes *prefixes, bool out) {
    for (int i = 0; i < prefixes->num; i++) {
        Variable *old = &prefixes->old[out ? prefixes->num - 1 - i : i];
        const Variable *found = variable_find(shell, old->name);
        Variable now = found ? *found : (Variable){.name = old->name, .absent = true};
        now.exported |= out; // what stands before a command is its own and what it starts sees it
        variable_put(shell, old);
        *old = now;
    }
}

int is_negated(const WordList *words) {
    return words->num_words > 0 && strcmp(words->words[0], "!") == 0;
}

// "export NAME=VALUE", "declare -x NAME=VALUE".
static void assignment_export(Shell *shell, const WordList *words, const char *name) {
    bool exports = strcmp(words->words[is_negated(words)], "export") == 0;
    for (int i = 1; i < words->num_words; i++)
        exports |= words->words[i][0] == '-' && strchr(words->words[i], 'x') != NULL;
    Variable *variable = variable_find(shell, name);
    if (variable && exports && shell_runs(shell) != TRUTH_NO) variable->exported = true;
}

void command_read(Shell *shell, WordList *words, Prefixes *prefixes, Prefixes *sets) {
    static const char *const setters[] = {"export",   "declare", "local",
                                          "readonly", "typeset", NULL};
    static const char *const owns[] = {"declare", "local", "typeset", NULL};
    static const char *const alone[] = {"if", "then", "elif", "else", "while", "until", "do",
                                        "{",  "}",    "fi",   "done", "esac",  NULL};
    for (;;) {
        if (words->num_words == 1 && word_is(words->words[0], alone)) return;
        gap_skip(shell, false);
        const bool first = words->num_words == is_negated(words);
        bool brackets = between_brackets(shell, words);
        if (brackets && sign_read(shell, words)) continue;
        if (!brackets && redirection_is(shell->at)) {
            redirection_read(shell);
            continue;
        }
        if (word_ends(*shell->at)) return;
        if (*shell->at == '#') {
            comment_skip(shell);
            return;
        }
        const char *begin = shell->at;
        const char *setter = !first ? words->words[is_negated(words)] : "";
        bool start = first || word_is(setter, setters), own = word_is(setter, owns);
        if (start && assignment_is(shell)) prefix_note(shell, first ? prefixes : sets);
        if (start && assignment_read(shell, own)) {
            if (!first)
                assignment_export(shell, words, text_part(shell, begin, name_length(begin)));
            continue;
        }
        if (first) prefixes_swap(shell, prefixes, true);
        operand_read(shell, words, brackets);
    }
}
