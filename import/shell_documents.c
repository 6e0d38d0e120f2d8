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

static void here_document_take(Shell *shell, const WordList *words, const char *text, bool expands,
                               int line) {
    static const char *const readers[] = {"bash", "sh",   "zsh",  "sbatch",
                                          "ssh",  "srun", "sudo", NULL};
    const char *name = document_name(shell, words);
    const bool reads = words->num_words > 0 && word_is(words->words[0], readers);
    if (!name && !reads) return;
    if (expands) text = here_text(shell, text);
    if (reads)
        subscript_run(shell, text, line, shell_runs(shell));
    else if (shell_runs(shell) != TRUTH_NO)
        document_keep(shell, name, shell_runs(shell) == TRUTH_YES ? text : "$");
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

// The lines up to the one that is the word, for the command of these words. Of the rest of its own
// line, only the file that it writes is read.
static void here_document_read(Shell *shell, const char *word, bool expands,
                               const WordList *words) {
    const int line = shell->line + 1;
    while (*shell->at && !strchr("\n>#", *shell->at)) shell->at++;
    if (*shell->at == '>') redirection_read(shell, words);
    comment_skip(shell);
    const char *body = *shell->at ? shell->at + 1 : shell->at, *end = body;
    while (*shell->at) {
        shell->at++;
        shell->line++;
        const size_t length = strcspn(shell->at, "\n"), tabs = strspn(shell->at, "\t");
        const bool last = tabs <= length && length - tabs == strlen(word) &&
                          strncmp(shell->at + tabs, word, length - tabs) == 0;
        if (last) end = shell->at;
        shell->at += length;
        if (last) break;
        end = shell->at;
    }
    const char *text = text_part(shell, body, (size_t)(end - body));
    here_document_take(shell, words, text, expands, line);
}

void redirection_read(Shell *shell, const WordList *command) {
    shell->at += strspn(shell->at, "0123456789"); // of the file that it is of
    const bool here = strncmp(shell->at, "<<", 2) == 0 && shell->at[2] != '<';
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
    if (here && words.num_words == 1) here_document_read(shell, words.words[0], !quoted, command);
}
