// The command that is looked for, scripts inside commands, and what a queue sets.
#include "import/shell_state.h"

#include <stdlib.h>
#include <string.h>

// Whether the word has the program's name in it; "pretrained" is another word.
static bool names_program(const Shell *shell, const char *word) {
    const size_t length = strlen(shell->name);
    for (const char *at = strstr(word, shell->name); at; at = strstr(at + 1, shell->name))
        if (strncmp(at + length, "ed", 2) != 0) return strstr(at, ".py") != NULL;
    return false;
}

bool subscript_is(const Shell *shell, const char *text) {
    return names_program(shell, text);
}

// Commands that name a program without running it.
static bool only_names(const char *word) {
    static const char *const names[] = {
        "echo",  "printf", "ls",   "cat",  "cp",     "mv",    "rm",      "ln",    "sed",
        "grep",  "awk",    "find", "tee",  "head",   "tail",  "wc",      "pkill", "pgrep",
        "ps",    "kill",   "trap", "git",  "tar",    "rsync", "killall", "diff",  "which",
        "chmod", "touch",  "stat", "file", "logger", "scp",   NULL};
    return word_is(word, names);
}

// What outside is unknown stands in the text as it was written: it is no variable of the process.
static void unsure_hide(Shell *shell, const char *text) {
    for (int i = 0; i < shell->num_variables; i++) {
        const Variable *variable = &shell->variables[i];
        const size_t length = strlen(variable->name);
        for (const char *at = strchr(text, '$'); at && !variable->absent;
             at = strchr(at + 1, '$')) {
            const char *name = at + 1 + (at[1] == '{');
            if (strncmp(name, variable->name, length) == 0 && name_length(name) == length)
                variable_hide(shell, variable->name);
        }
    }
}

void subscript_run(Shell *shell, const char *text, int line, Truth runs) {
    ShellCommand *out = &shell->out;
    if (runs == TRUTH_NO || !names_program(shell, text)) return;
    if (runs == TRUTH_UNKNOWN && out->hidden == 0) out->hidden = line;
    if (runs != TRUTH_YES) return;
    const Scope scope = scope_keep(shell, NULL);
    const int num_functions = shell->num_functions;
    const bool exports_all = shell->exports_all;
    for (int i = 0; i < shell->num_variables; i++) {
        Variable *variable = &shell->variables[i];
        variable->absent |= !variable->exported || variable->array;
        variable->absent |= strcmp(variable->name, "IFS") == 0; // each bash begins with its own
    }
    if (shell->unsure) unsure_hide(shell, text);
    shell->args = NULL;
    shell->num_functions = 0;
    shell->exports_all = false;
    script_read(shell, text, line);
    shell->num_functions = num_functions;
    shell->exports_all = exports_all;
    scope_restore(shell, &scope);
}

bool command_take(Shell *shell, const WordList *words, int line, Truth runs) {
    ShellCommand *out = &shell->out;
    const char **before = out->words.words;
    if (words->num_words > 0 && only_names(words->words[0])) return false;
    for (int i = 0; i < words->num_words; i++) {
        const char *word = words->words[i];
        if (!names_program(shell, word)) continue;
        const bool is_program = strcmp(word + strlen(word) - 3, ".py") == 0;
        if (is_program && !strpbrk(word, " \n")) {
            const Truth once = shell_runs_once(shell);
            if (once == TRUTH_UNKNOWN && out->hidden == 0) out->hidden = line;
            if (once != TRUTH_YES) continue;
            out->words = *words;
            out->program = i;
            out->found = true;
            shell->taken_line = line;
            loops_take(shell);
            return true;
        }
        if (strpbrk(word, " \n")) subscript_run(shell, word, line, runs);
    }
    document_run(shell, words, line, runs);
    if (runs == TRUTH_YES && !out->found && words->num_words > 0 &&
        strncmp(words->words[0], "--", 2) == 0) {
        out->words = *words;
        out->program = -1;
        out->found = true;
    }
    return out->words.words != before;
}

bool eval_follow(Shell *shell, const WordList *words, int line, Truth runs) {
    if (strcmp(words->words[0], "eval") != 0) return false;
    const char *text = words_join(shell->arena, words->words + 1, words->num_words - 1);
    if (runs == TRUTH_NO) return true;
    const Truth chain = shell->chain, before = shell->before;
    shell_block_open(shell, BLOCK_GROUP, runs, line);
    script_read(shell, text, line);
    shell_block_close(shell);
    shell->chain = chain;
    shell->before = before;
    return true;
}

void source_note(Shell *shell, const WordList *words, int line) {
    ShellCommand *out = &shell->out;
    const bool sources =
        strcmp(words->words[0], "source") == 0 || strcmp(words->words[0], ".") == 0;
    if (!sources || words->num_words < 2 || shell_runs(shell) == TRUTH_NO) return;
    if (out->num_sourced++ == 0) out->sourced = (Undecided){words->words[1], line};
}

// A variable that is set unless it is given.
static void default_set(Shell *shell, const char *name, const char *value) {
    if (variable_find(shell, name)) return;
    Variable *variable = variable_make(shell, name);
    if (!variable) return;
    variable->exported = true;
    words_add(shell->arena, &variable->words, value);
}

// "--nodes=4", "--nodes 4", "-N 4", "-N4" in a line; NULL where there is none, or it is no number.
static const char *option_value(Shell *shell, const char *line, const char *name, char letter) {
    for (const char *at = line; *at && *at != '\n';) {
        at += strspn(at, " \t");
        const size_t length = strlen(name);
        const bool is_long = strncmp(at, name, length) == 0 && strchr("= \t", at[length]);
        const bool is_short = letter && at[0] == '-' && at[1] == letter;
        if (is_long || is_short) {
            at += is_long ? length : 2;
            at += strspn(at, "= \t");
            const size_t digits = strspn(at, "0123456789");
            const bool ends = at[digits] == '\0' || strchr(" \t\r\n", at[digits]) != NULL;
            return digits > 0 && digits < 8 && ends ? text_part(shell, at, digits) : NULL;
        }
        at += strcspn(at, " \t\n");
    }
    return NULL;
}

void queue_variables(Shell *shell, const char *text) {
    static const struct {
        const char *option;
        char letter;
        const char *names[3];
    } ROWS[] = {{"--nodes", 'N', {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
                {"--ntasks", 'n', {"SLURM_NTASKS"}},
                {"--ntasks-per-node", 0, {"SLURM_NTASKS_PER_NODE"}},
                {"--gpus-per-node", 0, {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}}};
    bool queued = false;
    for (const char *line = text; line && (*line == '#' || *line == '\n' || *line == '\r');) {
        for (size_t i = 0; strncmp(line, "#SBATCH", 7) == 0 && i < sizeof ROWS / sizeof *ROWS;
             i++) {
            const char *value = option_value(shell, line + 7, ROWS[i].option, ROWS[i].letter);
            for (int k = 0; value && k < 3 && ROWS[i].names[k]; k++)
                default_set(shell, ROWS[i].names[k], value);
            if (value && i == 0) shell->out.num_nodes = atoi(value);
        }
        queued |= strncmp(line, "#SBATCH", 7) == 0;
        line = strchr(line, '\n');
        if (line) line++;
    }
    if (queued) { // some number; scripts ask whether there is one
        default_set(shell, "SLURM_JOB_ID", "1");
        default_set(shell, "SLURM_JOBID", "1");
    }
    const char *nodes = variable_value(shell, "SLURM_NNODES");
    const char *tasks = variable_value(shell, "SLURM_NTASKS_PER_NODE");
    if (nodes && tasks)
        default_set(shell, "SLURM_NTASKS",
                    arena_printf(shell->arena, "%lld", atoll(nodes) * atoll(tasks)));
}
