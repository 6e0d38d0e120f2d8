// Commands: assignments, blocks, here documents.
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
    if (shell->depth > 0) return true; // of a block that is not followed
    WordList *list = variable_set(shell, name, more);
    for (int i = 0; list && i < value.num_words; i++) words_add(shell->arena, list, value.words[i]);
    return true;
}

static bool word_is(const char *word, const char *const *names) {
    for (; *names; names++)
        if (strcmp(word, *names) == 0) return true;
    return false;
}

static void script_read(Shell *shell, const char *text);

// Whether it is the command that was looked for.
static void command_take(Shell *shell, const WordList *words) {
    ShellCommand *out = &shell->out;
    for (int i = 0; i < words->num_words; i++) {
        const char *word = words->words[i], *py = strstr(word, ".py");
        if (!py || !strstr(word, shell->name)) continue;
        if (py[3] == '\0') {
            out->words = *words;
            out->program = i;
            out->found = true;
            return;
        }
        if (strpbrk(word, " \n") && shell->nested < MAX_NESTED) script_read(shell, word);
    }
    if (!out->found && words->num_words > 0 && strncmp(words->words[0], "--", 2) == 0) {
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
    for (;;) {
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

// Keywords of blocks at the start of a command. True where the words are none but keywords.
static void blocks_follow(Shell *shell, const WordList *words) {
    static const char *const opens[] = {"if", "for", "while", "until", "case", "select", "{", NULL};
    static const char *const closes[] = {"fi", "done", "esac", "}", NULL};
    if (words->num_words == 0) return;
    if (word_is(words->words[0], opens) && shell->depth++ == 0 && shell->out.num_skipped++ == 0)
        shell->out.first_skipped = shell->line;
    if (word_is(words->words[0], closes) && shell->depth > 0) shell->depth--;
}

static void script_read(Shell *shell, const char *text) {
    const char *before = shell->at;
    int line = shell->line;
    shell->nested++;
    shell->at = text;
    while (*shell->at) {
        WordList words = {0};
        int depth = shell->depth;
        command_read(shell, &words);
        blocks_follow(shell, &words);
        if (depth == 0 && shell->depth == 0) command_take(shell, &words);
        if (*shell->at == '\n') shell->line++;
        if (*shell->at) shell->at++;
    }
    shell->nested--;
    shell->at = before;
    shell->line = line;
}

ShellCommand shell_command(const char *text, const char *name, Arena *arena) {
    Shell *shell = ARENA_NEW(arena, Shell);
    *shell = (Shell){.arena = arena, .name = name, .line = 1, .out = {.program = -1}};
    script_read(shell, text);
    return shell->out;
}
