// Redirections, here documents, and the files that they become.
#include "import/shell_state.h"

#include <string.h>

// "cat <<WORD >FILE", "tee FILE <<WORD": the file that the lines become; NULL: none.
static const char *document_name(const Shell *shell, const WordList *words) {
    if (words->num_words == 2 && strcmp(words->words[0], "tee") == 0) return words->words[1];
    if (words->num_words != 1 || strcmp(words->words[0], "cat") != 0) return NULL;
    return shell->output;
}

static const Document *document_find(const Shell *shell, const char *name) {
    for (int i = shell->out.num_documents - 1; i >= 0; i--)
        if (strcmp(shell->out.documents[i].name, name) == 0) return &shell->out.documents[i];
    return NULL;
}

static void document_keep(Shell *shell, const char *name, const char *text) {
    ShellCommand *out = &shell->out;
    const Document *old = shell->appends ? document_find(shell, name) : NULL;
    if (old) text = arena_printf(shell->arena, "%s%s", old->text, text);
    if (out->num_documents == MAX_DOCUMENTS)
        shell_overflow(shell);
    else
        out->documents[out->num_documents++] = (Document){name, text};
}

// Whether a document may reach a shell by another command than it stands behind: a function, a
// block or a pipe.
static bool feeds_others(const Shell *shell, const WordList *words) {
    const bool passes = words->num_words > 0 && strcmp(words->words[0], "cat") == 0;
    return words->num_words == 0 || function_is(shell, words->words[0]) ||
           (passes && *shell->at == '|' && shell->at[1] != '|');
}

void here_document_take(Shell *shell, const WordList *words) {
    static const char *const readers[] = {"bash", "sh",   "zsh",  "sbatch",
                                          "ssh",  "srun", "sudo", NULL};
    const char *text = shell->here;
    shell->here = NULL;
    if (!text || shell_runs(shell) == TRUTH_NO) return;
    const char *name = document_name(shell, words);
    if (words->num_words > 0 && word_is(words->words[0], readers))
        subscript_run(shell, text, shell->here_line, shell_runs(shell));
    else if (name)
        document_keep(shell, name, shell_runs(shell) == TRUTH_YES ? text : "$");
    else if (feeds_others(shell, words) && subscript_is(shell, text))
        shell_overflow(shell);
}

void document_run(Shell *shell, const WordList *words, int line, Truth runs) {
    static const char *const readers[] = {"bash", "sh", "zsh", "sbatch", "srun", NULL};
    if (words->num_words == 0) return;
    const int first = word_is(words->words[0], readers) ? 1 : 0;
    for (int i = first; i < (first ? words->num_words : 1); i++) {
        const char *name = words->words[i];
        if (strncmp(name, "./", 2) == 0 && !document_find(shell, name)) name += 2;
        const Document *document = document_find(shell, name);
        if (document) subscript_run(shell, document->text, line, runs);
    }
}

// The newline at the end of a command's line, or the end of the text.
static const char *line_end(const char *at) {
    for (char before = ' '; *at && *at != '\n'; before = at[-1]) {
        if (*at == '\\' && at[1]) {
            at += 2;
        } else if (*at == '\'') {
            at += strcspn(at + 1, "'") + 1;
            at += *at != '\0';
        } else if (*at == '"') {
            for (at++; *at && *at != '"'; at++) at += *at == '\\' && at[1];
            at += *at != '\0';
        } else if (*at == '$' && at[1] == '(') {
            at = bracket_end(at + 1, '(', ')');
        } else if (*at == '#' && strchr(" \t;&|()", before)) {
            at += strcspn(at, "\n");
        } else {
            at++;
        }
    }
    return at;
}

// Whether the line goes on behind its newline: where the document expands.
static bool line_goes_on(const char *line, size_t length) {
    size_t num = 0;
    while (num < length && line[length - 1 - num] == '\\') num++;
    return num % 2 == 1;
}

typedef struct {
    const char *word; // that ends it
    bool expands;
    bool tabs; // of "<<-": lines are without those at their begin
} Here;

// The lines of a document up to the one that is the word.
//   returns  the place behind that one
static const char *body_read(Shell *shell, const char *at, const Here *here, Piece *body) {
    bool joined = false;
    while (*at) {
        const char *line = here->tabs && !joined ? at + strspn(at, "\t") : at;
        const size_t length = strcspn(line, "\n");
        const char *next = line + length + (line[length] == '\n');
        const bool ends = length == strlen(here->word) && strncmp(line, here->word, length) == 0;
        if (ends && !joined) return next;
        piece_add(shell, body, line, (size_t)(next - line));
        joined = here->expands && line_goes_on(line, length);
        at = next;
    }
    return at;
}

static size_t lines_between(const char *begin, const char *end) {
    size_t num = 0;
    for (; begin < end; begin++) num += *begin == '\n';
    return num;
}

// At the end of "<<WORD". What is read then is the rest of the line and what stands behind the
// document, with as many lines between as it has: others may begin on the same line.
static void here_document_read(Shell *shell, const Here *here) {
    const char *end = line_end(shell->at);
    const size_t before = end == shell->here_end ? shell->here_num_lines : 0;
    const char *begin = *end ? end + 1 + before : end;
    Piece body = {0};
    const char *behind = body_read(shell, begin, here, &body);
    const char *text = body.size > 0 ? body.text : "";
    shell->here_line = shell->line + 1;
    shell->here = here->expands ? here_text(shell, text) : text;
    const size_t rest = (size_t)(end - shell->at);
    const size_t lines = before + lines_between(begin, behind);
    char *joined = arena_alloc(shell->arena, rest + 1 + lines + strlen(behind) + 1);
    memcpy(joined, shell->at, rest);
    memset(joined + rest, '\n', 1 + lines);
    strcpy(joined + rest + 1 + lines, behind);
    shell->at = joined;
    shell->here_end = joined + rest;
    shell->here_num_lines = lines;
    shell_is_full(shell);
}

void redirection_read(Shell *shell) {
    shell->at += strspn(shell->at, "0123456789"); // of the file that it is of
    const bool here = strncmp(shell->at, "<<", 2) == 0 && shell->at[2] != '<';
    const bool tabs = here && shell->at[2] == '-';
    const bool writes = *shell->at == '>' && shell->at[1] != '&';
    const bool appends = writes && shell->at[1] == '>';
    WordList words = {0};
    shell->at += strspn(shell->at, "<>&-");
    gap_skip(shell, false);
    if (*shell->at == '(') {
        shell->at = bracket_end(shell->at, '(', ')');
        return;
    }
    const char *begin = shell->at;
    word_read(shell, &words);
    const bool quoted = strcspn(begin, "'\"\\") < (size_t)(shell->at - begin);
    if (writes && words.num_words == 1) {
        shell->output = words.words[0];
        shell->appends = appends;
    }
    if (!here || words.num_words != 1) return;
    here_document_read(shell, &(Here){words.words[0], .expands = !quoted, .tabs = tabs});
}
