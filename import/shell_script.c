// Commands: assignments, functions, here documents.
#include "import/shell_state.h"

#include <string.h>

static WordList *variable_set(Shell *shell, const char *name, bool more) {
    Variable *variable = variable_find(shell, name);
    if (!variable && shell->num_variables < MAX_VARIABLES) {
        variable = &shell->variables[shell->num_variables++];
        variable->name = name;
        variable->words = (WordList){0};
    }
    if (!variable) return NULL;
    if (!more) variable->words = (WordList){0};
    return &variable->words;
}

// That a block which may or may not run sets the variable.
static void variable_hide(Shell *shell, const char *name) {
    ShellCommand *out = &shell->out;
    WordList *list = variable_set(shell, name, false);
    if (list) words_add(shell->arena, list, arena_printf(shell->arena, "$%s", name));
    if (out->num_undecided < MAX_UNDECIDED)
        out->undecided[out->num_undecided++] = (Undecided){name, undecided_line(shell)};
}

// Notes the flags that a block which may or may not run puts into a variable. True where there are
// some.
static bool flags_maybe(Shell *shell, const WordList *value) {
    ShellCommand *out = &shell->out;
    bool found = false;
    for (int i = 0; i < value->num_words; i++) {
        char *words = arena_strdup(shell->arena, value->words[i]), *rest = NULL;
        for (char *word = strtok_r(words, " \t\n", &rest); word;
             word = strtok_r(NULL, " \t\n", &rest)) {
            if (strncmp(word, "--", 2) != 0) continue;
            found = true;
            word[strcspn(word, "=")] = '\0';
            if (out->num_maybe < MAX_MAYBE)
                out->maybe[out->num_maybe++] = (Undecided){word, undecided_line(shell)};
        }
    }
    return found;
}

static void comment_skip(Shell *shell) {
    while (*shell->at && *shell->at != '\n') shell->at++;
}

// Spaces and lines that go on; with_lines: also ends of lines and comments.
static void gap_skip(Shell *shell, bool with_lines) {
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

// NAME=VALUE, NAME=(WORDS), NAME+=...: true where one stands at shell->at, and is read.
static bool assignment_read(Shell *shell) {
    size_t length = name_length(shell->at);
    const char *rest = shell->at + length;
    bool more = rest[0] == '+' && rest[1] == '=';
    if (length == 0 || (rest[0] != '=' && !more)) return false;
    const char *name = text_part(shell, shell->at, length);
    WordList parts = {0}, value = {0};
    shell->at = rest + 1 + more;
    if (*shell->at == '(') {
        shell->at++;
        for (gap_skip(shell, true); *shell->at && *shell->at != ')'; gap_skip(shell, true)) {
            const char *before = shell->at;
            word_read(shell, &value);
            if (shell->at == before) shell->at++;
        }
        if (*shell->at) shell->at++;
    } else {
        const char *text = "";
        word_read(shell, &parts);
        for (int i = 0; i < parts.num_words; i++)
            text = arena_printf(shell->arena, "%s%s%s", text, i ? " " : "", parts.words[i]);
        const Variable *old = more ? variable_find(shell, name) : NULL;
        if (old && old->words.num_words == 1) {
            text = arena_printf(shell->arena, "%s%s", old->words.words[0], text);
            more = false;
        }
        words_add(shell->arena, &value, text);
    }
    Truth runs = shell_runs(shell);
    if (runs == TRUTH_UNKNOWN && !flags_maybe(shell, &value)) variable_hide(shell, name);
    if (runs != TRUTH_YES) return true;
    WordList *list = variable_set(shell, name, more);
    for (int i = 0; list && i < value.num_words; i++) words_add(shell->arena, list, value.words[i]);
    return true;
}

static bool word_is(const char *word, const char *const *names) {
    for (; *names; names++)
        if (strcmp(word, *names) == 0) return true;
    return false;
}

static void script_read(Shell *shell, const char *text, int line);

// Whether it is the command that was looked for.
static void command_take(Shell *shell, const WordList *words, int line, Truth runs) {
    ShellCommand *out = &shell->out;
    for (int i = 0; i < words->num_words; i++) {
        const char *word = words->words[i], *py = strstr(word, ".py");
        if (!py || !strstr(word, shell->name)) continue;
        if (py[3] == '\0' && runs == TRUTH_UNKNOWN && out->hidden == 0) out->hidden = line;
        if (py[3] == '\0' && runs == TRUTH_YES) {
            out->words = *words;
            out->program = i;
            out->found = true;
            return;
        }
        if (strpbrk(word, " \n") && runs == TRUTH_YES && shell->nested < MAX_NESTED)
            script_read(shell, word, line);
    }
    if (runs == TRUTH_YES && !out->found && words->num_words > 0 &&
        strncmp(words->words[0], "--", 2) == 0) {
        out->words = *words;
        out->program = -1;
        out->found = true;
    }
}

// Lines of a here document, up to its word.
static void here_document_skip(Shell *shell, const char *word) {
    comment_skip(shell);
    while (*shell->at) {
        shell->at++;
        shell->line++;
        size_t length = strcspn(shell->at, "\n"), tabs = strspn(shell->at, "\t");
        bool last = tabs <= length && length - tabs == strlen(word) &&
                    strncmp(shell->at + tabs, word, length - tabs) == 0;
        shell->at += length;
        if (last) return;
    }
}

// A redirection at shell->at: its operator and its word.
static void redirection_skip(Shell *shell) {
    bool here = strncmp(shell->at, "<<", 2) == 0 && shell->at[2] != '<';
    WordList words = {0};
    shell->at += strspn(shell->at, "<>&-");
    gap_skip(shell, false);
    if (*shell->at == '(') {
        shell->at = bracket_end(shell->at, '(', ')');
        return;
    }
    word_read(shell, &words);
    if (here && words.num_words == 1) here_document_skip(shell, words.words[0]);
}

// The words of a command up to its end.
static void command_read(Shell *shell, WordList *words) {
    static const char *const prefixes[] = {"export", "declare", "local", "readonly", NULL};
    static const char *const alone[] = {"if", "then", "elif", "else", "while", "until",
                                        "do", "{",    "}",    "fi",   "done",  NULL};
    for (;;) {
        if (words->num_words == 1 && word_is(words->words[0], alone)) return;
        gap_skip(shell, false);
        if (*shell->at == '<' || *shell->at == '>') {
            redirection_skip(shell);
            continue;
        }
        if (word_ends(*shell->at)) return;
        if (*shell->at == '#') {
            comment_skip(shell);
            return;
        }
        bool start = words->num_words == 0 || word_is(words->words[0], prefixes);
        if (start && assignment_read(shell)) continue;
        word_read(shell, words);
        bool redirects = *shell->at == '<' || *shell->at == '>';
        const char *last = words->num_words > 0 ? words->words[words->num_words - 1] : "";
        if (redirects && last[0] && last[strspn(last, "0123456789")] == '\0')
            words->num_words--; // of 2>&1
    }
}

// At "NAME ()" or "function NAME": the function, whose body is not run yet. True where it is one.
static bool function_read(Shell *shell, const WordList *words) {
    bool keyword = words->num_words >= 2 && strcmp(words->words[0], "function") == 0;
    bool braces = shell->at[0] == '(' && shell->at[1] == ')';
    if (!keyword && !(braces && words->num_words == 1)) return false;
    const char *name = words->words[keyword];
    if (braces) shell->at += 2;
    gap_skip(shell, true);
    if (*shell->at == '{') shell->at++;
    if (shell->num_functions < MAX_FUNCTIONS && shell_runs(shell) == TRUTH_YES)
        shell->functions[shell->num_functions++] = (Function){name, shell->at, shell->line};
    const WordList group = {.words = (const char *[]){"{"}, .num_words = 1};
    blocks_follow(shell, &group, shell->line);
    if (shell->num_blocks > 0) shell->blocks[shell->num_blocks - 1].runs = TRUTH_NO;
    return true;
}

static void script_run(Shell *shell, int least_blocks);

static const Function *function_find(const Shell *shell, const char *name) {
    for (int i = shell->num_functions - 1; i >= 0; i--)
        if (strcmp(shell->functions[i].name, name) == 0) return &shell->functions[i];
    return NULL;
}

// The body of a function up to its "}".
static void function_run(Shell *shell, const Function *function) {
    static const char *const brace[] = {"{"};
    const WordList group = {.words = (const char **)brace, .num_words = 1};
    const char *before = shell->at;
    int line = shell->line;
    if (shell->nested >= MAX_NESTED || shell->num_blocks == MAX_BLOCKS) return;
    if (shell->num_calls++ >= MAX_CALLS) return; // functions that call each other
    shell->nested++;
    shell->in_function++;
    shell->at = function->body;
    shell->line = function->line;
    blocks_follow(shell, &group, shell->line);
    int blocks = shell->num_blocks;
    script_run(shell, blocks);
    shell->num_blocks = blocks - 1;
    shell->in_function--;
    shell->nested--;
    shell->at = before;
    shell->line = line;
}

// "((SUM))" at shell->at, as a command. True where it is one.
static bool sum_command(Shell *shell, Truth *value) {
    if (shell->at[0] != '(' || shell->at[1] != '(') return false;
    const char *end = bracket_end(shell->at, '(', ')');
    if (end - shell->at < 5 || end[-1] != ')' || end[-2] != ')') return false;
    *value = sum_test_value(shell, text_part(shell, shell->at + 2, (size_t)(end - shell->at) - 4));
    shell->at = end;
    gap_skip(shell, false);
    return true;
}

// Whether the command is a test; "[[ a" of "[[ a && b ]]" and what follows it are some, too.
static bool test_follow(Shell *shell, const WordList *words) {
    bool test = test_is(words) || shell->brackets;
    if (words->num_words == 0) return test;
    bool closed = strcmp(words->words[words->num_words - 1], "]]") == 0;
    shell->brackets = test && !closed && (shell->brackets || strcmp(words->words[0], "[[") == 0);
    return test;
}

// What the command says to && and ||: tests what they say, others that they succeeded.
static Truth command_run(Shell *shell, const WordList *words, int line) {
    Truth value = TRUTH_YES, runs = shell_runs(shell);
    bool sum = words->num_words == 0 && sum_command(shell, &value);
    if (!sum && words->num_words == 0) return TRUTH_YES;
    bool test = !sum && test_follow(shell, words), asks = block_asks(shell);
    if (test) value = test_value(words);
    if (asks && !sum && !test) value = TRUTH_UNKNOWN;
    const Function *function = sum || asks ? NULL : function_find(shell, words->words[0]);
    if (asks) block_answer(shell, value);
    if (function && runs == TRUTH_YES)
        function_run(shell, function);
    else if (!sum && !test)
        command_take(shell, words, line, runs);
    return value;
}

// Reads the connector behind a command that says value.
static void chain_follow(Shell *shell, Truth value) {
    bool both = strncmp(shell->at, "&&", 2) == 0, either = strncmp(shell->at, "||", 2) == 0;
    if (both || either) {
        // A command that does not run leaves what was said before it.
        Truth said = shell->chain == TRUTH_NO ? truth_not(TRUTH_YES) : value;
        if (shell->chain == TRUTH_UNKNOWN) said = TRUTH_UNKNOWN;
        if (shell->chain == TRUTH_NO && either) said = TRUTH_NO;
        shell->chain = both ? said : truth_not(said);
        shell->at += 2;
        gap_skip(shell, true);
        return;
    }
    shell->chain = TRUTH_YES;
    if (*shell->at == '\n') shell->line++;
    if (*shell->at) shell->at++;
}

static void script_run(Shell *shell, int least_blocks) {
    while (*shell->at && shell->num_blocks >= least_blocks) {
        WordList words = {0};
        Truth value = TRUTH_YES;
        gap_skip(shell, false);
        int line = shell->line;
        command_read(shell, &words);
        bool pattern = case_follow(shell, &words);
        if (!pattern && function_read(shell, &words)) continue;
        bool sum = words.num_words == 0 && *shell->at == '(';
        if (!pattern && (sum || !blocks_follow(shell, &words, line)))
            value = command_run(shell, &words, line);
        if (words.num_words > 0 && shell->num_blocks < least_blocks) return;
        bool keyword = words.num_words == 1 && !word_ends(*shell->at);
        if (!pattern) case_next(shell);
        if (!keyword) chain_follow(shell, value);
    }
}

static void script_read(Shell *shell, const char *text, int line) {
    const char *before = shell->at;
    int line_before = shell->line;
    Truth chain = shell->chain;
    int blocks = shell->num_blocks;
    shell->nested++;
    shell->at = text;
    shell->line = line;
    shell->chain = TRUTH_YES;
    script_run(shell, blocks);
    shell->num_blocks = blocks;
    shell->nested--;
    shell->at = before;
    shell->line = line_before;
    shell->chain = chain;
}

ShellCommand shell_command(const char *text, const char *name, const Setting *settings,
                           int num_settings, Arena *arena) {
    Shell *shell = ARENA_NEW(arena, Shell);
    *shell = (Shell){.arena = arena, .name = name, .chain = TRUTH_YES, .out = {.program = -1}};
    for (int i = 0; i < num_settings; i++) {
        WordList *list = variable_set(shell, settings[i].name, false);
        if (list) words_add(arena, list, settings[i].value);
    }
    script_read(shell, text, 1);
    return shell->out;
}
