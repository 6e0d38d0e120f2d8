// Which commands run: if, while, case, groups.
#include "import/shell_state.h"

#include <fnmatch.h>
#include <string.h>

static Truth runs_of(const Shell *shell, bool once) {
    Truth runs = shell->num_deeper > 0 ? TRUTH_UNKNOWN : shell->chain;
    runs = truth_and(runs, truth_not(shell->exited));
    runs = truth_and(runs, truth_not(shell->returned));
    for (int i = 0; i < shell->num_blocks; i++) {
        const Block *block = &shell->blocks[i];
        Truth branch = block->in_condition ? truth_not(block->taken) : block->runs;
        if (once && block->kind == BLOCK_LOOP && !block->in_condition) branch = block->once;
        runs = truth_and(runs, truth_and(block->around, branch));
    }
    return runs;
}

Truth shell_runs(const Shell *shell) {
    return runs_of(shell, false);
}

Truth shell_runs_once(const Shell *shell) {
    return runs_of(shell, true);
}

int undecided_line(const Shell *shell) {
    for (int i = shell->num_blocks - 1; i >= 0; i--) {
        const Block *block = &shell->blocks[i];
        if (block->runs == TRUTH_UNKNOWN || block->around == TRUTH_UNKNOWN) return block->line;
    }
    bool ended = shell->exited == TRUTH_UNKNOWN || shell->returned == TRUTH_UNKNOWN;
    return ended && shell->chain != TRUTH_UNKNOWN ? shell->end_line : shell->line;
}

void shell_block_open(Shell *shell, BlockKind kind, Truth runs, int line) {
    shell->filled = false;
    if (shell->num_blocks == MAX_BLOCKS) {
        shell_overflow(shell);
        shell->num_deeper++;
        return;
    }
    shell->blocks[shell->num_blocks++] = (Block){.kind = kind,
                                                 .line = line,
                                                 .condition = TRUTH_YES,
                                                 .taken = TRUTH_NO,
                                                 .runs = runs,
                                                 .around = shell->chain,
                                                 .before = shell->before,
                                                 .exited = shell->exited,
                                                 .returned = shell->returned,
                                                 .piped = shell->piped};
    Variable **kept = &shell->kept[shell->num_blocks - 1];
    if (!*kept) *kept = ARENA_ARRAY(shell->arena, MAX_VARIABLES + 1, Variable);
    shell->blocks[shell->num_blocks - 1].scope = scope_keep(shell, *kept);
    shell->chain = TRUTH_YES;
    shell->piped = false;
}

void syntax_note(Shell *shell, const char *word, int line) {
    if (!shell->out.syntax.name) shell->out.syntax = (Undecided){word, line};
}

// Behind a redirection's operator: its word.
static const char *target_end(const char *at) {
    at += strspn(at, " \t");
    while (!word_ends(*at) && *at != '<' && *at != '>') {
        const char quote = *at;
        if (quote == '\\' && at[1]) {
            at += 2;
        } else if (quote == '\'' || quote == '"') {
            for (at++; *at && *at != quote; at++)
                if (*at == '\\' && quote == '"' && at[1]) at++;
            at += *at != '\0';
        } else if (at[0] == '$' && (at[1] == '(' || at[1] == '{')) {
            at = bracket_end(at + 1, at[1], at[1] == '(' ? ')' : '}');
        } else {
            at++;
        }
    }
    return at;
}

bool runs_apart(const Shell *shell, const char *text) {
    if (shell->piped) return true;
    for (const char *at = text;; at = target_end(at)) {
        at += strspn(at, " \t");
        const char *sign = at + strspn(at, "0123456789");
        if (at[0] == '&' && at[1] == '>') sign = at + 1;
        if (*sign != '<' && *sign != '>')
            return (at[0] == '|' && at[1] != '|') || (at[0] == '&' && at[1] != '&');
        at = sign + strspn(sign, "<>&|-");
        at += strspn(at, " \t");
        if (*at == '(') at = bracket_end(at, '(', ')');
    }
}

void shell_block_close(Shell *shell) {
    shell->chain = TRUTH_YES;
    shell->filled = true;
    shell->said = TRUTH_UNKNOWN;
    if (shell->num_deeper > 0) {
        shell->num_deeper--;
    } else if (shell->num_blocks > 0) {
        const Block *block = &shell->blocks[--shell->num_blocks];
        if (block->kind == BLOCK_LOOP) loop_close(shell, block);
        shell->chain = block->around;
        shell->before = block->before;
        const bool apart = block->kind == BLOCK_SUBSHELL || block->piped;
        shell->piped = false;
        if (apart || runs_apart(shell, shell->at)) {
            scope_restore(shell, &block->scope);
            shell->exited = block->exited;
            shell->returned = block->returned;
        }
        if (block_asks(shell)) block_answer(shell, TRUTH_UNKNOWN);
    }
}

bool end_follow(Shell *shell, const char *word) {
    bool returns = strcmp(word, "return") == 0;
    if (!returns && strcmp(word, "exit") != 0) return false;
    returns &= shell->in_function > 0; // of a script that another reads, it is its exit
    Truth *ended = returns ? &shell->returned : &shell->exited, runs = shell_runs(shell);
    // The command that is looked for stands behind: it runs where the script does not end here.
    if (runs == TRUTH_UNKNOWN && !returns && shell->out.hidden == 0) return true;
    if (runs == TRUTH_UNKNOWN) shell->end_line = undecided_line(shell);
    if (runs == TRUTH_YES && !returns && shell->out.exit_line == 0)
        shell->out.exit_line = shell->line;
    if (runs != TRUTH_NO) *ended = runs;
    return true;
}

// A block that nothing decides counts once, where all around it runs.
static void skipped_count(Shell *shell, Block *block) {
    Truth around = TRUTH_YES;
    for (int i = 0; i < shell->num_blocks - 1; i++)
        around = truth_and(around, truth_and(shell->blocks[i].around, shell->blocks[i].runs));
    if (block->runs != TRUTH_UNKNOWN || block->taken == TRUTH_UNKNOWN || around != TRUTH_YES)
        return;
    if (shell->out.num_skipped++ == 0) shell->out.first_skipped = block->line;
}

// At "then" or "do": the condition is read, its branch begins.
void branch_begin(Shell *shell, Block *block) {
    Truth value = block->negated ? truth_not(block->condition) : block->condition;
    block->in_condition = false;
    block->runs = truth_and(truth_not(block->taken), value);
    block->once = block->turn.once = block->runs;
    // A loop that runs at all runs an unknown number of times.
    if (block->kind == BLOCK_LOOP && block->runs != TRUTH_NO) block->runs = TRUTH_UNKNOWN;
    skipped_count(shell, block);
    if (block->runs == TRUTH_YES) block->taken = TRUTH_YES;
    if (block->runs == TRUTH_UNKNOWN) block->taken = TRUTH_UNKNOWN;
}

bool block_asks(const Shell *shell) {
    return shell->num_deeper == 0 && shell->num_blocks > 0 &&
           shell->blocks[shell->num_blocks - 1].in_condition &&
           shell->blocks[shell->num_blocks - 1].kind != BLOCK_CASE;
}

void block_answer(Shell *shell, Truth value) {
    Block *block = &shell->blocks[shell->num_blocks - 1];
    bool other = shell->chain == TRUTH_NO; // behind "a &&" where a does not hold: not asked
    block->condition = other ? block->condition : value;
    if (shell->chain == TRUTH_UNKNOWN) block->condition = TRUTH_UNKNOWN;
}

// A pattern of the innermost case, and whether the subject matches it.
static void pattern_add(Block *block, const char *pattern) {
    Truth value = strpbrk(pattern, "$`")                     ? TRUTH_UNKNOWN
                  : fnmatch(pattern, block->subject, 0) == 0 ? TRUTH_YES
                                                             : TRUTH_NO;
    if (strpbrk(block->subject, "$`") && strcmp(pattern, "*") != 0) value = TRUTH_UNKNOWN;
    block->condition = truth_not(truth_and(truth_not(block->condition), truth_not(value))); // or
}

static void patterns_add(Shell *shell, Block *block, const WordList *words, int first) {
    for (int i = first; i < words->num_words; i++) pattern_add(block, words->words[i]);
    if (*shell->at != ')') return;
    block->in_condition = false;
    branch_begin(shell, block);
}

static void case_open(Shell *shell, const WordList *words, int line) {
    shell_block_open(shell, BLOCK_CASE, TRUTH_NO, line);
    if (shell->num_deeper > 0) return;
    Block *block = &shell->blocks[shell->num_blocks - 1];
    block->subject = words->num_words > 1 ? words->words[1] : "$";
    block->in_condition = true;
    block->condition = TRUTH_NO;
    if (words->num_words <= 3) return;
    patterns_add(shell, block, words, 3); // on the line of "in"
    if (*shell->at == ')' || *shell->at == '|') shell->at++;
}

// Whether a word that goes on with a block, or ends it, has one there.
static bool has_place(const Shell *shell, const char *word) {
    static const struct {
        const char *word;
        BlockKind kind;
        int in_condition; // -1: either
    } ROWS[] = {{"then", BLOCK_IF, 1},    {"elif", BLOCK_IF, 0},  {"else", BLOCK_IF, 0},
                {"fi", BLOCK_IF, 0},      {"do", BLOCK_LOOP, -1}, {"done", BLOCK_LOOP, 0},
                {"esac", BLOCK_CASE, -1}, {"}", BLOCK_GROUP, -1}};
    if (shell->num_deeper > 0) return true;
    if (shell->num_blocks <= shell->floor) return false;
    const Block *block = &shell->blocks[shell->num_blocks - 1];
    if (block->last && word[0] == 'e' && word[1] == 'l') return false; // else, elif
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (strcmp(word, ROWS[i].word) == 0)
            return block->kind == ROWS[i].kind &&
                   (ROWS[i].in_condition < 0 || block->in_condition == ROWS[i].in_condition);
    return true;
}

static void if_open(Shell *shell, int line) {
    shell_block_open(shell, BLOCK_IF, TRUTH_NO, line);
    if (shell->num_deeper == 0) shell->blocks[shell->num_blocks - 1].in_condition = true;
}

// "then", "do", "elif" and "else" of the innermost block.
static void branch_follow(Shell *shell, const char *word, int line) {
    shell->filled = false;
    if (shell->num_deeper > 0 || shell->num_blocks == 0) return;
    Block *block = &shell->blocks[shell->num_blocks - 1];
    if (strcmp(word, "then") == 0 || strcmp(word, "do") == 0) {
        if (block->in_condition && block->kind != BLOCK_CASE)
            branch_begin(shell, block);
        else if (block->kind == BLOCK_LOOP)
            loop_do(block);
        return;
    }
    if (block->kind != BLOCK_IF) return;
    bool decided = block->taken != TRUTH_UNKNOWN;
    if (decided) block->line = line;
    block->condition = TRUTH_YES;
    block->in_condition = strcmp(word, "elif") == 0;
    block->last = !block->in_condition;
    if (!block->in_condition) branch_begin(shell, block);
}

static const char *const branches[] = {"then", "do", "elif", "else", NULL};
static const char *const closes[] = {"fi", "done", "esac", "}", NULL};

void block_end_check(Shell *shell, const char *word, int line) {
    if (!word && *shell->at == '(') word = "(";
    if (word && !word_is(word, branches) && !word_is(word, closes)) syntax_note(shell, word, line);
}

bool blocks_follow(Shell *shell, const WordList *words, int line) {
    static const char *const loops[] = {"for", "while", "until", "select", NULL};
    if (words->num_words == 0) return true;
    const char *word = words->words[0];
    if ((word_is(word, branches) || word_is(word, closes)) && !has_place(shell, word)) {
        syntax_note(shell, word, line);
        return true;
    }
    // Lists of commands are not empty, but for those of case.
    const bool ends = word_is(word, branches) || word_is(word, closes);
    if (ends && !shell->filled && strcmp(word, "esac") != 0) syntax_note(shell, word, line);
    if (strcmp(word, "if") == 0)
        if_open(shell, line);
    else if (word_is(word, loops))
        loop_open(shell, words, line);
    else if (strcmp(word, "case") == 0)
        case_open(shell, words, line);
    else if (strcmp(word, "{") == 0)
        shell_block_open(shell, BLOCK_GROUP, TRUTH_YES, line);
    else if (word_is(word, branches))
        branch_follow(shell, word, line);
    else if (word_is(word, closes)) {
        if (strcmp(word, "done") == 0 && loop_again(shell)) return true;
        shell_block_close(shell);
        shell->closed = true;
    } else
        return false;
    if (!word_is(word, closes)) shell->chain = TRUTH_YES;
    return true;
}

bool case_follow(Shell *shell, const WordList *words) {
    Block *block = shell->num_blocks > 0 ? &shell->blocks[shell->num_blocks - 1] : NULL;
    if (!block || block->kind != BLOCK_CASE || !block->in_condition || shell->num_deeper > 0)
        return false;
    if (words->num_words > 0 && strcmp(words->words[0], "esac") == 0) return false;
    patterns_add(shell, block, words, 0);
    return true;
}

void case_next(Shell *shell) {
    Block *block = shell->num_blocks > 0 ? &shell->blocks[shell->num_blocks - 1] : NULL;
    if (!block || block->kind != BLOCK_CASE || shell->num_deeper > 0) return;
    if (block->in_condition || shell->at[0] != ';' || shell->at[1] != ';') return;
    block->in_condition = true;
    block->condition = TRUTH_NO;
    shell->at++;
}
