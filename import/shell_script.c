// Commands: functions, subshells, here documents.
#include "import/shell_state.h"

#include <stdlib.h>
#include <string.h>

// The command without "!".
static WordList negation_strip(const WordList *words) {
    WordList rest = *words;
    while (is_negated(&rest)) {
        rest.words++;
        rest.num_words--;
    }
    return rest;
}

// At "NAME ()" or "function NAME": the function, whose body is not run yet. True where it is one.
static bool function_read(Shell *shell, const WordList *words) {
    bool keyword = words->num_words >= 2 && strcmp(words->words[0], "function") == 0;
    bool braces = shell->at[0] == '(' && shell->at[1] == ')';
    if (!keyword && !(braces && words->num_words == 1)) return false;
    const char *name = words->words[keyword];
    if (braces) shell->at += 2;
    gap_skip(shell, true);
    BlockKind kind = *shell->at == '(' ? BLOCK_SUBSHELL : BLOCK_GROUP;
    if (*shell->at == '{' || *shell->at == '(') shell->at++;
    if (shell->num_functions == MAX_FUNCTIONS) shell_overflow(shell);
    if (shell->num_functions < MAX_FUNCTIONS && shell_runs(shell) == TRUTH_YES)
        shell->functions[shell->num_functions++] = (Function){name, shell->at, kind, shell->line};
    shell_block_open(shell, kind, TRUTH_NO, shell->line);
    return true;
}

static void script_run(Shell *shell, int least_blocks);

static const Function *function_find(const Shell *shell, const char *name) {
    for (int i = shell->num_functions - 1; i >= 0; i--)
        if (strcmp(shell->functions[i].name, name) == 0) return &shell->functions[i];
    return NULL;
}

bool function_is(const Shell *shell, const char *name) {
    return function_find(shell, name) != NULL;
}

// The body of a function up to its "}".
static void function_run(Shell *shell, const Function *function, const WordList *words) {
    const char *before = shell->at;
    const int line = shell->line, blocks = shell->num_blocks, locals = shell->num_locals;
    const int floor = shell->floor;
    const WordList args = {.words = words->words + 1, .num_words = words->num_words - 1};
    const WordList *args_before = shell->args;
    const Truth chain = shell->chain, said = shell->before, returned = shell->returned;
    if (shell->nested >= MAX_NESTED || blocks == MAX_BLOCKS || shell->num_calls >= MAX_CALLS) {
        shell_overflow(shell); // also functions that call each other
        return;
    }
    shell->num_calls++;
    shell->nested++;
    shell->in_function++;
    shell->at = function->body;
    shell->line = function->line;
    shell->args = &args;
    shell->floor = blocks;
    shell_block_open(shell, function->kind, TRUTH_YES, shell->line);
    script_run(shell, blocks + 1);
    locals_end(shell, locals);
    shell->args = args_before;
    shell->num_blocks = blocks;
    shell->floor = floor;
    shell->in_function--;
    shell->nested--;
    shell->at = before;
    shell->line = line;
    shell->chain = chain;
    shell->before = said;
    shell->returned = returned;
    shell->closed = false;
}

// "((SUM))" at shell->at, as a command. True where it is one.
static bool sum_command(Shell *shell) { // of a process of its own it changes nothing
    if (shell->at[0] != '(' || shell->at[1] != '(') return false;
    const char *end = bracket_end(shell->at, '(', ')');
    if (end - shell->at < 5 || end[-1] != ')' || end[-2] != ')') return false;
    const char *sum = text_part(shell, shell->at + 2, (size_t)(end - shell->at) - 4);
    shell->said = sum_test_value(shell, sum);
    if (!runs_apart(shell, end)) sum_changes(shell, sum);
    if (block_asks(shell)) block_answer(shell, shell->said);
    shell->at = end;
    return true;
}

// Whether the command is a test; "[[ a" of "[[ a && b ]]" and what follows it are some, too.
static bool test_follow(Shell *shell, const WordList *words) {
    bool test = test_is(words) || shell->brackets;
    bool closed = strcmp(words->words[words->num_words - 1], "]]") == 0;
    shell->brackets = test && !closed && (shell->brackets || strcmp(words->words[0], "[[") == 0);
    if (!shell->brackets) shell->either = false;
    return test;
}

// What a part of "[[ a && b ]]" says: by itself nothing, at its end all of it.
static Truth part_value(Shell *shell, bool inside, Truth value) {
    if (!inside && shell->brackets) {
        shell->outer = shell->chain;
        shell->outer_before = shell->before;
        shell->chain = TRUTH_YES;
    } else if (inside && !shell->brackets) {
        if (shell->chain != TRUTH_YES)
            value = shell->chain == TRUTH_NO ? shell->before : TRUTH_UNKNOWN;
        shell->chain = shell->outer;
        shell->before = shell->outer_before;
    }
    return value;
}

// Commands that a script writes for what they do, not to see whether they can.
static bool succeeds(const char *word) {
    static const char *const names[] = {
        "cd",     "pushd",  "popd",   "mkdir",   "touch", "echo",     "printf",
        "tee",    "export", "local",  "set",     "shopt", "unset",    "ulimit",
        "source", ".",      "module", "declare", "umask", "trap",     "sleep",
        "wait",   "date",   "pwd",    "chmod",   "conda", "readonly", NULL};
    return word_is(word, names);
}

// What the command says to && and ||: tests what they say; others may fail.
static Truth command_run(Shell *shell, const WordList *all, int line) {
    Truth value = TRUTH_UNKNOWN, runs = shell_runs(shell);
    bool inside = shell->brackets, test = test_follow(shell, all), asks = block_asks(shell);
    const WordList plain = negation_strip(all), *words = &plain;
    const Function *function =
        test || words->num_words == 0 ? NULL : function_find(shell, words->words[0]);
    if (test) {
        value = part_value(shell, inside, test_value(all));
    } else if (words->num_words == 0) {
        value = TRUTH_UNKNOWN; // "!" alone
    } else if (function) {
        if (runs != TRUTH_NO) function_run(shell, function, words);
    } else if (eval_follow(shell, words, line, runs)) {
        value = TRUTH_UNKNOWN;
    } else if (!end_follow(shell, words->words[0]) && !turn_follow(shell, words)) {
        command_changes(shell, words);
        source_note(shell, words, line);
        bool done = command_take(shell, words, line, runs) || succeeds(words->words[0]);
        if (done && !asks && !is_negated(all)) value = TRUTH_YES;
    }
    if (asks && !shell->brackets) block_answer(shell, value);
    return value;
}

// Reads && or || behind a command that says `said`.
static void chain_join(Shell *shell, bool both) {
    // A command that does not run leaves what was said before it.
    Truth said = shell->chain == TRUTH_NO ? shell->before : shell->said;
    if (shell->chain == TRUTH_UNKNOWN) said = TRUTH_UNKNOWN;
    // Between brackets && binds closer than ||, which this does not follow.
    if (shell->brackets && both && shell->either) said = TRUTH_UNKNOWN;
    shell->either = shell->brackets && (shell->either || !both);
    shell->chain = both ? said : truth_not(said);
    shell->before = said;
    shell->said = TRUTH_YES;
    shell->at += 2;
    gap_skip(shell, true);
}

// Reads what stands behind a command.
static void chain_follow(Shell *shell) {
    const char *begin = shell->at;
    bool both = strncmp(shell->at, "&&", 2) == 0;
    shell->piped = false;
    const Block *inner = shell->num_blocks > 0 ? &shell->blocks[shell->num_blocks - 1] : NULL;
    if (both || strncmp(shell->at, "||", 2) == 0) {
        chain_join(shell, both);
    } else if (*shell->at == '|') { // the last of a pipeline says what it says
        shell->at += 1 + (shell->at[1] == '&');
        shell->said = TRUTH_YES;
        shell->piped = true;
        gap_skip(shell, true);
    } else if (shell->brackets && *shell->at == '\n') {
        gap_skip(shell, true);
    } else if (*shell->at == ')' && inner && inner->kind == BLOCK_SUBSHELL) {
        if (!shell->filled) syntax_note(shell, ")", shell->line);
        shell->at++;
        shell_block_close(shell);
        shell->closed = true;
        return;
    } else if (*shell->at && strchr(";&\n)", *shell->at)) {
        if (*shell->at == ')' && shell->num_deeper == 0) syntax_note(shell, ")", shell->line);
        shell->line += *shell->at == '\n';
        shell->at++;
        shell->chain = shell->said = TRUTH_YES;
    }
    shell->closed &= shell->at == begin;
}

// At a "(" that begins a command.
static void bracket_follow(Shell *shell) {
    int line = shell->line;
    if (sum_command(shell)) {
        shell->filled = shell->closed = true;
        return;
    }
    shell->at++;
    shell_block_open(shell, BLOCK_SUBSHELL, TRUTH_YES, line);
}

// A command in a process of its own: what it changes, and whether it ends, is not seen outside.
static Truth command_apart(Shell *shell, const WordList *words, int line) {
    const Truth chain = shell->chain, before = shell->before;
    const int num_blocks = shell->num_blocks;
    shell_block_open(shell, BLOCK_SUBSHELL, TRUTH_YES, line);
    const Truth said = command_run(shell, words, line);
    if (shell->num_blocks > num_blocks || shell->num_deeper > 0) shell_block_close(shell);
    shell->chain = chain;
    shell->before = before;
    return said;
}

// One command, or a pattern of case, and what stands behind it. False where a block ends that began
// outside.
static bool step_run(Shell *shell, int least_blocks) {
    WordList words = {0};
    Prefixes prefixes = {0}, sets = {0};
    loop_step(shell);
    shell->output = NULL;
    shell->unsure = false;
    gap_skip(shell, false);
    int line = shell->line;
    const bool redirects = redirection_is(shell->at), closed = shell->closed;
    command_read(shell, &words, &prefixes, &sets);
    const char *first = prefixes.num > 0 ? prefixes.old[0].name : NULL;
    if (words.num_words > 0) first = words.words[0];
    if (closed) block_end_check(shell, first, line);
    shell->closed = closed && !first;
    if (is_negated(&words) && shell->piped) syntax_note(shell, "!", line); // of whole pipes alone
    const bool bare = words.num_words == is_negated(&words);               // assignments alone stay
    const bool apart = runs_apart(shell, shell->at);
    if (!bare) prefixes_swap(shell, &prefixes, false);
    if (bare && (prefixes.num > 0 || redirects)) shell->filled = true;
    const WordList plain = negation_strip(&words);
    here_document_take(shell, &plain);
    if (case_follow(shell, &words)) { // behind it: ( | )
        shell->line += *shell->at == '\n';
        if (*shell->at) shell->at++;
        return true;
    }
    if (function_read(shell, &words)) return true;
    if (words.num_words == 0 && *shell->at == '(')
        bracket_follow(shell);
    else if (words.num_words == 0 && shell->said == TRUTH_UNKNOWN && block_asks(shell))
        block_answer(shell, shell->said); // NAME=$(COMMAND)
    else if (!blocks_follow(shell, &words, line)) {
        shell->said = (apart ? command_apart : command_run)(shell, &words, line);
        shell->filled = true;
    }
    if (!bare || apart) prefixes_swap(shell, &prefixes, true);
    if (apart) prefixes_swap(shell, &sets, true);
    if (words.num_words > 0 && shell->num_blocks < least_blocks) return false;
    gap_skip(shell, false);
    case_next(shell);
    chain_follow(shell);
    return true;
}

static void script_run(Shell *shell, int least_blocks) {
    while (*shell->at && shell->num_blocks >= least_blocks && !shell_is_full(shell))
        if (!step_run(shell, least_blocks)) return;
}

void script_read(Shell *shell, const char *text, int line) {
    const char *at = shell->at;
    const int line_before = shell->line, blocks = shell->num_blocks, floor = shell->floor;
    const bool piped = shell->piped;
    const Truth chain = shell->chain, said = shell->before, exited = shell->exited;
    if (shell->nested == MAX_NESTED) {
        shell_overflow(shell);
        return;
    }
    shell->nested++;
    shell->at = text;
    shell->line = line;
    shell->chain = shell->said = TRUTH_YES;
    shell->floor = blocks;
    shell->piped = shell->closed = false;
    script_run(shell, blocks);
    if (shell->num_blocks > blocks) shell->out.unended = shell->blocks[shell->num_blocks - 1].line;
    shell->num_blocks = blocks;
    shell->floor = floor;
    shell->piped = piped;
    shell->closed = false;
    shell->nested--;
    shell->at = at;
    shell->line = line_before;
    shell->chain = chain;
    shell->before = said;
    shell->exited = exited;
}

// N of the script's argument $N; 0: the name of a variable.
static int argument_number(const char *name) {
    const size_t digits = strspn(name, "0123456789");
    return digits > 0 && digits < 3 && name[digits] == '\0' ? atoi(name) : 0;
}

static void argument_set(Arena *arena, WordList *args, const Setting *setting) {
    const int number = argument_number(setting->name);
    while (args->num_words < number) words_add(arena, args, "");
    args->words[number - 1] = setting->value;
}

ShellCommand shell_command(const char *text, const char *name, const Setting *settings,
                           int num_settings, Arena *arena) {
    Shell *shell = ARENA_NEW(arena, Shell);
    *shell = (Shell){.arena = arena, .name = name, .line = 1, .out = {.program = -1}};
    shell->used_before = arena_used(arena);
    shell->chain = shell->said = TRUTH_YES;
    shell->exited = shell->returned = TRUTH_NO;
    WordList args = {0};
    for (int i = 0; i < num_settings; i++) {
        if (argument_number(settings[i].name) > 0) {
            argument_set(arena, &args, &settings[i]);
            continue;
        }
        Variable *variable = variable_make(shell, settings[i].name);
        if (!variable) continue;
        variable->words = (WordList){0};
        variable->given = variable->exported = true;
        words_add(arena, &variable->words, settings[i].value);
    }
    shell->args = &args;
    queue_variables(shell, text);
    script_read(shell, text, 1);
    for (int i = num_settings - 1; i >= 0; i--) {
        const Variable *variable = variable_find(shell, settings[i].name);
        if (variable && !variable->read) shell->out.unread = settings[i].name;
    }
    return shell->out;
}
