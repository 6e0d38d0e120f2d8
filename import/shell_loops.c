// Loops: what holds in every turn.
//
// A loop that runs at all runs an unknown number of times. Its body is read with what holds before
// the first turn; what it sets is unknown behind that. A later turn may take other branches then,
// and set more: the body is read again until nothing more becomes unknown.
#include "import/shell_state.h"

#include <stdlib.h>
#include <string.h>

// Whether "for NAME in WORDS" has words. A pattern of files may have none; what is not known, too.
static Truth list_has(const WordList *words) {
    if (words->num_words < 3 || strcmp(words->words[2], "in") != 0) return TRUTH_UNKNOWN;
    for (int i = 3; i < words->num_words; i++)
        if (!strpbrk(words->words[i], "$`*?[")) return TRUTH_YES;
    return words->num_words == 3 ? TRUTH_NO : TRUTH_UNKNOWN;
}

// How much is unknown: what a turn of a loop can only make more.
static int unknowns_count(const Shell *shell) {
    int num = (shell->args == NULL) + (shell->returned != TRUTH_NO) + (shell->exited != TRUTH_NO);
    for (int i = 0; i < shell->num_variables; i++) {
        const Variable *variable = &shell->variables[i];
        if (variable->absent) continue;
        num += variable_is_hidden(variable) ? 2 : !words_known(&variable->words);
    }
    return num;
}

void loop_open(Shell *shell, const WordList *words, int line) {
    const char *word = words->words[0];
    const bool counted = strcmp(word, "for") == 0 || strcmp(word, "select") == 0;
    shell_block_open(shell, BLOCK_LOOP, TRUTH_UNKNOWN, line);
    shell->filled = counted; // its words are what "do" follows
    if (counted && words->num_words > 1 && shell_runs(shell) != TRUTH_NO)
        variable_hide(shell, words->words[1]);
    if (shell->num_deeper > 0) return;
    Block *block = &shell->blocks[shell->num_blocks - 1];
    block->negated = strcmp(word, "until") == 0;
    block->condition = counted ? list_has(words) : TRUTH_YES;
    block->in_condition = !counted;
    // A condition has run at least once and may set what is known: it is always read again.
    block->turn = (Turn){.at = shell->at,
                         .line = shell->line,
                         .counted = counted,
                         .here_end = shell->here_end,
                         .here_num_lines = shell->here_num_lines,
                         .num_unknown = counted ? unknowns_count(shell) : -1,
                         .num_skipped = shell->out.num_skipped,
                         .num_documents = shell->out.num_documents,
                         .num_sourced = shell->out.num_sourced};
    if (counted) branch_begin(shell, block);
}

bool loop_again(Shell *shell) {
    if (shell->num_deeper > 0 || shell->num_blocks == 0) return false;
    Block *block = &shell->blocks[shell->num_blocks - 1];
    Turn *turn = &block->turn;
    const int num_unknown = unknowns_count(shell);
    if (block->kind != BLOCK_LOOP || block->runs == TRUTH_NO) return false;
    if (num_unknown <= turn->num_unknown || shell->out.overflow > 0) return false;
    if (!turn->again) shell->num_again++;
    turn->again = true;
    turn->takes = false;
    turn->num_unknown = num_unknown;
    block->once = turn->counted ? turn->once : TRUTH_YES; // up to its "do"
    shell->at = turn->at;
    shell->line = turn->line;
    shell->here_end = turn->here_end;
    shell->here_num_lines = turn->here_num_lines;
    shell->out.num_skipped = turn->num_skipped;
    shell->out.num_documents = turn->num_documents;
    shell->out.num_sourced = turn->num_sourced;
    shell->chain = shell->said = TRUTH_YES;
    shell->piped = false;
    shell->filled = true;
    return true;
}

void loop_step(Shell *shell) {
    if (shell->num_again > 0 && ++shell->num_steps_again > MAX_STEPS_AGAIN) shell_overflow(shell);
}

void loop_do(Block *block) {
    block->once = block->turn.once;
}

// The rest of the loop's turn, behind "break" or "continue".
static void turn_end(Block *block, Truth runs) {
    if (runs == TRUTH_YES)
        block->once = TRUTH_NO;
    else if (block->once == TRUTH_YES)
        block->once = TRUTH_UNKNOWN;
}

bool turn_follow(Shell *shell, const WordList *words) {
    static const char *const names[] = {"break", "continue", NULL};
    if (!word_is(words->words[0], names)) return false;
    Truth runs = shell_runs_once(shell);
    const char *number = words->num_words > 1 ? words->words[1] : "1";
    long num_loops = strtol(number, NULL, 10);
    if (num_loops < 1) { // not known, or refused
        num_loops = MAX_BLOCKS;
        runs = truth_and(runs, TRUTH_UNKNOWN);
    }
    for (int i = shell->num_blocks - 1; i >= 0 && num_loops > 0 && runs != TRUTH_NO; i--) {
        Block *block = &shell->blocks[i];
        // A process of its own ends, or not, and the loop around it goes on.
        if (block->kind == BLOCK_SUBSHELL || block->piped || i < shell->floor)
            runs = truth_and(runs, TRUTH_UNKNOWN);
        if (block->kind != BLOCK_LOOP) continue;
        turn_end(block, runs);
        num_loops--;
    }
    return true;
}

void loop_close(Shell *shell, const Block *block) {
    if (block->turn.again) shell->num_again--;
    if (!block->turn.took || block->turn.takes || !shell->out.found) return;
    shell->out.found = false; // a later turn may not run it
    shell->out.hidden = shell->taken_line;
}

void loops_take(Shell *shell) {
    for (int i = 0; i < shell->num_blocks; i++)
        shell->blocks[i].turn.took = shell->blocks[i].turn.takes = true;
}
